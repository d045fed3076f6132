// The planner over any statement: a plan that prints, or an error; the same again for the same text.
#include "parser/parser.h"
#include "parser/split_statements.h"
#include "planner/analysis.h"
#include "shardmap/map_edit.h"
#include "tests/fuzz/target.h"

namespace kintsugi::planner {
namespace {

using shardmap::BoundColumn;
namespace edit = shardmap::edit;

Relation table(const char* name) {
  Relation made;
  made.oid = 1;
  made.schema = "public";
  made.name = name;
  made.columns = {{"k", 20, "bigint", "", "", true},
                  {"a", 23, "integer", "", ""},
                  {"b", 25, "text", "default", "'x'::text"}};
  made.primary_key = {"k"};
  return made;
}

const CatalogPtr& catalog() {
  static const CatalogPtr made = [] {
    CatalogBuilder builder;
    builder.add_schema("public");
    for (const char* name : {"t", "u", "r", "h"}) builder.add_relation(table(name));
    Relation view = table("v");
    view.kind = RelationKind::kView;
    view.definition = "SELECT t.k, t.a, t.b FROM public.t";
    builder.add_relation(view);
    for (const char* name : {"count", "sum", "min", "max", "avg"})
      builder.add_function({"pg_catalog", name, "a", 'i', false, false, 0});
    builder.add_function({"pg_catalog", "random", "f", 'v', false, false, 701});
    builder.add_function({"pg_catalog", "lower", "f", 'i', false, false, 25});
    return builder.finish();
  }();
  return made;
}

const shardmap::MapPtr& map() {
  static const shardmap::MapPtr made = [] {
    const auto at = [](const char* key) { return shardmap::Bound{BoundColumn::value(key)}; };
    const auto online = shardmap::ShardletState::kOnline;
    return *shardmap::apply(
        *shardmap::ShardMap::empty("fuzz"),
        {edit::CreateShard{"s1", "d", "", shardmap::ShardState::kOnline},
         edit::CreateShard{"s2", "d", "", shardmap::ShardState::kOnline},
         edit::CreateMap{"m", shardmap::MapKind::kRange, {shardmap::KeyType::kBigint}},
         edit::CreateShardlet{"m", "low", {BoundColumn::min()}, at("100"), {}, "s1", online},
         edit::CreateShardlet{"m", "mid", at("100"), at("200"), {}, "s2", online},
         edit::CreateShardlet{"m", "high", at("200"), {BoundColumn::max()}, {}, "s1", online},
         edit::HideRange{"mid", "s1", "job"},
         edit::PutTable{{"public", "t", shardmap::TableKind::kSharded, "m", {"k"}}},
         edit::PutTable{{"public", "u", shardmap::TableKind::kSharded, "m", {"k"}}},
         edit::PutTable{{"public", "r", shardmap::TableKind::kReplicated, "", {}}}});
  }();
  return made;
}

void fuzz(std::string_view input) {
  static parser::Parser parser;
  if (input.size() > 2048) return;
  for (const parser::Range range : parser::split_statements(input)) {
    auto parsed = parser.parse(input, range);
    parser::Normaliser normal;
    if (!parsed || !normal.read(input, range)) continue;
    const std::shared_ptr<const parser::Statement> statement = std::move(*parsed);
    NameContext names;
    names.search_path = {"public"};
    const auto outcome = analyse(statement, normal, range.begin, names, *catalog(), *map());
    if (!outcome) {
      CHECK_THAT(outcome.error().sqlstate.size() == 5);
      continue;
    }
    std::vector<Parameter> parameters(static_cast<std::size_t>(std::min(statement->parameters(), 100)),
                                      Parameter{20, false, false, "150"});
    const Values values{&normal, range.begin, parameters};
    const auto plan = make_plan(*outcome->analysis, values, *map());
    const auto again = make_plan(*outcome->analysis, values, *map());
    CHECK_THAT(plan.has_value() == again.has_value());
    if (!plan) {
      CHECK_THAT(plan.error().sqlstate.size() == 5 && !plan.error().message.empty());
      continue;
    }
    CHECK_THAT(*plan == *again);
    CHECK_THAT(!lines_of(*plan, *map(), range.of(input)).empty());
    // What shards get is SQL again.
    if (const auto* fan_out = std::get_if<FanOut>(&*plan))
      for (const ShardTask& task : fan_out->tasks)
        if (!task.text.empty()) CHECK_THAT(parser.parse(task.text));
    if (const auto* gather = std::get_if<Gather>(&*plan)) CHECK_THAT(parser.parse(gather->text));
  }
}

std::vector<std::string> seeds() {
  return {"SELECT * FROM t WHERE k = 5",
          "SELECT count(*), max(a) FROM t JOIN u USING (k) WHERE t.k IN (5, 150) OR u.k BETWEEN 3 AND $1",
          "SELECT DISTINCT a, b FROM t ORDER BY a DESC NULLS LAST LIMIT 3 OFFSET 2",
          "SELECT avg(a) FROM v GROUP BY b HAVING count(*) > 1 ORDER BY lower(b)",
          "WITH x AS (SELECT k FROM t) SELECT * FROM x LEFT JOIN u ON x.k = u.k, LATERAL (SELECT * FROM r) y",
          "INSERT INTO t (k, a) VALUES (5, 1), (150, 2) RETURNING *; INSERT INTO r VALUES (1, 2)",
          "INSERT INTO u SELECT k, a FROM t ON CONFLICT (k) DO UPDATE SET a = 1",
          "UPDATE t SET a = u.a FROM u WHERE t.k = u.k; DELETE FROM t USING r WHERE t.a = r.a",
          "MERGE INTO t USING r ON t.k = 5 AND t.a = r.a WHEN NOT MATCHED THEN INSERT (k) VALUES (5)",
          "SELECT k FROM t UNION ALL SELECT k FROM u EXCEPT SELECT k FROM h",
          "COPY t FROM STDIN (FORMAT csv); CREATE TABLE n (k bigint, i serial) SHARD BY m (k); DROP TABLE t, u",
          "EXPLAIN (ROUTE) SELECT * FROM t ORDER BY a; TRUNCATE t; TABLE t; ALTER TABLE t RENAME TO w"};
}

}  // namespace
}  // namespace kintsugi::planner

KINTSUGI_FUZZ_TARGET(planner_plan, kintsugi::planner::fuzz, kintsugi::planner::seeds)
