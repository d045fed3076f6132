#include "splitmerge/job_work.h"

#include <algorithm>

#include "base/log.h"
#include "shardmap/failpoint.h"
#include "splitmerge/leftover.h"
#include "splitmerge/rebalance_plan.h"
#include "splitmerge/shardlet_edits.h"
#include "splitmerge/split_point.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::MapEdit;
using shardmap::ShardMap;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
namespace edit = shardmap::edit;

constexpr milliseconds kBackOff{100};
constexpr milliseconds kBackOffMax{5000};
constexpr milliseconds kStoreDeadline{15000};
constexpr milliseconds kPlanDeadline{600000};
constexpr milliseconds kLeftoverLock{10};
constexpr milliseconds kLeftoverLockMax{250};
constexpr int kSeriesMax = 10;

Deadline soon() {
  return Deadline::in(kStoreDeadline);
}

// "3 moves of 120 MB, the fewest that do it"
std::string told(const MovePlan& plan) {
  const std::string bytes = bytes_text(plan.bytes);
  return std::to_string(plan.moves.size()) + " moves of " + bytes +
         (plan.bytes_at_least == plan.bytes
              ? ", the fewest that do it"
              : "; no plan could do it with less than " + bytes_text(plan.bytes_at_least));
}

// Trouble that may be over the next time.
bool may_pass(const Error& error) {
  const std::string& state = error.sqlstate;
  // A disk that is full is a database in need: what was copied there is to go, and not to be copied again.
  if (state == "53100") return false;
  return state.starts_with("08") || state.starts_with("57P") || state.starts_with("53") || state == "55P03" ||
         state == "40P01" || state == sqlstate::kSerializationFailure || state == sqlstate::kShardUnreachable ||
         state == sqlstate::kMapReadOnly;
}

JobLease::Change ending(JobState state) {
  return [state](JobRecord& record) {
    record.info.state = state;
    record.info.ended = utc_now();
    record.info.canceling = false;
    // What is left behind is ours to remove first; another router would do it at the same time.
    if (is_over(record)) {
      record.info.router.clear();
      record.owner.clear();
    }
    record.info.history.push_back({record.info.ended, std::string(name_of(state))});
    if (state != JobState::kFailed) record.info.error.reset();
    if (record.why) record.info.error = record.why;
    record.why.reset();
  };
}

}  // namespace

bool JobWork::past_commit() const {
  const JobState state = lease_.record().info.state;
  return state == JobState::kCommitted || state == JobState::kCleaning;
}

void JobWork::note_error(const Error& error) {
  log::warning("a job met a difficulty", {{"job", lease_.id()}, {"reason", error.to_string()}});
  if (lease_.record().info.error == error) return;
  (void)lease_.update([&error](JobRecord& record) {
    record.info.error = error;
    record.info.history.push_back({utc_now(), error.to_string()});
  });
}

// A copy begins anew after each failure, and a fence after a look at what has changed: a job that comes no
// further than that has its trouble still. Where it was met after long work, it is met afresh, a few times at
// most.
bool JobWork::is_hopeless(const Error& error, JobState state, Clock::duration step_took) {
  const Clock::time_point now = Clock::now();
  const bool worked =
      (state == JobState::kCopying || state == JobState::kCatchingUp) && step_took > tuning_.retry_patience;
  if (!trouble_) {
    trouble_ = Trouble{state, now};
  } else if (worked) {
    trouble_->since = now;
    ++trouble_->series;
  }
  trouble_->state = std::max(trouble_->state, state);
  return !may_pass(error) || now - trouble_->since > tuning_.retry_patience || trouble_->series > kSeriesMax;
}

