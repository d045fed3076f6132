// Which shardlets should go where: for a drain and a rebalance. The choice is a pure function of sizes; reading
// the sizes is control work on every shard. Private to splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/shard_map.h"
#include "splitmerge/jobs.h"

namespace kintsugi::splitmerge {

struct ShardletSize {
  std::string map, shardlet;
  shardmap::ShardId shard = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

struct MovePlan {
  std::vector<PlannedMove> moves;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_at_least = 0;  // no plan that does as much moves less; equal: this one is the best
};

// No two of `receivers`, which stand in the order of their ids, differ by more than a tenth of the mean
// afterwards, or by as little as can be had, and the fewest bytes are moved for it (balance_search.h).
MovePlan balance(const std::vector<ShardletSize>& sizes, const std::vector<const shardmap::Shard*>& receivers,
                 bool by_rows = false);

// Everything on `from` goes to the emptiest of `receivers`, the largest first.
MovePlan empty_out(std::vector<ShardletSize> sizes, const shardmap::Shard& from,
                   const std::vector<const shardmap::Shard*>& receivers);

// Counts the rows of every shardlet of these maps (all maps: none named).
Result<std::vector<ShardletSize>> measure(const shardmap::ShardMap& map, const std::string& only_map,
                                          Deadline deadline);

// For a drain or rebalance; 22023 for other requests, 55000 when a drain has nowhere to go.
Result<MovePlan> plan_of(const shardmap::ShardMap& map, const JobRequest& request, Deadline deadline);

}  // namespace kintsugi::splitmerge
