#include "splitmerge/job_runner.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "base/log.h"
#include "splitmerge/job_work.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::ShardId;
using std::chrono::milliseconds;

constexpr milliseconds kStoreDeadline{5000};
constexpr const char* kTurnNote = "job_turn";
constexpr std::int64_t kChildrenEveryMs = 200;  // how often a drain looks at its moves
// How often a job that is over tries to remove what it has left, more rarely each time.
constexpr std::int64_t kLeftoversEveryMs = 200;
constexpr std::int64_t kLeftoversMaxMs = 5000;

Deadline soon() {
  return Deadline::in(kStoreDeadline);
}

// The shards that a job works on, now or when it begins.
std::set<ShardId> shards_of(const JobRecord& record, const shardmap::ShardMap& map) {
  std::set<ShardId> shards;
  if (!record.work.shardlet.empty()) return {record.work.source, record.work.target};
  const JobRequest& request = record.info.request;
  if (request.to.empty()) return shards;
  for (const std::string& name : request.shardlets) {
    if (const auto shardlet = map.shardlet(name)) shards.insert(shardlet->shard);
  }
  if (const shardmap::Shard* shard = map.shard_named(request.to)) shards.insert(shard->id);
  return shards;
}

}  // namespace

struct JobRunner::Shared {
  struct Worker {
    std::uint64_t job = 0;
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  JobRunnerOptions options;
  std::string me = shardmap::random_uuid();
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable changed;
  bool look = false;          // guarded
  std::list<Worker> workers;  // of the looking thread
  std::thread thread;

