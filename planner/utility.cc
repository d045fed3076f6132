// Maintenance, EXPLAIN and cursors: on which shards they run.
#include <algorithm>
#include <set>

#include "parser/literals.h"
#include "parser/scanner.h"
#include "planner/utilities.h"

namespace kintsugi::planner {

using parser::as;
using Kind = RelationUse::Kind;
using shardmap::ShardId;

Ddl Utilities::definition(std::string text, bool in_transaction) const {
  Ddl plan;
  plan.in_transaction = in_transaction;
  for (const ShardId shard : replicated_shards(analyzer_.map())) plan.tasks.push_back({shard, text});
  return plan;
}

void Utilities::write_everywhere() {
  FanOut plan;
  plan.writes = true;
  plan.merge.kind = Merge::Kind::kOne;
  for (const ShardId shard : replicated_shards(analyzer_.map())) plan.tasks.push_back({shard, {}});
  fix(std::move(plan));
}

bool Utilities::hides_placed(const parser::QualifiedName& name) {
  RelationUse use = analyzer_.resolve(name);
  if (use.table == nullptr && name.schema() == "pg_temp") {
    for (const std::string& schema : analyzer_.names().search_path)
      if (use.table == nullptr) use.table = analyzer_.map().table(schema, name.name());
  }
  if (use.table == nullptr || use.table->kind == shardmap::TableKind::kHome) return false;
  refuse(
      refused("a temporary table or view with the name of " + use.table->display() + ", which all shards have",
              "Give it another name."));
  return true;
}

RelationUse Utilities::where(const parser::QualifiedName& name) {
  RelationUse use = analyzer_.resolve(name);
  if (use.relation == nullptr) return use;
  if (!use.relation->owned_by.empty()) {
    const Relation* owner = analyzer_.catalog().relation_displayed(use.relation->owned_by);
    if (owner != nullptr) {
      const parser::Name parts[] = {{owner->schema, {}}, {owner->name, {}}};
      if (placed(analyzer_.resolve({parts, {}}))) use.kind = Kind::kReplicated;
    }
  } else if (use.relation->kind == RelationKind::kView && use.relation->query) {
    const auto* query = use.relation->query->get<parser::Query>();
    if (query != nullptr && everywhere_readable(*query)) use.kind = Kind::kReplicated;
  }
  return use;
}

bool Utilities::everywhere_readable(const parser::Query& query) {
  Analyzer inner(analyzer_.statement(), analyzer_.normal(), analyzer_.begin(), analyzer_.names(),
                 analyzer_.catalog(), analyzer_.map());
  inner.query(query, nullptr, nullptr);
  return std::none_of(inner.uses.begin(), inner.uses.end(), [](const RelationUse& use) {
    return use.kind == Kind::kHome || use.kind == Kind::kUnknown;
  });
}

void Utilities::on_relations(parser::List<parser::QualifiedName> names, std::string_view what,
                             bool in_transaction) {
  bool some = false;
  bool all = true;
  for (const parser::QualifiedName& name : names) (placed(where(name)) ? some : all) = placed(where(name));
  if (!some) return at_home();
  if (!all)
    return refuse(refused(std::string(what) + " of tables that all shards have together with others",
                          "Write one statement for each kind."));
  everywhere({}, in_transaction);
}

void Utilities::operator()(const parser::Truncate* truncate) {
  bool some = false;
  bool all = true;
  for (const parser::TableRef& table : truncate->tables) {
    const RelationUse use = where(table.name);
    (placed(use) ? some : all) = placed(use);
    if (use.mapping != nullptr && (!use.mapping->hidden().empty() || use.mapping->not_online_count() > 0))
      return refuse(
          refused("TRUNCATE of " + use.display + " while a shardlet of its map moves or is not online",
                  "Wait for the move (SHOW JOBS), or DELETE the rows."));
    if (replicated_shards(analyzer_.map()).size() > 1)
      if (auto error = triggers_elsewhere(analyzer_, use)) return refuse(std::move(*error));
  }
  if (!some) return at_home();
  if (!all)
    return refuse(refused("TRUNCATE of tables that all shards have together with others",
                          "Write one statement for each kind."));
  write_everywhere();
}

void Utilities::operator()(const parser::LockTable* lock) {
  if (std::any_of(lock->tables.begin(), lock->tables.end(),
                  [&](const parser::TableRef& table) { return placed(where(table.name)); }))
    return write_everywhere();
  at_home();
}

// An ANALYZE of everything locks catalogues that databases of one server share until its transaction ends: in
// one transaction over such shards it would wait for itself.
void Utilities::operator()(const parser::Vacuum* vacuum) {
  if (vacuum->tables.empty()) return everywhere({}, false);
  if (std::any_of(vacuum->tables.begin(), vacuum->tables.end(),
                  [&](const parser::TableRef& table) { return placed(where(table.name)); }))
    return everywhere({}, vacuum->analyze_only);
  at_home();
}

// A trigger runs on the shard of its row: what it writes elsewhere would be there alone.
std::optional<Error> Utilities::new_trigger_elsewhere(const RelationUse& table) {
  const std::string_view text = analyzer_.statement().text();
  parser::Scanner scanner(text);
  parser::Token token = scanner.next();
  while (token.kind != parser::TokenKind::kEnd && token.kind != parser::TokenKind::kError &&
         !parser::is_keyword(text, token, "execute"))
    token = scanner.next();
  std::vector<std::string> parts;
  for (token = scanner.next(); token.kind != parser::TokenKind::kEnd && !parser::is_symbol(text, token, "(");
       token = scanner.next())
    if (auto name = parser::decode_identifier(text, token); name && !parser::is_symbol(text, token, "."))
      parts.push_back(std::move(*name));
  if (parts.size() < 2) return std::nullopt;  // FUNCTION or PROCEDURE, and its name
  const Function* function = parts.size() > 2
                                 ? analyzer_.catalog().function(parts[1], parts[2])
                                 : analyzer_.catalog().find_function(analyzer_.names().search_path, parts[1]);
  if (function == nullptr) {
    analyzer_.unknown_names = true;
    return std::nullopt;
  }
  return trigger_elsewhere(analyzer_, table, *function);
}

void Utilities::operator()(const parser::Utility* utility) {
  if (!utility->relation.empty()) {
    const RelationUse table = where(utility->relation);
    if (!placed(table)) return at_home();
    if (utility->head.ends_with("trigger") && utility->head.starts_with("create"))
      if (auto error = new_trigger_elsewhere(table)) return refuse(std::move(*error));
    const bool rule = utility->head.ends_with("rule");
    if ((rule || utility->head.ends_with("policy")) && !utility->head.starts_with("drop"))
      if (auto error = text_elsewhere(analyzer_, table, analyzer_.statement().text(), rule))
        return refuse(std::move(*error));
    return everywhere();
  }
  if (!utility->new_schema.text.empty()) return rename_schema(utility->schema, utility->new_schema);
  if (utility->head == "cluster") return everywhere({}, false);  // all tables: each in a transaction of its own
  // What is of a database or a server as a whole, and what is not known to be needed by a table.
  static constexpr std::string_view kAtHome[] = {"do",
                                                 "checkpoint",
                                                 "load",
                                                 "import foreign schema",
                                                 "security label",
                                                 "reassign owned",
                                                 "database",
                                                 "tablespace",
                                                 "publication",
                                                 "subscription",
                                                 "server",
                                                 "system",
                                                 "foreign table",
                                                 "foreign data wrapper",
                                                 "statistics",
                                                 "large object"};
  const bool home = std::any_of(std::begin(kAtHome), std::end(kAtHome),
                                [&](std::string_view what) { return utility->head.ends_with(what); });
  if (!home) return everywhere();
  at_home();
  if (utility->head != "do") return;
  const auto words = words_of(analyzer_.statement().text());
  const auto written = written_in(analyzer_.statement().text());
  for (const shardmap::Table* table : analyzer_.map().tables())
    if (table->kind == shardmap::TableKind::kReplicated && written.contains(table->name))
      refuse(refused("DO that writes to the replicated table " + table->schema + "." + table->name,
                     "One shard alone would have what it writes. Send its statements themselves."));
  if (auto error = do_elsewhere()) refuse(std::move(*error));
}

// What a DO block names, itself or through views and functions, is there in whole.
std::optional<Error> Utilities::do_elsewhere() const {
  const std::string_view text = analyzer_.statement().text();
  const auto sharded = [](const shardmap::Table* table) {
    return table->kind == shardmap::TableKind::kSharded;
  };
  const auto tables = analyzer_.map().tables();
  if (std::none_of(tables.begin(), tables.end(), sharded)) return std::nullopt;
  std::vector<std::string> left = words_of(text);
  std::set<std::string> words;
  bool anything = false;
  while (!left.empty()) {
    std::string word = std::move(left.back());
    left.pop_back();
    if (!words.insert(word).second) continue;
    for (const Function* function : analyzer_.catalog().functions_named(word)) {
      const auto& mentions = function->mentions;
      anything |= std::find(mentions.begin(), mentions.end(), kAnyRelation) != mentions.end();
      left.insert(left.end(), mentions.begin(), mentions.end());
    }
    for (const Relation* relation : analyzer_.catalog().relations())
      if (relation->name == word && relation->kind == RelationKind::kView && !relation->is_system())
        for (std::string& each : words_of(relation->definition)) left.push_back(std::move(each));
  }
  static constexpr std::string_view kInstead =
      "It would see the rows of one shard. Send its statements themselves.";
  for (const shardmap::Table* table : tables)
    if (sharded(table) && words.contains(table->name))
      return refused("DO that names the sharded table " + table->schema + "." + table->name,
                     std::string(kInstead));
  parser::Scanner scanner(text);
  for (parser::Token token = scanner.next();
       token.kind != parser::TokenKind::kEnd && token.kind != parser::TokenKind::kError; token = scanner.next())
    if (token.kind == parser::TokenKind::kString || token.kind == parser::TokenKind::kDollarString ||
        token.kind == parser::TokenKind::kEscapeString)
      if (const auto body = parser::decode_string(text, token)) anything |= puts_together(*body);
  if (!anything) return std::nullopt;
  return refused("DO that puts the statements together that it EXECUTEs", std::string(kInstead));
}

void Utilities::operator()(const parser::Call* call) {
  at_home();
  Block block;
  Scope scope;
  block.scope = &scope;
  analyzer_.no_top();
  analyzer_.expression(call->call, block);
  if (auto error = sees_one_shard(analyzer_)) refuse(std::move(*error));
}

void Utilities::operator()(const parser::Explain* explain) {
  if (explain->other && explain->route)
    return refuse(refused("EXPLAIN (ROUTE) of EXECUTE, DECLARE, CREATE TABLE AS or REFRESH",
                          "Explain the query itself."));
  if (explain->other ||
      (explain->body.query == nullptr && explain->body.insert == nullptr && explain->body.update == nullptr &&
       explain->body.del == nullptr && explain->body.merge == nullptr))
    return at_home();
  if (explain->route) analyzer_.whole = explain->body_range;
  const parser::Preparable& body = explain->body;
  if (body.query != nullptr)
    analyse_query(analyzer_, *body.query, analysis_);
  else if (body.insert != nullptr)
    analyse_insert(analyzer_, *body.insert, analysis_);
  else if (body.update != nullptr)
    analyse_update(analyzer_, *body.update, analysis_);
  else if (body.del != nullptr)
    analyse_delete(analyzer_, *body.del, analysis_);
  else
    analyse_merge(analyzer_, *body.merge, analysis_);
  if (explain->route) return;
  const Error several =
      refused("EXPLAIN of a statement over several shards",
              "EXPLAIN (ROUTE) shows what each shard gets; connect to a shard to see its plan.");
  if (analysis_.insert) analysis_.insert->unsplittable = several;
  if (!std::holds_alternative<std::monostate>(analysis_.several)) analysis_.several = several;
  if (analysis_.fixed) {
    // Of a write to a replicated table every shard's plan is as good.
    analysis_.fixed.reset();
    analysis_.several = std::monostate{};
    at_home();
    if (explain->analyze) analysis_.several = several;
  }
}

void Utilities::operator()(const parser::DeclareCursor* declare) {
  analyse_query(analyzer_, *declare->query, analysis_);
  analysis_.writes = true;
  analysis_.anywhere = false;
  if (analysis_.tables.empty()) analysis_.home = true;
  if (analysis_.tables.empty() || std::holds_alternative<Error>(analysis_.several)) return;
  // Rows are brought together where the cursor is, whatever the query.
  auto gather = gather_of(analyzer_, analysis_, "kg_" + std::string(declare->name.text));
  if (!gather) {
    analysis_.several = refused("a cursor over several shards with " + gather.error().message,
                                "Say with = which sharding key it is for.");
    return;
  }
  gather->cursor = declare->name.text;
  gather->hold = declare->hold;
  analysis_.several = std::move(*gather);
}

void analyse_utility(Analyzer& analyzer, const parser::StatementBody& body, Analysis& analysis) {
  std::visit(Utilities(analyzer, analysis), body);
}

}  // namespace kintsugi::planner
