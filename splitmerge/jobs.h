// What the command layer calls: SQL, REST and the command line are faces of this. Each call blocks until its
// deadline; nothing here does the work, that is JobRunner's. One object a thread, with a store of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "shardmap/map_store.h"
#include "splitmerge/job.h"

namespace kintsugi::splitmerge {

// One line of a drain's or rebalance's plan.
struct PlannedMove {
  std::string map, shardlet, from, to;
  std::uint64_t rows = 0;   // estimated by the shard's statistics
  std::uint64_t bytes = 0;  // likewise
  friend bool operator==(const PlannedMove&, const PlannedMove&) = default;
};

class Jobs {
 public:
  // The store must outlive this object.
  explicit Jobs(shardmap::MapStore& store) : store_(store) {}

  // Checks the request against the map and the shards, and queues it. What speaks against a move is told all at
  // once: 55000, one reason a line in the detail. 42704 for names that are not there, 22023 for a request that
  // makes no sense, 55006 when another job works on the shardlet.
  Result<JobInfo> submit(const JobRequest& request, Deadline deadline);

  // What a drain or rebalance would do; nothing is changed (WITH (dry_run = true)).
  Result<std::vector<PlannedMove>> plan(const JobRequest& request, Deadline deadline);

  Result<std::vector<JobInfo>> list(Deadline deadline);  // by id; the finished ones too
  Result<JobInfo> show(std::uint64_t id, Deadline deadline);

  // Asks the job to stop and undo; the answer is the job as it is now, wait() tells the end. 55000 when it is
  // past its commit and will finish, or has ended.
  Result<JobInfo> cancel(std::uint64_t id, Deadline deadline);
  // Starts a failed or canceled job again from the beginning; 55000 in any other state.
  Result<JobInfo> resume(std::uint64_t id, Deadline deadline);

  // Returns when the job is done, failed or canceled (its state says which). 57014 when the deadline comes
  // first: the job goes on.
  Result<JobInfo> wait(std::uint64_t id, Deadline deadline);

 private:
  shardmap::MapStore& store_;
};

}  // namespace kintsugi::splitmerge