void JobWork::run() {
  milliseconds back_off = kBackOff;
  while (!is_final(lease_.record().info.state) && !waiting_) {
    if (!lease_.go_on(false)) return;
    const JobState before = lease_.record().info.state;
    const Clock::time_point began = Clock::now();
    if (!lease_.record().undoing && !past_commit() && lease_.cancel_asked()) {
      undo(Error{std::string(sqlstate::kQueryCanceled), "the job was canceled", "", "", 0}, true);
      continue;
    }
    const Status done = lease_.record().undoing ? undo_step() : step();
    if (done) {
      const JobState now = lease_.record().info.state;
      if (now != before) back_off = kBackOff;
      if (trouble_ && now > trouble_->state) trouble_.reset();
      continue;
    }
    if (!lease_.go_on(false)) return;
    const bool forward_only = past_commit() || lease_.record().undoing;
    if (!forward_only && lease_.cancel_asked()) continue;
    note_error(done.error());
    if (!forward_only && is_hopeless(done.error(), before, Clock::now() - began)) {
      undo(done.error(), false);
      trouble_.reset();
      continue;
    }
    lease_.pause(back_off);
    back_off = std::min(2 * back_off, kBackOffMax);
  }
  if (!is_final(lease_.record().info.state) || is_over(lease_.record())) return;
  (void)remove_leftovers();  // somebody comes back for it
}

// One attempt. A lock is asked for only where nobody has had the table for longer than we would make others
// wait.
Status JobWork::remove_leftovers() {
  const JobRecord& record = lease_.record();
  const milliseconds patience =
      std::min(kLeftoverLock * (1 << std::min(record.attempts, 10)), kLeftoverLockMax);
  KG_TRY(const shardmap::StoredMap stored, map_.newest(soon()));
  std::vector<Leftover> left;
  for (const Leftover& each : record.leftovers) {
    const shardmap::Shard* shard = stored.map->shard(each.shard);
    if (shard == nullptr) continue;
    const auto done =
        remove_leftover(each, *shard, job_name(stored.map->store_id(), lease_.id()), lease_, patience);
    if (!done) {
      log::info("what a job has left behind cannot be removed yet",
                {{"job", lease_.id()}, {"reason", done.error().to_string()}});
    }
    if (!done || !*done) left.push_back(each);
  }
  return lease_.update([&](JobRecord& next) {
    next.leftovers = left;
    ++next.attempts;
    next.owner.clear();
    next.info.router.clear();
    if (left.empty()) next.info.history.push_back({utc_now(), "nothing is left behind"});
  });
}

void JobWork::undo(const Error& why, bool canceled) {
  const Status noted = lease_.update([&](JobRecord& record) {
    record.undoing = true;
    record.canceled = canceled;
    record.info.canceling = true;
    if (!canceled) record.info.error = record.why = why;
    record.info.history.push_back({utc_now(), canceled ? "canceling" : "undoing"});
  });
  if (!noted) lease_.pause(kBackOff);
}

Status JobWork::undo_step() {
  KG_CHECK(move_.undo());
  if (lease_.record().split_made) KG_CHECK(unsplit());
  for (const std::uint64_t child : lease_.record().info.children) {
    auto job = JobNotes(store_).find(child, soon());
    if (job && !is_final(job->record.info.state)) {
      (void)store_.put_notes({{kCancelNote, std::to_string(child), utc_now(), {}}}, soon());
      waiting_ = true;  // looked at again with the next turn
    }
  }
  if (waiting_) return {};
  if (lease_.record().info.request.type == JobType::kDrain) KG_CHECK(undrain());
  if (lease_.record().info.request.type == JobType::kProvision) KG_CHECK(provision_.undo());
  return lease_.update(ending(lease_.record().canceled ? JobState::kCanceled : JobState::kFailed));
}

// The shard may be given shardlets again.
Status JobWork::undrain() {
  const std::string name = lease_.record().info.request.shard;
  const auto decide = [&name](const ShardMap& map) -> Result<MapEdit> {
    const shardmap::Shard* shard = map.shard_named(name);
    if (shard == nullptr || shard->state != shardmap::ShardState::kDraining) return MapEdit{};
    return MapEdit{edit::AlterShard{name, {}, {}, {}, shardmap::ShardState::kOnline}};
  };
  KG_CHECK(lease_.commit(
      map_, decide, [](JobRecord&) {}, false, soon()));
  return {};
}

