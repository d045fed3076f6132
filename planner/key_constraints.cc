#include "planner/key_constraints.h"

#include <algorithm>

#include "parser/literals.h"
#include "parser/scanner.h"
#include "planner/analyse.h"

namespace kintsugi::planner {

using parser::ColumnDefinition;
using parser::Constraint;
using parser::is_keyword;
using parser::is_symbol;
using parser::Scanner;
using parser::Token;

namespace {

bool ended(const Token& token) {
  return token.kind == parser::TokenKind::kEnd || token.kind == parser::TokenKind::kError;
}

bool among(const std::vector<std::string>& columns, std::string_view name) {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

std::string name_of(std::string_view text, const Token& token) {
  return parser::decode_identifier(text, token).value_or(std::string());
}

// The columns that EXCLUDE compares with "=".
std::vector<std::string> equal_in(std::string_view text) {
  std::vector<std::string> equal;
  Scanner scanner(text);
  Token column, with;
  for (Token token = scanner.next(); !ended(token); token = scanner.next()) {
    if (token.of(text) == "=" && is_keyword(text, with, "with")) equal.push_back(name_of(text, column));
    column = with;
    with = token;
  }
  return equal;
}

// What ON DELETE SET NULL or SET DEFAULT says it is for: nothing when there is none, else the words behind SET
// and the columns in parentheses.
struct OnDelete {
  bool to_null = false;
  std::vector<std::string> columns;
};
std::optional<OnDelete> on_delete(std::string_view text) {
  Scanner scanner(text);
  Token token = scanner.next();
  while (!ended(token)) {
    const bool deletes = is_keyword(text, token, "delete");
    token = scanner.next();
    if (!deletes || !is_keyword(text, token, "set")) continue;
    token = scanner.next();
    OnDelete made{is_keyword(text, token, "null"), {}};
    if (!is_symbol(text, scanner.next(), "(")) return made;
    for (token = scanner.next(); !ended(token) && !is_symbol(text, token, ")"); token = scanner.next())
      if (!is_symbol(text, token, ",")) made.columns.push_back(name_of(text, token));
    return made;
  }
  return std::nullopt;
}

// Those that PostgreSQL comes with. Others may be nondeterministic: equal texts that are not the same.
bool known_collation(std::string_view name) {
  if (name == "C" || name == "POSIX" || name == "default" || name == "ucs_basic" || name.ends_with("-x-icu"))
    return true;
  const std::size_t bar = name.find('_');  // de_DE
  const auto within = [](std::string_view part, char low, char high) {
    return std::all_of(part.begin(), part.end(), [&](char c) { return low <= c && c <= high; });
  };
  return (bar == 2 || bar == 3) && name.size() >= bar + 3 && within(name.substr(0, bar), 'a', 'z') &&
         within(name.substr(bar + 1, 2), 'A', 'Z');
}

class Checker {
 public:
  Checker(std::string_view text, const shardmap::Table& made) : text_(text), made_(made) {}

  // `not_null`: of the key's columns.
  [[nodiscard]] std::optional<Error> check(const Constraint& constraint,
                                           const std::vector<std::string>& columns,
                                           const std::vector<std::string>& not_null) const {
    const std::string_view own = constraint.range.of(text_);
    if (constraint.kind == Constraint::Kind::kExclude) {
      const auto equal = equal_in(own);
      for (const std::string& key : made_.key)
        if (!among(equal, key))
          return refused("EXCLUDE of the sharded table " + made_.display() +
                             " without its sharding key, which would hold on each shard alone",
                         "Put the key into it: " + made_.key.front() + " WITH =.");
    }
    if (constraint.kind != Constraint::Kind::kForeignKey) return std::nullopt;
    const auto set = on_delete(own);
    if (!set) return std::nullopt;
    for (const std::string& key : made_.key) {
      if (!among(set->columns.empty() ? columns : set->columns, key)) continue;
      if (set->to_null && among(not_null, key)) continue;  // PostgreSQL refuses it, too
      return refused(
          "ON DELETE SET " + std::string(set->to_null ? "NULL" : "DEFAULT") + " of the sharding key " + key,
          "Name the other columns: ON DELETE SET NULL (...).");
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Error> check_collation(const ColumnDefinition& column) const {
    if (column.collation.empty() || !among(made_.key, column.name.text) ||
        known_collation(column.collation.name()))
      return std::nullopt;
    return refused(
        "the collation " + std::string(column.collation.name()) + " of the sharding key " +
            std::string(column.name.text) + ", which may be nondeterministic",
        "Leave it out. A table that is there can be sharded by ALTER TABLE, which looks at the collation.");
  }

 private:
  std::string_view text_;
  const shardmap::Table& made_;
};

std::vector<std::string> columns_of(const Constraint& constraint) {
  std::vector<std::string> columns;
  for (const parser::Name& name : constraint.columns) columns.emplace_back(name.text);
  return columns;
}

// What LIKE ... INCLUDING INDEXES brings.
std::optional<Error> check_like(Analyzer& analyzer, const parser::CreateTable& table,
                                const shardmap::Table& made) {
  const std::string_view text = analyzer.statement().text();
  Scanner scanner(text);
  bool including = false;
  for (Token token = scanner.next(); !ended(token); token = scanner.next())
    including |= is_keyword(text, token, "including");
  if (!including) return std::nullopt;
  for (const parser::QualifiedName& like : table.like) {
    const RelationUse source = analyzer.resolve(like);
    if (source.relation == nullptr) continue;
    std::vector<std::vector<std::string>> all = source.relation->unique_keys;
    all.push_back(source.relation->primary_key);
    for (const std::vector<std::string>& columns : all) {
      const bool has_key = std::all_of(made.key.begin(), made.key.end(),
                                       [&](const std::string& key) { return among(columns, key); });
      const bool made_apart = source.kind == RelationUse::Kind::kSharded &&
                              std::any_of(columns.begin(), columns.end(), [&](const std::string& name) {
                                const Column* column = source.relation->column(name);
                                return column != nullptr && column->identity != 0;
                              });
      if (columns.empty() || has_key || made_apart) continue;
      return refused("a unique constraint of " + source.display + ", which LIKE gives the sharded table " +
                         made.display() + " without its sharding key",
                     "It would hold on each shard alone. Leave INCLUDING INDEXES out.");
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> check_key_constraints(Analyzer& analyzer, const parser::CreateTable& table,
                                           const shardmap::Table& made) {
  if (auto error = check_like(analyzer, table, made)) return error;
  const Checker checker(analyzer.statement().text(), made);
  std::vector<std::string> not_null;
  for (const ColumnDefinition& column : table.columns)
    for (const Constraint& each : column.constraints)
      if (each.kind == Constraint::Kind::kNotNull || each.kind == Constraint::Kind::kPrimaryKey ||
          each.kind == Constraint::Kind::kIdentity)
        not_null.emplace_back(column.name.text);
  for (const Constraint& each : table.constraints)
    if (each.kind == Constraint::Kind::kPrimaryKey)
      for (const parser::Name& name : each.columns) not_null.emplace_back(name.text);
  for (const ColumnDefinition& column : table.columns) {
    if (auto error = checker.check_collation(column)) return error;
    for (const Constraint& each : column.constraints)
      if (auto error = checker.check(each, {std::string(column.name.text)}, not_null)) return error;
  }
  for (const Constraint& each : table.constraints)
    if (auto error = checker.check(each, columns_of(each), not_null)) return error;
  return std::nullopt;
}

std::optional<Error> check_key_constraints(Analyzer& analyzer, const parser::AlterCommand& command,
                                           const RelationUse& table) {
  if (table.kind != RelationUse::Kind::kSharded || table.table == nullptr) return std::nullopt;
  if (command.kind != parser::AlterCommand::Kind::kAddConstraint) return std::nullopt;
  std::vector<std::string> not_null;
  if (table.relation != nullptr)
    for (const Column& column : table.relation->columns)
      if (column.not_null) not_null.push_back(column.name);
  return Checker(analyzer.statement().text(), *table.table)
      .check(command.constraint, columns_of(command.constraint), not_null);
}

}  // namespace kintsugi::planner
