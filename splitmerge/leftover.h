// What a job could not take away from a shard before it ended (job_record.h), taken away later. Private to
// splitmerge/.
#pragma once

#include <chrono>
#include <string>

#include "shardmap/shard_map.h"
#include "splitmerge/job_lease.h"
#include "splitmerge/shard_link.h"

namespace kintsugi::splitmerge {

// One attempt; false: transactions have the tables. Nobody waits behind it for longer than `patience`, and not
// at all where a transaction has had one of the tables for that long already.
Result<bool> remove_leftover(const Leftover& leftover, const shardmap::Shard& shard, const std::string& name,
                             JobLease& lease, std::chrono::milliseconds patience);

}  // namespace kintsugi::splitmerge
