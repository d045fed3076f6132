// The shard map at a million shardlets: lookups, memory, one edit. CONTRACT's numbers: a lookup at most 100 ns
// (bigint) and 250 ns (text), at most 64 bytes an entry beyond the key, one edit within 5 ms, a start from the
// replica within 2 s. An edit counts as published when every thread has it (edit_published/THREADS, real time).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <latch>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "base/io/loop.h"
#include "shardmap/map_edit.h"
#include "shardmap/map_file.h"
#include "shardmap/map_store.h"

namespace kintsugi::shardmap {
namespace {

constexpr std::int64_t kShardlets = 1000000;

struct Million {
  MapPtr map;
  const Mapping* mapping = nullptr;
  std::vector<std::string> keys;  // in random order
  std::size_t key_bytes = 0;
};

std::string text_key(std::int64_t n) {
  std::string digits = std::to_string(n);
  return "tenant-" + std::string(10 - digits.size(), '0') + digits;
}

Million make(MapKind kind, KeyType type) {
  Million made;
  ShardMapLoader loader("store", 1);
  for (ShardId id = 1; id <= 16; ++id) {
    if (!loader.add_shard({id, "s" + std::to_string(id), "host=x", "", ShardState::kOnline})) std::abort();
  }
  loader.set_home(1, 17);
  if (!loader.add_mapping("m", kind, {type})) std::abort();
  std::vector<std::string> lows;
  for (std::int64_t i = 0; i <= kShardlets; ++i) {
    const std::int64_t n = i * 37;
    lows.push_back(*encode_key({type}, {type == KeyType::kText ? text_key(n) : std::to_string(n)}));
  }
  for (std::size_t i = 0; i < kShardlets; ++i) {
    const std::string name = "m" + std::to_string(i);
    const std::string_view high = kind == MapKind::kList ? std::string_view() : lows[i + 1];
    if (!loader.add_entry({lows[i], high, name, static_cast<ShardId>(1 + i % 16), ShardletState::kOnline}))
      std::abort();
    made.key_bytes += lows[i].size();
  }
  made.map = *loader.finish();
  made.mapping = made.map->mapping("m");
  std::mt19937_64 random(1);
  for (int i = 0; i < 1 << 16; ++i) made.keys.push_back(lows[random() % kShardlets]);
  return made;
}

// What this machine takes for one read that its caches do not have: a chase through as much memory as the lines
// of a million entries (state.range(0) KB), each place known only from the one before. The lookups below are to
// be read beside it: one of random keys waits once.
void one_miss(benchmark::State& state) {
  struct alignas(64) Place {
    const Place* next;
  };
  const auto count = static_cast<std::size_t>(state.range(0)) * 1024 / sizeof(Place);
  std::vector<Place> places(count);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(4));
  for (std::size_t i = 0; i < count; ++i) places[order[i]].next = &places[order[(i + 1) % count]];
  const Place* at = places.data();
  for (auto _ : state) benchmark::DoNotOptimize(at = at->next);
}

// `keys` many different ones, each as likely as the others: all of 2^16, or so few that the caches have their
// lines, as where some tenants do most of the work.
void lookup(benchmark::State& state, MapKind kind, KeyType type, std::size_t keys = 1 << 16) {
  const Million million = make(kind, type);
  std::size_t i = 0;
  for (auto _ : state) {
    const auto found = million.mapping->find(million.keys[i++ & (keys - 1)]);
    benchmark::DoNotOptimize(found->shard());
  }
  const double beyond = static_cast<double>(million.map->bytes() - million.key_bytes) / kShardlets;
  state.counters["bytes_an_entry_beyond_the_key"] = beyond;
}

void one_edit(benchmark::State& state, MapKind kind, KeyType type) {
  const Million million = make(kind, type);
  std::mt19937_64 random(2);
  for (auto _ : state) {
    const std::string name = "m" + std::to_string(random() % kShardlets);
    auto next = apply(*million.map, {edit::AlterShardlet{name, name + "x", "s3", ShardletState::kReadOnly}});
    if (!next) state.SkipWithError(next.error().message.c_str());
    benchmark::DoNotOptimize(next);
  }
}

// The same with what comes after it in a router: every thread of it has the new map and has let go of the old
// one.
void edit_published(benchmark::State& state, MapKind kind, KeyType type) {
  struct Worker {
    io::Loop loop;
    MapPtr map;
    std::thread thread;
  };
  const Million million = make(kind, type);
  std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(state.range(0)));
  for (auto& worker : workers) {
    worker = std::make_unique<Worker>();
    worker->map = million.map;
    worker->thread = std::thread([&worker = *worker] { worker.loop.run(); });
  }
  MapPtr map = million.map;
  std::mt19937_64 random(2);
  for (auto _ : state) {
    const std::string name = "m" + std::to_string(random() % kShardlets);
    const auto next = apply(*map, {edit::AlterShardlet{name, std::nullopt, "s3", ShardletState::kReadOnly}});
    if (!next) {
      state.SkipWithError(next.error().message.c_str());
      break;
    }
    map = *next;
    std::latch taken(state.range(0));
    for (auto& worker : workers) {
      worker->loop.post([&worker = *worker, &taken, map] {
        worker.map = map;
        taken.count_down();
      });
    }
    taken.wait();
  }
  for (auto& worker : workers) {
    worker->loop.stop();
    worker->thread.join();
  }
}

