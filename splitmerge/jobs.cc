#include "splitmerge/jobs.h"

#include <algorithm>
#include <set>
#include <thread>

#include "splitmerge/job_notes.h"
#include "splitmerge/preconditions.h"
#include "splitmerge/rebalance_plan.h"
#include "splitmerge/shardlet_edits.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::NoteChange;

constexpr int kAttempts = 50;
constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::milliseconds kLookPatience{5000};

// What a job works on, by name; a drain or rebalance has its children for that.
std::set<std::string> shardlets_of(const JobRequest& request) {
  std::set<std::string> names(request.shardlets.begin(), request.shardlets.end());
  names.insert(request.into.begin(), request.into.end());
  return names;
}

Status check_free(const JobRequest& request, const std::vector<StoredJob>& running) {
  const std::set<std::string> mine = shardlets_of(request);
  for (const StoredJob& other : running) {
    const JobInfo& info = other.record.info;
    if (is_final(info.state)) continue;
    for (const std::string& name : shardlets_of(info.request)) {
      if (mine.contains(name)) {
        return fail(sqlstate::kObjectInUse,
                    "job " + std::to_string(info.id) + " works on shardlet \"" + name + "\"",
                    "Wait for it, or cancel it.");
      }
    }
    const bool same_whole = info.request.type == request.type && request.shardlets.empty() &&
                            info.request.shard == request.shard && info.request.map == request.map;
    if (same_whole) {
      return fail(sqlstate::kObjectInUse, "job " + std::to_string(info.id) + " does this already: " +
                                              std::string(name_of(request.type)) + " " + target_of(request));
    }
  }
  return {};
}

JobRecord queued(JobRequest request, const std::string& map) {
  JobRecord record;
  record.info.request = std::move(request);
  record.info.history.push_back({utc_now(), "queued"});
  record.map = map;
  return record;
}

}  // namespace

Result<JobInfo> Jobs::submit(const JobRequest& request, Deadline deadline) {
  KG_TRY(const shardmap::StoredMap stored, store_.load(deadline));
  std::string map_name;
  KG_TRY(const JobRequest settled, settle(*stored.map, request, map_name));
  JobNotes notes(store_);
  KG_TRY(const auto running, notes.running(deadline));
  KG_CHECK(check_free(settled, running));
  KG_CHECK(check_shards(*stored.map, settled, deadline));
  KG_TRY(const auto added, notes.add({queued(settled, map_name)}, {}, deadline));
  return added[0].info;
}

Result<std::vector<PlannedMove>> Jobs::plan(const JobRequest& request, Deadline deadline) {
  KG_TRY(const shardmap::StoredMap stored, store_.load(deadline));
  std::string map_name;
  KG_TRY(const JobRequest settled, settle(*stored.map, request, map_name));
  KG_TRY(auto plan, plan_of(*stored.map, settled, deadline));
  return std::move(plan.moves);
}

Result<std::vector<JobInfo>> Jobs::list(Deadline deadline) {
  JobNotes notes(store_);
  KG_TRY(const auto running, notes.running(deadline));
  KG_TRY(const auto ended, notes.ended(deadline));
  std::vector<JobInfo> all;
  std::set<std::uint64_t> known;
  for (const auto* some : {&ended, &running}) {  // one that ended in between is among both
    for (const StoredJob& job : *some) {
      if (known.insert(job.record.info.id).second) all.push_back(job.record.info);
    }
  }
  std::sort(all.begin(), all.end(), [](const JobInfo& a, const JobInfo& b) { return a.id < b.id; });
  return all;
}

Result<JobInfo> Jobs::show(std::uint64_t id, Deadline deadline) {
  KG_TRY(const StoredJob job, JobNotes(store_).find(id, deadline));
  return job.record.info;
}

Result<JobInfo> Jobs::cancel(std::uint64_t id, Deadline deadline) {
  JobNotes notes(store_);
  const std::string key = std::to_string(id);
  for (int attempt = 0; attempt < kAttempts && !deadline.passed(); ++attempt) {
    KG_TRY(StoredJob job, notes.find(id, deadline));
    JobInfo& info = job.record.info;
    if (is_final(info.state)) {
      return fail("55000", "job " + key + " has ended: it is " + std::string(name_of(info.state)));
    }
    if (info.state == JobState::kCommitted || info.state == JobState::kCleaning) {
      return fail("55000", "job " + key + " is past its commit and will finish",
                  "To have the shardlet back, move it back.");
    }
    // Not against the record as we have read it: then the commit has been before us, or somebody is at work.
    std::vector<NoteChange> changes{{kJobNote, key, job.body, job.body}, {kCancelNote, key, utc_now(), {}}};
    for (const std::uint64_t child : info.children)
      changes.push_back({kCancelNote, std::to_string(child), utc_now(), {}});
    const Status done = store_.put_notes(changes, deadline);
    if (done) {
      info.canceling = true;
      return info;
    }
    if (done.error().sqlstate != sqlstate::kSerializationFailure) return fail(done.error());
  }
  return fail(sqlstate::kQueryCanceled, "job " + key + " could not be told to stop in time");
}

Result<JobInfo> Jobs::resume(std::uint64_t id, Deadline deadline) {
  KG_TRY(const StoredJob job, JobNotes(store_).find(id, deadline));
  const JobState state = job.record.info.state;
  const std::string key = std::to_string(id);
  if (!job.record.leftovers.empty()) {
    return fail(
        sqlstate::kObjectInUse,
        "job " + key + " has still to remove what it has left behind, for which transactions have to end",
        "Try again when they have.");
  }
  if (state != JobState::kFailed && state != JobState::kCanceled) {
    return fail("55000", "job " + key + " is " + std::string(name_of(state)) +
                             "; only a failed or canceled one can be resumed");
  }
  KG_TRY(const shardmap::StoredMap stored, store_.load(deadline));
  std::string map_name;
  KG_TRY(JobRequest settled, settle(*stored.map, job.record.info.request, map_name));
  KG_TRY(const auto running, JobNotes(store_).running(deadline));
  KG_CHECK(check_free(settled, running));
  KG_CHECK(check_shards(*stored.map, settled, deadline));
  JobRecord again = queued(std::move(settled), map_name);
  again.info.id = id;
  again.info.history = job.record.info.history;
  again.info.history.push_back({utc_now(), "resumed"});
  KG_CHECK(store_.put_notes(
      {{kEndedNote, key, {}, job.body}, {kCancelNote, key, {}, {}}, {kJobNote, key, body_of(again), ""}},
      deadline));
  return again.info;
}

Result<JobInfo> Jobs::wait(std::uint64_t id, Deadline deadline) {
  for (;;) {
    // A look of its own time: cut off in its midst, at the end of the patience, it would cost the connection.
    KG_TRY(JobInfo info, show(id, Deadline::in(kLookPatience)));
    if (is_final(info.state)) return info;
    if (deadline.passed()) {
      return fail(sqlstate::kQueryCanceled,
                  "job " + std::to_string(id) + " is " + std::string(name_of(info.state)) + " and goes on");
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace kintsugi::splitmerge
