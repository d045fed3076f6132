// Takes the rows of a range off a shard that does not own them, in small transactions. Nobody may be writing in
// the range meanwhile. User triggers and foreign keys are not asked. Private to splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "splitmerge/move_tuning.h"
#include "splitmerge/moved_table.h"
#include "splitmerge/shard_link.h"

namespace kintsugi::splitmerge {

// The number of rows deleted. What was deleted stays deleted when it fails.
Result<std::uint64_t> delete_rows(const shardmap::Shard& shard, const std::string& name,
                                  const std::vector<MovedTable>& tables, const MoveTuning& tuning,
                                  JobLease& lease);

}  // namespace kintsugi::splitmerge