void split(benchmark::State& state) {
  Million million = make(MapKind::kRange, KeyType::kBigint);
  std::mt19937_64 random(3);
  for (auto _ : state) {
    const std::int64_t n = static_cast<std::int64_t>(random() % kShardlets);
    auto left = creation_of(*million.map, "m" + std::to_string(n));
    auto right = *left;
    const std::string middle = std::to_string(n * 37 + 18);
    left->high = right.low = {BoundColumn::value(middle)};
    right.name += "r";
    auto next = apply(*million.map, {edit::DropShardlet{left->name}, *left, right});
    if (!next) state.SkipWithError(next.error().message.c_str());
    benchmark::DoNotOptimize(next);
  }
}

// What a router does first: it reads its replica.
void start_from_replica(benchmark::State& state, MapKind kind, KeyType type) {
  char directory[] = "/tmp/kintsugi-bench-XXXXXX";
  if (mkdtemp(directory) == nullptr) std::abort();
  const Deadline soon = Deadline::in(std::chrono::minutes(5));
  {
    const Million million = make(kind, type);
    auto store = open_store("sqlite:map.db", directory, soon);
    auto base = (*store)->load(soon);
    auto whole = edit_that_makes(*million.map);
    if (!base || !whole || !(*store)->commit(*base, *whole, {}, soon)) std::abort();
  }
  for (auto _ : state) {
    auto store = open_store("sqlite:map.db", directory, soon);
    auto stored = (*store)->load(soon);
    if (!stored || stored->map->mapping("m")->entry_count() != kShardlets)
      state.SkipWithError("not the map that was stored");
    benchmark::DoNotOptimize(stored);
  }
  std::filesystem::remove_all(directory);
}

BENCHMARK(one_miss)->Arg(512)->Arg(4096)->Arg(16384);
BENCHMARK_CAPTURE(lookup, range_bigint, MapKind::kRange, KeyType::kBigint);
BENCHMARK_CAPTURE(lookup, range_text, MapKind::kRange, KeyType::kText);
BENCHMARK_CAPTURE(lookup, list_bigint, MapKind::kList, KeyType::kBigint);
BENCHMARK_CAPTURE(lookup, list_text, MapKind::kList, KeyType::kText);
BENCHMARK_CAPTURE(lookup, range_bigint_4096_keys, MapKind::kRange, KeyType::kBigint, 4096);
BENCHMARK_CAPTURE(lookup, list_text_4096_keys, MapKind::kList, KeyType::kText, 4096);
BENCHMARK_CAPTURE(one_edit, range_bigint, MapKind::kRange, KeyType::kBigint)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(one_edit, list_text, MapKind::kList, KeyType::kText)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(edit_published, range_bigint, MapKind::kRange, KeyType::kBigint)
    ->Arg(1)
    ->Arg(8)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(edit_published, list_text, MapKind::kList, KeyType::kText)
    ->Arg(8)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(split)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(start_from_replica, range_bigint, MapKind::kRange, KeyType::kBigint)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(start_from_replica, list_text, MapKind::kList, KeyType::kText)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kintsugi::shardmap

BENCHMARK_MAIN();
