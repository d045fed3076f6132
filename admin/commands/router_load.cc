#include "admin/commands/router_load.h"

#include <algorithm>

namespace kintsugi::admin {
namespace {

constexpr std::size_t kShardletsMost = 50, kSlowMost = 100;

}  // namespace

std::string_view name_of(StatementTier tier) {
  switch (tier) {
    case StatementTier::kRoute: return "route";
    case StatementTier::kFanOut: return "fan-out";
    case StatementTier::kFinish: return "finish";
    case StatementTier::kGather: return "gather";
    case StatementTier::kCopy: return "copy";
    case StatementTier::kDefinition: return "definition";
    case StatementTier::kSession: return "session";
  }
  return "session";
}

void RouterLoad::add(const RouterLoad& other) {
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    tiers[i].ok += other.tiers[i].ok;
    tiers[i].failed += other.tiers[i].failed;
    tiers[i].us += other.tiers[i].us;
    for (std::size_t k = 0; k < kLatencyBuckets; ++k) tiers[i].latency[k] += other.tiers[i].latency[k];
  }
  refused += other.refused;
  held += other.held;
  held_us += other.held_us;
  held_now += other.held_now;
  slow += other.slow;
  cache_hits += other.cache_hits;
  cache_misses += other.cache_misses;
  cache_evictions += other.cache_evictions;
  cache_entries += other.cache_entries;
  cache_bytes += other.cache_bytes;
  clients += other.clients;
  connections += other.connections;
  if (epoch == 0 || (other.epoch != 0 && other.epoch < epoch)) epoch = other.epoch;
  for (const auto& [name, count] : other.shardlets) {
    const auto at = std::ranges::find(shardlets, name, &std::pair<std::string, std::uint64_t>::first);
    if (at == shardlets.end())
      shardlets.emplace_back(name, count);
    else
      at->second += count;
  }
  std::ranges::sort(shardlets, std::greater(), &std::pair<std::string, std::uint64_t>::second);
  if (shardlets.size() > kShardletsMost) shardlets.resize(kShardletsMost);
  slowest.insert(slowest.end(), other.slowest.begin(), other.slowest.end());
  std::ranges::stable_sort(slowest, std::greater(), &SlowStatement::at_ms);
  if (slowest.size() > kSlowMost) slowest.resize(kSlowMost);
}

std::uint64_t quantile_us(const RouterLoad::Tier& tier, double part) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : tier.latency) all += count;
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(all) * part);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kLatencyBuckets; ++i) {
    seen += tier.latency[i];
    if (seen > wanted) return std::uint64_t{1} << i;
  }
  return 0;
}

}  // namespace kintsugi::admin
