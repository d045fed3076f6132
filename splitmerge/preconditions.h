// What must be so before a job begins: asked of the map and of the shards, all reasons told at once. Changes
// nothing. Private to splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/pg_session.h"
#include "shardmap/shard_map.h"
#include "splitmerge/job.h"
#include "splitmerge/moved_table.h"

namespace kintsugi::splitmerge {

// For a request that settle() has passed. 55000, the reasons a line each in the detail; KG005 when a shard does
// not answer.
Status check_shards(const shardmap::ShardMap& map, const JobRequest& request, Deadline deadline);

// What speaks against this one move; empty: nothing. `rows_expected`: rows of the range that are on the target
// are ours. A table that is missing on the target speaks not against it: the move makes it.
Result<std::vector<std::string>> reasons_against(shardmap::PgSession& source, shardmap::PgSession& target,
                                                 const std::vector<MovedTable>& tables, MoveMode mode,
                                                 bool rows_expected, Deadline deadline);
// The error that tells them.
Error refusal(const std::vector<std::string>& reasons);

}  // namespace kintsugi::splitmerge
