// From text to Plan on the hot path: normalise, find in the cache, plan; and planning alone, as a prepared
// statement does. The same for maps of ten and of 100,000 shardlets. For instructions, which are repeatable:
//   valgrind --tool=callgrind build/bench/bench/kg_planner_bench --benchmark_filter=...
//   --benchmark_min_time=0.01
#include <benchmark/benchmark.h>

#include "parser/parser.h"
#include "parser/statement_cache.h"
#include "planner/analysis.h"
#include "shardmap/key_encoding.h"

namespace kintsugi::planner {
namespace {

shardmap::MapPtr map_of(int shardlets) {
  shardmap::ShardMapLoader loader("bench", 1);
  (void)loader.add_shard({1, "s1", "d", "", shardmap::ShardState::kOnline});
  (void)loader.add_shard({2, "s2", "d", "", shardmap::ShardState::kOnline});
  loader.set_home(1, 3);
  (void)loader.add_mapping("m", shardmap::MapKind::kRange, {shardmap::KeyType::kBigint});
  const auto key = [](int n) {
    return *shardmap::encode_key({shardmap::KeyType::kBigint}, {std::to_string(n)});
  };
  for (int i = 0; i < shardlets; ++i) {
    const std::string low = key(i * 10), high = key(i * 10 + 10), name = "shardlet-" + std::to_string(i);
    (void)loader.add_entry(
        {low, high, name, static_cast<shardmap::ShardId>(1 + i % 2), shardmap::ShardletState::kOnline});
  }
  (void)loader.add_table({"public", "accounts", shardmap::TableKind::kSharded, "m", {"aid"}});
  return *loader.finish();
}

CatalogPtr catalog() {
  CatalogBuilder builder;
  builder.add_schema("public");
  Relation relation;
  relation.schema = "public";
  relation.name = "accounts";
  relation.columns = {{"aid", 20, "bigint", "", "", true}, {"balance", 23, "integer", "", ""}};
  builder.add_relation(relation);
  builder.add_function({"pg_catalog", "count", "a", 'i', false, false, 20});
  return builder.finish();
}

struct Bench {
  explicit Bench(const char* statement, int shardlets) : text(statement), map(map_of(shardlets)) {
    parser::Parser parser;
    normal.read(text, {0, static_cast<std::uint32_t>(text.size())});
    NameContext names;
    names.search_path = {"public"};
    auto parsed = parser.parse(text);
    analysis = analyse(std::shared_ptr<const parser::Statement>(std::move(*parsed)), normal, 0, names,
                       *catalog(), *map)
                   ->analysis;
    cache.insert(normal, 0, analysis, bytes_of(*analysis));
  }
  std::string_view text;
  shardmap::MapPtr map;
  parser::Normaliser normal;
  AnalysisPtr analysis;
  parser::StatementCache<AnalysisPtr> cache{std::size_t{16} << 20};
};

constexpr const char* kSelect = "SELECT balance FROM accounts WHERE aid = 42";
constexpr const char* kUpdate = "UPDATE accounts SET balance = balance + 1 WHERE aid = 42";
constexpr const char* kCount = "SELECT count(*) FROM accounts";

void text_to_plan(benchmark::State& state, const char* statement) {
  Bench bench(statement, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    bench.normal.read(bench.text, {0, static_cast<std::uint32_t>(bench.text.size())});
    const AnalysisPtr* found = bench.cache.find(bench.normal, 0);
    benchmark::DoNotOptimize(make_plan(**found, {&bench.normal, 0, {}}, *bench.map));
  }
}
BENCHMARK_CAPTURE(text_to_plan, select, kSelect)->Arg(10)->Arg(100000);
BENCHMARK_CAPTURE(text_to_plan, update, kUpdate)->Arg(10)->Arg(100000);
BENCHMARK_CAPTURE(text_to_plan, count_of_all, kCount)->Arg(10)->Arg(100000);

void prepared(benchmark::State& state) {
  Bench bench("SELECT balance FROM accounts WHERE aid = $1", static_cast<int>(state.range(0)));
  const Parameter parameter{20, false, false, "42"};
  for (auto _ : state)
    benchmark::DoNotOptimize(make_plan(*bench.analysis, {&bench.normal, 0, {&parameter, 1}}, *bench.map));
}
BENCHMARK(prepared)->Arg(10)->Arg(100000);

}  // namespace
}  // namespace kintsugi::planner

BENCHMARK_MAIN();
