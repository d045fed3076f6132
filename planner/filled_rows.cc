// What ALTER TABLE fills the rows that are there with, and what a default says of the moment of its definition:
// the same on every shard, as in one PostgreSQL.
//
// ADD COLUMN ... DEFAULT now() gives all rows one time there. So the time is worked out once and stands in the
// text that the shards get, which then sets the client's own default in the same statement.
#include <algorithm>
#include <cctype>

#include "base/sql_quote.h"
#include "parser/literals.h"
#include "parser/scanner.h"
#include "planner/utilities.h"
#include "planner/work_out.h"

namespace kintsugi::planner {

using parser::as;
using parser::Token;
using parser::TokenKind;
using Command = parser::AlterCommand::Kind;
using Kind = RelationUse::Kind;

namespace {

constexpr std::uint32_t kDate = 1082, kTime = 1083, kTimestamp = 1114, kTimestamptz = 1184, kTimetz = 1266;

template <std::size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// 'now', 'today 12:00': what PostgreSQL reads as a time that passes.
bool says_moment(std::string_view text) {
  static constexpr std::string_view kMoments[] = {"now", "today", "tomorrow", "yesterday"};
  static constexpr std::string_view kBeside[] = {"am", "pm", "utc", "z", "allballs"};
  bool moment = false;
  for (const std::string& word : words_of(text)) {
    const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
    if (!digits && !among(kMoments, word) && !among(kBeside, word)) return false;
    moment |= among(kMoments, word);
  }
  return moment;
}

bool is_text(const Token& token) {
  return token.kind == TokenKind::kString || token.kind == TokenKind::kEscapeString ||
         token.kind == TokenKind::kDollarString;
}

// Whether a text in the expression says so; `constant`: and is read as a time when the definition runs, not as
// a text that is cast later ('now'::text::date).
bool has_moment(std::string_view text, parser::Range range, bool constant) {
  static constexpr std::string_view kTexts[] = {"text", "varchar", "character", "char", "bpchar", "name"};
  static constexpr std::string_view kTimes[] = {"date", "time", "timetz", "timestamp", "timestamptz", "zone"};
  const auto is_one_of = [text](const auto& words, const Token& token) {
    return std::any_of(std::begin(words), std::end(words),
                       [&](std::string_view word) { return parser::is_keyword(text, token, word); });
  };
  parser::Scanner scanner(text.substr(0, range.end));
  scanner.seek(range.begin);
  Token before, token = scanner.next();
  while (token.kind != TokenKind::kEnd && token.kind != TokenKind::kError) {
    const Token here = token;
    token = scanner.next();
    if (is_text(here)) {
      const auto value = parser::decode_string(text, here);
      if (value && says_moment(*value)) {
        if (!constant) return true;
        const bool cast = parser::is_symbol(text, token, "::") || parser::is_keyword(text, token, "as");
        const bool typed = parser::is_symbol(text, before, ")") || is_one_of(kTimes, before);
        if (cast) token = scanner.next();
        if (typed || (cast && !is_one_of(kTexts, token))) return true;
      }
    }
    before = here;
  }
  return false;
}

// What gives each row another value anyway.
bool is_of_row(std::string_view call) {
  static constexpr std::string_view kOfRow[] = {"random",           "gen_random_uuid", "clock_timestamp",
                                                "timeofday",        "nextval",         "uuid_generate_v1",
                                                "uuid_generate_v4", "gen_random_bytes"};
  return among(kOfRow, call);
}

// Whether it is one value for all rows, and another on each shard.
bool differs_by_shard(const Function& function) {
  if (function.volatility == 's') return !function.makes.empty();
  return !std::all_of(function.makes.begin(), function.makes.end(), is_of_row);
}

// By the names of functions in it.
bool calls_what_differs(const Catalog& catalog, std::string_view text) {
  const auto words = words_of(text);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    const auto functions = catalog.functions_named(word);
    return std::any_of(functions.begin(), functions.end(),
                       [](const Function* function) { return differs_by_shard(*function); });
  });
}

