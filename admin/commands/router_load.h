// What a router counts of its statements: by tier and outcome, how long they took, what waited, which shardlets
// are busiest, which statements were slow. A plain value; each thread of the router has one, and they add up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::admin {

enum class StatementTier : std::uint8_t { kRoute, kFanOut, kFinish, kGather, kCopy, kDefinition, kSession };
inline constexpr std::size_t kStatementTiers = 7;
[[nodiscard]] std::string_view name_of(StatementTier tier);

// Of durations in microseconds: bucket i holds those below 2^i, the last all others.
inline constexpr std::size_t kLatencyBuckets = 27;

struct SlowStatement {
  std::int64_t at_ms = 0;  // since 1970
  std::string user, text;  // without literals
  StatementTier tier = StatementTier::kSession;
  std::vector<std::string> shards;
  bool failed = false;
  std::uint64_t total_us = 0;
  std::uint64_t waited_us = 0;  // of that, for a connection
  std::uint64_t held_us = 0;    // of that, for a shardlet that changed hands
};

struct RouterLoad {
  struct Tier {
    std::uint64_t ok = 0, failed = 0, us = 0;
    std::array<std::uint64_t, kLatencyBuckets> latency{};
  };
  std::array<Tier, kStatementTiers> tiers;
  std::uint64_t refused = 0;  // by the router itself, before any shard heard of it
  std::uint64_t held = 0, held_us = 0, slow = 0;
  std::int64_t held_now = 0;
  std::uint64_t cache_hits = 0, cache_misses = 0, cache_evictions = 0, cache_entries = 0, cache_bytes = 0;
  std::vector<std::pair<std::string, std::uint64_t>> shardlets;  // the busiest first, about so many statements
  std::vector<SlowStatement> slowest;                            // the newest first
  int clients = 0, connections = 0;
  std::uint64_t epoch = 0;  // of the map that the slowest thread plans with

  void add(const RouterLoad& other);
};

// The time that this part of the statements took no longer than, by the buckets: 0.99 for the slowest
// hundredth.
[[nodiscard]] std::uint64_t quantile_us(const RouterLoad::Tier& tier, double part);

}  // namespace kintsugi::admin
