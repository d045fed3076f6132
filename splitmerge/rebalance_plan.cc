#include "splitmerge/rebalance_plan.h"

#include <algorithm>
#include <map>

#include "base/sql_quote.h"
#include "shardmap/key_encoding.h"
#include "shardmap/pg_session.h"
#include "splitmerge/balance_search.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::MapKind;
using shardmap::Mapping;
using shardmap::PgRow;
using shardmap::PgSession;
using shardmap::Shard;
using shardmap::ShardId;
using shardmap::ShardMap;
using shardmap::ShardState;
using shardmap::Table;

constexpr double kTolerance = 0.1;

using Loads = std::map<ShardId, double>;

double weight_of(const ShardletSize& size, bool by_rows) {
  return static_cast<double>(by_rows ? size.rows : size.bytes);
}

Loads loads_of(const std::vector<ShardletSize>& sizes, const std::vector<const Shard*>& shards) {
  Loads loads;
  for (const Shard* shard : shards) loads[shard->id] = 0;
  for (const ShardletSize& size : sizes) {
    if (const auto load = loads.find(size.shard); load != loads.end()) load->second += weight_of(size, false);
  }
  return loads;
}

std::string name_of(const std::vector<const Shard*>& shards, ShardId id) {
  for (const Shard* shard : shards) {
    if (shard->id == id) return shard->name;
  }
  return "";
}

bool less_loaded(const Loads::value_type& a, const Loads::value_type& b) {
  return a.second < b.second;
}

// The rows of each shardlet that `table` has on this shard; keys that no shardlet has are passed over.
Status count_rows(PgSession& session, const Mapping& mapping, const Table& table, ShardId shard,
                  std::map<std::string, ShardletSize>& sizes, Deadline deadline) {
  std::string columns;
  for (const std::string& column : table.key)
    columns += (columns.empty() ? "" : ", ") + quote_identifier(column) + "::text";
  const std::string name = quote_identifier(table.schema) + "." + quote_identifier(table.name);
  std::string numbers;
  for (std::size_t i = 0; i < table.key.size(); ++i) numbers += (i > 0 ? ", " : "") + std::to_string(i + 1);
  KG_TRY(const auto total,
         session.query(
             "SELECT pg_total_relation_size(" + quote_literal(name) +
                 "::regclass) + coalesce((SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(" +
                 quote_literal(name) + "::regclass) WHERE isleaf), 0)",
             {}, deadline));
  KG_TRY(const auto rows,
         session.query("SELECT " + columns + ", count(*) FROM " + name + " GROUP BY " + numbers, {}, deadline));
  double all = 0;
  std::map<std::string, std::uint64_t> counts;
  for (const PgRow& row : rows) {
    const std::uint64_t count = std::stoull(*row.back());
    all += static_cast<double>(count);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) texts.push_back(row[i].value_or(""));
    if (std::any_of(row.begin(), row.end(), [](const auto& column) { return !column; })) continue;
    KG_TRY(const std::string key, encode_key(mapping.key_types(), texts));
    const auto shardlet = mapping.find(key);
    if (shardlet && shardlet->shard() == shard) counts[std::string(shardlet->name())] += count;
  }
  for (const auto& [shardlet, count] : counts) {
    ShardletSize& size = sizes[shardlet];
    size.rows += count;
    size.bytes += static_cast<std::uint64_t>(std::stod(*total[0][0]) * static_cast<double>(count) / all);
  }
  return {};
}

}  // namespace

MovePlan balance(const std::vector<ShardletSize>& sizes, const std::vector<const Shard*>& receivers,
                 bool by_rows) {
  MovePlan plan;
  if (receivers.size() < 2) return plan;
  std::vector<Weight> weights;
  std::vector<const ShardletSize*> of;
  double mean = 0;
  for (const ShardletSize& size : sizes) {
    const auto at = std::find_if(receivers.begin(), receivers.end(),
                                 [&size](const Shard* shard) { return shard->id == size.shard; });
    if (at == receivers.end() || weight_of(size, by_rows) == 0) continue;
    weights.push_back({weight_of(size, by_rows), static_cast<double>(size.bytes),
                       static_cast<std::size_t>(at - receivers.begin())});
    of.push_back(&size);
    mean += weights.back().weight / static_cast<double>(receivers.size());
  }
  const Placement best = level(weights, receivers.size(), mean * kTolerance);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (best.place[i] == weights[i].place) continue;
    const ShardletSize& size = *of[i];
    plan.moves.push_back({size.map, size.shardlet, receivers[weights[i].place]->name,
                          receivers[best.place[i]]->name, size.rows, size.bytes});
    plan.bytes += size.bytes;
  }
  // What levels the shards most comes first: whoever stops half-way has the most of it.
  std::stable_sort(plan.moves.begin(), plan.moves.end(),
                   [](const PlannedMove& a, const PlannedMove& b) { return a.bytes > b.bytes; });
  plan.bytes_at_least = static_cast<std::uint64_t>(std::min(best.at_least, best.cost));
  return plan;
}

