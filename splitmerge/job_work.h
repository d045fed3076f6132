// Carries one job from the state it is in to its end: decides which step comes next, tries again what may pass,
// undoes what failed before its commit, and only goes forward after it. One thread, for the life of one lease.
// Private to splitmerge/.
#pragma once

#include "shardmap/map_change.h"
#include "splitmerge/job_lease.h"
#include "splitmerge/move.h"
#include "splitmerge/provision.h"

namespace kintsugi::splitmerge {

class JobWork {
 public:
  JobWork(shardmap::MapStore& store, JobLease& lease, const MoveTuning& tuning)
      : store_(store),
        map_(store),
        lease_(lease),
        tuning_(tuning),
        move_(store, map_, lease, tuning),
        provision_(store, map_, lease, tuning) {}

  // Returns when the job has ended, or the lease is lost, or the program ends; or, for a drain or rebalance,
  // when there is nothing to do but wait for its children.
  void run();

 private:
  Status step();
  Status step_queued();
  Status start_split();
  Status split_here();
  Status next_of_merge();
  Status start_children(const char* what);
  Status look_at_children();
  Status finish_cleaning();
  void undo(const Error& why, bool canceled);
  Status undo_step();
  Status unsplit();
  Status undrain();
  Status remove_leftovers();
  void note_error(const Error& error);
  bool is_hopeless(const Error& error, JobState state, std::chrono::steady_clock::duration step_took);
  [[nodiscard]] bool past_commit() const;

  shardmap::MapStore& store_;
  shardmap::MapChange map_;
  JobLease& lease_;
  const MoveTuning& tuning_;
  Move move_;
  Provision provision_;
  bool waiting_ = false;  // for children
  // What has not passed yet, before the commit.
  struct Trouble {
    JobState state;                               // the furthest in which it was met
    std::chrono::steady_clock::time_point since;  // of the present series
    int series = 1;
  };
  std::optional<Trouble> trouble_;
};

}  // namespace kintsugi::splitmerge
