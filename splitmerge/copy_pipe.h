// Rows from one shard to another, as binary COPY (as text where that would not be understood there): the
// source's messages become the target's, nothing is looked at. Tables side by side under one rate limit.
// Private to splitmerge/.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "splitmerge/moved_table.h"
#include "splitmerge/shard_link.h"

namespace kintsugi::splitmerge {

struct CopyJob {
  shardmap::Shard source, target;
  std::string name;      // of the job's connections
  std::string snapshot;  // exported on the source
  const std::vector<MovedTable>* tables = nullptr;
  int tables_at_once = 1;
  std::uint64_t max_rate = 0;  // bytes a second, 0: none
};

// Returns when all rows are committed on the target; when it fails, what some tables have may be there.
// `go_on` is asked from several threads, some fifty times a second.
Status copy_rows(const CopyJob& job, JobLease& lease, const RawLink::GoOn& go_on);

}  // namespace kintsugi::splitmerge