  void run();
  Status take_what_waits(shardmap::MapStore& store, shardmap::MapChange& map);
  bool may_take(const StoredJob& job) const;
  Status take(shardmap::MapStore& store, StoredJob job, std::string& turn);
  void work(Worker& worker, StoredJob job);
  void reap(bool all);
};

bool JobRunner::Shared::may_take(const StoredJob& job) const {
  const std::uint64_t id = job.record.info.id;
  if (std::any_of(workers.begin(), workers.end(), [id](const Worker& worker) { return worker.job == id; }))
    return false;
  if (!job.record.owner.empty()) return job.age_ms > options.lease.count();
  if (is_final(job.record.info.state))
    return job.age_ms > std::min(kLeftoversEveryMs * job.record.attempts, kLeftoversMaxMs);
  return job.record.info.children.empty() || job.age_ms > kChildrenEveryMs;
}

Status JobRunner::Shared::take_what_waits(shardmap::MapStore& store, shardmap::MapChange& map) {
  // Two runners that look at the same time must not begin two jobs on one shard: each beginning is one turn.
  KG_TRY(const auto turns, store.notes(kTurnNote, soon()));
  std::string turn = turns.empty() ? "" : turns[0].body;
  KG_TRY(const auto jobs, JobNotes(store).running(soon()));
  if (std::none_of(jobs.begin(), jobs.end(), [this](const StoredJob& job) { return may_take(job); })) return {};
  KG_TRY(const shardmap::StoredMap stored, map.newest(soon()));
  std::set<ShardId> busy;
  for (const StoredJob& job : jobs) {
    if (job.record.owner.empty() || job.age_ms > options.lease.count() || is_final(job.record.info.state))
      continue;
    for (const ShardId shard : shards_of(job.record, *stored.map)) busy.insert(shard);
  }
  for (const StoredJob& job : jobs) {
    if (workers.size() >= static_cast<std::size_t>(options.parallel)) break;
    if (!may_take(job)) continue;
    const std::set<ShardId> shards = shards_of(job.record, *stored.map);
    // One that has begun must go on, whoever else is there.
    const bool waits = job.record.info.state == JobState::kQueued &&
                       std::any_of(shards.begin(), shards.end(), [&](ShardId id) { return busy.contains(id); });
    if (waits) continue;
    const Status taken = take(store, job, turn);
    if (taken && !is_final(job.record.info.state)) busy.insert(shards.begin(), shards.end());
    if (!taken && taken.error().sqlstate != sqlstate::kSerializationFailure) return taken;
  }
  return {};
}

Status JobRunner::Shared::take(shardmap::MapStore& store, StoredJob job, std::string& turn) {
  JobRecord next = job.record;
  ++next.beat;
  if (!next.owner.empty()) next.info.history.push_back({utc_now(), "taken up by " + options.router});
  next.owner = me;
  next.info.router = options.router;
  if (next.info.started.empty()) next.info.started = utc_now();
  std::vector<shardmap::NoteChange> changes = changes_to(next, job.body);
  const std::string mine = shardmap::random_uuid();
  if (next.info.state == JobState::kQueued) changes.push_back({kTurnNote, "turn", mine, turn});
  KG_CHECK(store.put_notes(changes, soon()));
  if (next.info.state == JobState::kQueued) turn = mine;
  job.record = next;
  job.body = body_of(next);
  Worker& worker = workers.emplace_back();
  worker.job = next.info.id;
  worker.thread =
      std::thread([this, &worker, taken = std::move(job)]() mutable { work(worker, std::move(taken)); });
  return {};
}

void JobRunner::Shared::work(Worker& worker, StoredJob job) {
  const std::uint64_t id = job.record.info.id;
  auto store = shardmap::open_store(options.store, options.directory, soon());
  if (store) {
    JobLease lease(**store, options.store, options.directory, std::move(job), options.lease, stop);
    JobWork(**store, lease, options.tuning).run();
    // Given back at once, not when the lease runs out.
    if (!is_over(lease.record()) && !lease.lost()) {
      (void)lease.update([](JobRecord& record) {
        record.owner.clear();
        record.info.router.clear();
      });
    } else if (lease.lost()) {
      log::warning("the lease of a job was lost; another router will take it up", {{"job", id}});
    } else {
      log::info("a job has ended", {{"job", id}, {"state", name_of(lease.record().info.state)}});
    }
  }
  worker.ended = true;
  const std::lock_guard lock(mutex);
  look = true;
  changed.notify_all();
}

void JobRunner::Shared::reap(bool all) {
  for (auto worker = workers.begin(); worker != workers.end();) {
    if (!all && !worker->ended) {
      ++worker;
      continue;
    }
    worker->thread.join();
    worker = workers.erase(worker);
  }
}

void JobRunner::Shared::run() {
  std::unique_ptr<shardmap::MapStore> store;
  std::optional<shardmap::MapChange> map;
  while (!stop) {
    if (!store) {
      if (auto opened = shardmap::open_store(options.store, options.directory, soon())) {
        store = *std::move(opened);
        map.emplace(*store);
      }
    }
    reap(false);
    if (store) {
      if (const Status looked = take_what_waits(*store, *map); !looked)
        log::debug("the jobs cannot be looked at", {{"reason", looked.error().message}});
    }
    std::unique_lock lock(mutex);
    changed.wait_for(lock, options.poll, [this] { return stop || look; });
    look = false;
  }
  reap(true);
}

JobRunner::JobRunner(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

Result<std::unique_ptr<JobRunner>> JobRunner::start(JobRunnerOptions options) {
  if (options.parallel < 1)
    return fail(sqlstate::kInvalidParameter, "a runner does at least one job at a time");
  auto shared = std::make_unique<Shared>();
  shared->options = std::move(options);
  Shared& its = *shared;
  std::unique_ptr<JobRunner> runner(new JobRunner(std::move(shared)));
  its.thread = std::thread([&its] { its.run(); });
  return runner;
}

JobRunner::~JobRunner() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->changed.notify_all();
  shared_->thread.join();
}

void JobRunner::look_now() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->look = true;
  }
  shared_->changed.notify_all();
}

}  // namespace kintsugi::splitmerge