// The two parts become one again, under the old name.
Status JobWork::unsplit() {
  const JobRequest request = lease_.record().info.request;
  const auto decide = [&request](const ShardMap& map) -> Result<MapEdit> {
    if (!map.shardlet(request.into[0]) || !map.shardlet(request.into[1])) return MapEdit{};
    const auto merge = merge_edit(map, request.into, request.shardlets[0]);
    return merge ? *merge : MapEdit{};  // somebody has taken the parts elsewhere: they stay as they are
  };
  KG_CHECK(lease_.commit(
      map_, decide, [](JobRecord& record) { record.split_made = false; }, false, soon()));
  return {};
}

Status JobWork::step() {
  switch (lease_.record().info.state) {
    case JobState::kQueued: return step_queued();
    case JobState::kPreparing:
      if (!lease_.record().info.children.empty()) return look_at_children();
      return lease_.record().work.shardlet.empty() ? step_queued() : move_.prepare();
    case JobState::kCopying:
      if (!lease_.record().info.children.empty()) return look_at_children();
      if (lease_.record().info.request.type == JobType::kProvision) return provision_.fill();
      return move_.copy();
    case JobState::kCatchingUp: return move_.catch_up();
    case JobState::kFenced: return move_.fence();
    case JobState::kCommitted: return move_.publish();
    case JobState::kCleaning: return finish_cleaning();
    case JobState::kDone:
    case JobState::kFailed:
    case JobState::kCanceled: break;
  }
  return {};
}

Status JobWork::step_queued() {
  const JobRequest request = lease_.record().info.request;
  switch (request.type) {
    case JobType::kMove: return move_.begin(request.shardlets[0], request.to);
    case JobType::kSplit: return start_split();
    case JobType::kMerge: return next_of_merge();
    case JobType::kDrain: return start_children("draining");
    case JobType::kRebalance: return start_children("rebalancing");
    case JobType::kProvision:
      return lease_.update([](JobRecord& record) {
        record.info.state = JobState::kCopying;
        record.info.history.push_back({utc_now(), "copying"});
      });
  }
  return {};
}

Status JobWork::start_split() {
  const JobRecord& record = lease_.record();
  if (record.split_made) return move_.begin(record.info.request.move, record.info.request.to);
  if (!record.info.request.at) {
    KG_TRY(const shardmap::StoredMap stored, map_.newest(soon()));
    KG_TRY(const shardmap::Bound at,
           middle_of(*stored.map, record.info.request.shardlets[0], Deadline::in(kPlanDeadline)));
    KG_CHECK(lease_.update([&at](JobRecord& next) { next.info.request.at = at; }));
  }
  return split_here();
}

Status JobWork::split_here() {
  const JobRequest request = lease_.record().info.request;
  const bool moves = !request.to.empty();
  const auto decide = [&request](const ShardMap& map) {
    return split_edit(map, request.shardlets[0], *request.at, request.into[0], request.into[1]);
  };
  shardmap::failpoint("split: before commit");
  KG_TRY(const auto stored, lease_.commit(
                                map_, decide,
                                [&](JobRecord& record) {
                                  record.split_made = true;
                                  if (!moves) ending(JobState::kDone)(record);
                                },
                                true, soon()));
  shardmap::failpoint("split: after commit");
  if (const auto part = stored.map->shardlet(request.into[0]))
    (void)map_.bring_into_step(stored, part->shard, soon());
  return {};
}

Status JobWork::next_of_merge() {
  const JobRequest request = lease_.record().info.request;
  KG_TRY(const shardmap::StoredMap now, map_.newest(soon()));
  for (const std::string& name : request.shardlets) {
    const auto shardlet = now.map->shardlet(name);
    if (!shardlet) return fail(sqlstate::kUndefinedObject, "shardlet \"" + name + "\" does not exist");
    if (now.map->shard(shardlet->shard)->name != request.to) return move_.begin(name, request.to);
  }
  const auto decide = [&request](const ShardMap& map) {
    return merge_edit(map, request.shardlets, request.into[0]);
  };
  shardmap::failpoint("merge: before commit");
  KG_TRY(const auto stored, lease_.commit(map_, decide, ending(JobState::kDone), true, soon()));
  shardmap::failpoint("merge: after commit");
  if (const auto whole = stored.map->shardlet(request.into[0]))
    (void)map_.bring_into_step(stored, whole->shard, soon());
  return {};
}

