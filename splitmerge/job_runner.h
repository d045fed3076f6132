// Does the jobs: takes those that wait, or whose router died, and carries each to its end. Every router has one
// and none owns anything: a job whose runner is gone is taken up by another within seconds.
//
// Owned by the program; has threads of its own, each with its own connection to the store. Ending it leaves its
// jobs where they are, for others or for the next start.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"
#include "splitmerge/move_tuning.h"

namespace kintsugi::splitmerge {

struct JobRunnerOptions {
  std::string store;      // as for shardmap::open_store
  std::string directory;  // for relative paths
  std::string router;     // this router's name, shown with the jobs it does
  int parallel = 4;       // jobs at a time; two jobs never work on the same shard at once
  std::chrono::milliseconds poll{200};
  std::chrono::milliseconds lease{4000};  // a job is taken up by another when its runner was silent for so long
  MoveTuning tuning;
};

class JobRunner {
 public:
  static Result<std::unique_ptr<JobRunner>> start(JobRunnerOptions options);
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  void look_now();  // there may be a new job: does not wait for the next poll. Any thread

 private:
  struct Shared;
  explicit JobRunner(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

}  // namespace kintsugi::splitmerge
