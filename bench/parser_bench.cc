// Parsing, and what is done instead of it: the scan, the hash and the look-up of a statement already known.
// STACK's figures for the cold parse: 10, 30 and 95 us for the first three; the bound is one and a half times
// that.
#include <benchmark/benchmark.h>

#include "parser/parser.h"
#include "parser/scanner.h"
#include "parser/statement_cache.h"

namespace kintsugi::parser {
namespace {

constexpr std::string_view kStatements[] = {
    "SELECT abalance FROM pgbench_accounts WHERE aid = 1",
    "INSERT INTO t (a, b, c, d, e, f, g, h, i, j) VALUES (1, 2, 3, 'x', 'y', now(), 7, 8, 9.5, NULL)",
    "SELECT a.x, b.y, c.z FROM a JOIN b ON a.id = b.aid JOIN c ON c.bid = b.id WHERE a.k = 5 AND b.v > 10 AND "
    "c.w LIKE 'x%' "
    "ORDER BY a.x LIMIT 10",
    "UPDATE pgbench_accounts SET abalance = abalance + -123 WHERE aid = 4",
    "SELECT a FROM t WHERE b IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10) AND c = 'some text' ORDER BY 1 LIMIT 10",
};

Range whole(std::string_view text) {
  return {0, static_cast<std::uint32_t>(text.size())};
}

void parse_cold(benchmark::State& state) {
  const std::string_view text = kStatements[state.range(0)];
  Parser parser;
  for (int i = 0; i < 20; ++i) benchmark::DoNotOptimize(parser.parse(text, whole(text)));
  for (auto _ : state) benchmark::DoNotOptimize(parser.parse(text, whole(text)));
  state.SetLabel(std::string(text.substr(0, 60)));
}
BENCHMARK(parse_cold)->DenseRange(0, std::size(kStatements) - 1)->Unit(benchmark::kMicrosecond);

void scan_only(benchmark::State& state) {
  const std::string_view text = kStatements[state.range(0)];
  for (auto _ : state) {
    Scanner scanner(text);
    Token token;
    do token = scanner.next();
    while (token.kind != TokenKind::kEnd);
    benchmark::DoNotOptimize(token);
  }
}
BENCHMARK(scan_only)->DenseRange(0, std::size(kStatements) - 1);

void find_in_cache(benchmark::State& state) {
  const std::string_view text = kStatements[state.range(0)];
  StatementCache<int> cache(std::size_t{16} << 20);
  Normaliser normaliser;
  for (int i = 0; i < 1000; ++i) {
    const std::string other = "SELECT c" + std::to_string(i) + " FROM t";
    normaliser.read(other, whole(other));
    cache.insert(normaliser, 0, i, 100);
  }
  normaliser.read(text, whole(text));
  cache.insert(normaliser, 0, 1, 100);
  for (auto _ : state) {
    normaliser.read(text, whole(text));
    benchmark::DoNotOptimize(cache.find(normaliser, 0));
  }
}
BENCHMARK(find_in_cache)->DenseRange(0, std::size(kStatements) - 1);

}  // namespace
}  // namespace kintsugi::parser

BENCHMARK_MAIN();