Status JobWork::finish_cleaning() {
  if (lease_.record().info.request.type == JobType::kProvision)
    return provision_.finish(ending(JobState::kDone));
  if (lease_.record().info.request.type != JobType::kMerge) return move_.clean(ending(JobState::kDone));
  return move_.clean([](JobRecord& record) {
    record.info.state = JobState::kPreparing;
    record.info.history.push_back({utc_now(), "a part has arrived"});
  });
}

// A job for each move of the plan, in the same change as the record that names them.
Status JobWork::start_children(const char* what) {
  const JobRecord parent = lease_.record();
  KG_TRY(shardmap::StoredMap stored, map_.newest(soon()));
  if (parent.info.request.type == JobType::kDrain) {
    const std::string shard = parent.info.request.shard;
    KG_TRY(stored, lease_.commit(
                       map_,
                       [&shard](const ShardMap& map) -> Result<MapEdit> {
                         if (map.shard_named(shard) == nullptr)
                           return fail(sqlstate::kUndefinedObject, "shard \"" + shard + "\" does not exist");
                         return MapEdit{edit::AlterShard{shard, {}, {}, {}, shardmap::ShardState::kDraining}};
                       },
                       [](JobRecord&) {}, true, soon()));
  }
  KG_TRY(const auto plan, plan_of(*stored.map, parent.info.request, Deadline::in(kPlanDeadline)));
  if (plan.moves.empty()) return lease_.update(ending(JobState::kDone));
  std::vector<JobRecord> children;
  std::uint64_t rows = 0;
  for (const PlannedMove& move : plan.moves) {
    JobRecord& child = children.emplace_back();
    child.info.request.type = JobType::kMove;
    child.info.request.shardlets = {move.shardlet};
    child.info.request.to = move.to;
    child.info.request.mode = parent.info.request.mode;
    child.info.request.max_rate = parent.info.request.max_rate;
    child.info.parent = parent.info.id;
    child.info.history.push_back({utc_now(), "queued"});
    child.map = move.map;
    rows += move.rows;
  }
  // Killed between the two, the children run and the parent plans anew: it then finds less to do.
  KG_TRY(const auto added, JobNotes(store_).add(std::move(children), {}, soon()));
  shardmap::failpoint("plan: children added");
  lease_.start_progress(rows);
  return lease_.update([&](JobRecord& record) {
    record.info.state = JobState::kPreparing;
    record.info.history.push_back({utc_now(), std::string(what) + " by " + told(plan)});
    for (const JobRecord& child : added) record.info.children.push_back(child.info.id);
  });
}

Status JobWork::look_at_children() {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::size_t done = 0;
  std::string failed;
  const std::vector<std::uint64_t> children = lease_.record().info.children;
  JobNotes notes(store_);
  for (const std::uint64_t child : children) {
    auto job = notes.find(child, soon());
    if (!job) continue;  // long ended
    const JobInfo& info = job->record.info;
    rows += info.progress.rows;
    bytes += info.progress.bytes;
    if (is_final(info.state)) ++done;
    if (info.state == JobState::kFailed || info.state == JobState::kCanceled) {
      failed += (failed.empty() ? "" : "\n") +
                ("job " + std::to_string(child) + " (" + target_of(info.request) + ") is " +
                 std::string(name_of(info.state)) + (info.error ? ": " + info.error->message : ""));
    }
  }
  const JobProgress now = lease_.record().info.progress;
  if (rows > now.rows || bytes > now.bytes)
    lease_.progress(rows - std::min(rows, now.rows), bytes - std::min(bytes, now.bytes));
  waiting_ = done < children.size();
  if (waiting_) {
    return lease_.update([](JobRecord& record) { record.info.state = JobState::kCopying; });
  }
  if (failed.empty()) return lease_.update(ending(JobState::kDone));
  return lease_.update([&failed](JobRecord& record) {
    record.info.error =
        Error{"55000", "not all of its moves were done", failed, "RESUME JOB plans the rest anew.", 0};
    ending(JobState::kFailed)(record);
  });
}

}  // namespace kintsugi::splitmerge