MovePlan empty_out(std::vector<ShardletSize> sizes, const Shard& from,
                   const std::vector<const Shard*>& receivers) {
  Loads loads = loads_of(sizes, receivers);
  std::erase_if(sizes, [&from](const ShardletSize& size) { return size.shard != from.id; });
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const ShardletSize& a, const ShardletSize& b) { return a.bytes > b.bytes; });
  MovePlan plan;
  for (const ShardletSize& size : sizes) {
    const auto least = std::min_element(loads.begin(), loads.end(), less_loaded);
    plan.bytes += size.bytes;
    plan.moves.push_back(
        {size.map, size.shardlet, from.name, name_of(receivers, least->first), size.rows, size.bytes});
    least->second += static_cast<double>(size.bytes) + 1;  // empty ones are dealt out too
  }
  plan.bytes_at_least = plan.bytes;
  return plan;
}

Result<std::vector<ShardletSize>> measure(const ShardMap& map, const std::string& only_map, Deadline deadline) {
  std::map<std::string, ShardletSize> sizes;
  for (const Mapping* mapping : map.mappings()) {
    if (!only_map.empty() && mapping->name() != only_map) continue;
    for (const shardmap::Shardlet& shardlet : map.shardlets_of(*mapping))
      sizes[shardlet.name] = {mapping->name(), shardlet.name, shardlet.shard, 0, 0};
  }
  for (const Shard* shard : map.shards()) {
    const bool used = std::any_of(sizes.begin(), sizes.end(),
                                  [shard](const auto& size) { return size.second.shard == shard->id; });
    if (!used) continue;
    auto session = PgSession::connect(shard->dsn, true, deadline);
    if (!session) {
      return fail(Error{std::string(sqlstate::kShardUnreachable),
                        "shard \"" + shard->name + "\" cannot be reached", session.error().message, "", 0});
    }
    KG_CHECK(
        (*session)->script("SET datestyle = 'ISO'; SET timezone = 'UTC'; SET bytea_output = 'hex'", deadline));
    for (const Mapping* mapping : map.mappings()) {
      if (!only_map.empty() && mapping->name() != only_map) continue;
      for (const Table* table : map.tables_of(mapping->name()))
        KG_CHECK(count_rows(**session, *mapping, *table, shard->id, sizes, deadline));
    }
  }
  std::vector<ShardletSize> all;
  for (auto& [name, size] : sizes) all.push_back(std::move(size));
  return all;
}

Result<MovePlan> plan_of(const ShardMap& map, const JobRequest& request, Deadline deadline) {
  const bool drain = request.type == JobType::kDrain;
  if (!drain && request.type != JobType::kRebalance)
    return fail(sqlstate::kInvalidParameter, "only a drain or a rebalance has a plan");
  std::vector<const Shard*> receivers;
  for (const Shard* shard : map.shards()) {
    if (shard->state == ShardState::kOnline && (!drain || shard->name != request.shard))
      receivers.push_back(shard);
  }
  KG_TRY(auto sizes, measure(map, request.map, deadline));
  if (!drain) return balance(sizes, receivers, request.by_rows);
  const Shard& from = *map.shard_named(request.shard);
  const bool any = std::any_of(sizes.begin(), sizes.end(),
                               [&from](const ShardletSize& size) { return size.shard == from.id; });
  if (any && receivers.empty())
    return fail("55000", "there is no other shard that could take the shardlets of \"" + from.name + "\"");
  return empty_out(std::move(sizes), from, receivers);
}

}  // namespace kintsugi::splitmerge