// Where IF NOT EXISTS stands.
std::optional<parser::Range> if_not_exists_in(std::string_view text, const parser::AlterCommand& command) {
  parser::Scanner scanner(text.substr(0, command.column.range.begin));
  scanner.seek(command.range.begin);
  std::optional<parser::Range> found;
  for (Token token = scanner.next(); token.kind != TokenKind::kEnd && token.kind != TokenKind::kError;
       token = scanner.next()) {
    if (parser::is_keyword(text, token, "if")) found = token.range();
    if (found) found->end = token.end;
  }
  return found;
}

}  // namespace

const Type* Utilities::type_of_name(const parser::QualifiedName& name) const {
  const Catalog& catalog = analyzer_.catalog();
  return name.schema().empty() ? catalog.find_type(analyzer_.names().search_path, name.name())
                               : catalog.type(name.schema(), name.name());
}

// A domain whose default each shard would make for itself. `copies`: each row of it, too.
bool Utilities::domain_makes(const parser::QualifiedName& name, bool copies) const {
  const Type* type = type_of_name(name);
  if (type == nullptr || type->default_expression.empty()) return false;
  const std::string& text = type->default_expression;
  if (copies) return is_made(Column{.default_expression = text});
  const auto made = made_in(text);
  return !std::all_of(made.begin(), made.end(), is_of_row) || calls_what_differs(analyzer_.catalog(), text);
}

bool Utilities::is_time(std::uint32_t oid) const {
  const Catalog& catalog = analyzer_.catalog();
  for (const Type* type = catalog.type(oid); type != nullptr && type->kind == 'd'; type = catalog.type(oid))
    oid = type->base;
  return oid == kDate || oid == kTime || oid == kTimestamp || oid == kTimestamptz || oid == kTimetz;
}

std::optional<Error> Utilities::moment_of_definition(parser::List<parser::Constraint> constraints,
                                                     std::uint32_t type, std::string_view column) const {
  for (const parser::Constraint& constraint : constraints)
    if (constraint.kind == parser::Constraint::Kind::kDefault)
      if (auto error = moment_of_definition(constraint.expr, type, column)) return error;
  return std::nullopt;
}

std::optional<Error> Utilities::moment_of_definition(const parser::Expr* value, std::uint32_t type,
                                                     std::string_view column) const {
  if (value == nullptr || replicated_shards(analyzer_.map()).size() < 2) return std::nullopt;
  const bool bare = as<parser::Literal>(value) != nullptr;
  if (bare ? !is_time(type) || !has_moment(analyzer_.statement().text(), value->range, false)
           : !has_moment(analyzer_.statement().text(), value->range, true))
    return std::nullopt;
  return refused("the default of column " + std::string(column) +
                     ", which is the moment when it is defined, another on each shard",
                 "Write now() or CURRENT_DATE for the moment when a row comes, or the time itself.");
}

std::optional<Error> Utilities::default_of_moment(const parser::AlterCommand& command,
                                                  const RelationUse& table) const {
  if (command.kind == Command::kAddColumn) {
    const parser::ColumnDefinition& added = command.column;
    return moment_of_definition(added.constraints,
                                added.type == nullptr ? 0 : analyzer_.type_named(*added.type), added.name.text);
  }
  if (command.kind != Command::kSetDefault) return std::nullopt;
  const Column* known = table.relation == nullptr ? nullptr : table.relation->column(command.name.text);
  return moment_of_definition(command.expr, known == nullptr ? 0 : known->type, command.name.text);
}

