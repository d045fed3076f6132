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

// Few bytes are moved: each move takes the shardlet that brings the fullest and the emptiest shard nearest to
// each other. Ends when no two shards differ by more than a tenth of the mean, or no move helps. `receivers`
// are the shards to balance, by id.
std::vector<PlannedMove> balance(std::vector<ShardletSize> sizes,
                                 const std::vector<const shardmap::Shard*>& receivers, bool by_rows = false);

// Everything on `from` goes to the emptiest of `receivers`, the largest first.
std::vector<PlannedMove> empty_out(std::vector<ShardletSize> sizes, const shardmap::Shard& from,
                                   const std::vector<const shardmap::Shard*>& receivers);

// Counts the rows of every shardlet of these maps (all maps: none named).
Result<std::vector<ShardletSize>> measure(const shardmap::ShardMap& map, const std::string& only_map,
                                          Deadline deadline);

// For a drain or rebalance; 22023 for other requests, 55000 when a drain has nowhere to go.
Result<std::vector<PlannedMove>> plan_of(const shardmap::ShardMap& map, const JobRequest& request,
                                         Deadline deadline);

}  // namespace kintsugi::splitmerge