// A value that a shard would make for itself, other than by the time; times are noted.
std::optional<Error> Utilities::filled_apart(const parser::AlterCommand& command, const RelationUse& table,
                                             const parser::AlterTable& alter, Filling& filling) {
  const bool copies = table.kind == Kind::kReplicated;
  const bool adds = command.kind == Command::kAddColumn;
  const parser::ColumnDefinition& column = command.column;
  const std::string_view text = analyzer_.statement().text();
  bool apart = copies && command.kind == Command::kAddIdentity;
  const parser::Expr* value = command.kind == Command::kSetType ? command.expr : nullptr;
  if (adds) {
    // IF NOT EXISTS: nothing is filled.
    if (command.if_not_exists && table.relation != nullptr &&
        table.relation->column(column.name.text) != nullptr &&
        std::none_of(alter.commands.begin(), alter.commands.end(), [&](const parser::AlterCommand& other) {
          return other.kind == Command::kDropColumn && other.name.text == column.name.text;
        }))
      return std::nullopt;
    const std::string_view type = column.type == nullptr ? "" : column.type->name.name();
    apart = copies && (type == "serial" || type == "bigserial" || type == "smallserial");
    for (const parser::Constraint& constraint : column.constraints) {
      if (constraint.kind == parser::Constraint::Kind::kDefault) value = constraint.expr;
      apart |= copies && constraint.kind == parser::Constraint::Kind::kIdentity;
    }
    if (value == nullptr && column.type != nullptr) apart |= domain_makes(column.type->name, copies);
  }
  std::vector<parser::Range> times;
  if (value != nullptr) {
    Analyzer inner(analyzer_.statement(), analyzer_.normal(), analyzer_.begin(), analyzer_.names(),
                   analyzer_.catalog(), analyzer_.map());
    Block block;
    Scope scope;
    block.scope = &scope;
    inner.no_top();
    inner.expression(value, block);
    const Function* of_place = analyzer_.catalog().function("pg_catalog", inner.one_place);
    apart |= inner.other_times || !inner.system_column.empty() || !inner.reads_sharded.empty() ||
             !inner.writes_copies.empty() || inner.one_place == "current_catalog" ||
             (of_place != nullptr && inner.one_place != "nextval");
    apart |=
        copies ? block.row_volatile || !inner.one_place.empty() || !inner.reads_tables.empty()
               : !inner.reads_tables.empty() && calls_what_differs(analyzer_.catalog(), value->range.of(text));
    const bool bare = as<parser::Literal>(value) != nullptr;
    apart |= !bare && has_moment(text, value->range, false);
    times = std::move(inner.time_calls);
  }
  // One shard has nobody to differ from.
  if (apart && replicated_shards(analyzer_.map()).size() > 1) {
    const std::string name(adds ? column.name.text : command.name.text);
    return refused("ALTER TABLE of the " + std::string(copies ? "replicated" : "sharded") + " table " +
                       table.display + " with values that each shard would make for itself, in column " + name,
                   adds ? "Add the column without them, UPDATE its rows, and ALTER COLUMN ... SET DEFAULT then."
                        : "Add another column, UPDATE it from this one, and rename it then.");
  }
  if (times.empty()) return std::nullopt;
  filling.times.insert(filling.times.end(), times.begin(), times.end());
  if (!adds) return std::nullopt;
  if (command.if_not_exists) {
    // Behind the catalogue's back it may be there: then PostgreSQL shall say so, and not set its default.
    if (const auto words = if_not_exists_in(text, command)) filling.edits.replace(*words, std::string());
  }
  filling.edits.insert(
      command.range.end,
      TextTemplate{{.text = ", ALTER COLUMN " + quote_identifier(column.name.text) + " SET DEFAULT "},
                   {.kind = Piece::Kind::kOwn, .range = value->range}});
  return std::nullopt;
}

void Utilities::fill_at_one_time(Filling filling) {
  analysis_.writes = true;
  analysis_.work_out = times_taken_out(std::move(filling.times), analyzer_.whole, filling.edits);
  if (!analysis_.work_out)
    refuse(refused("ALTER TABLE with such a time", "Write one action in each ALTER TABLE."));
}

}  // namespace kintsugi::planner
