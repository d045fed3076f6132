#include "splitmerge/job_lease.h"

#include <algorithm>

#include "base/log.h"

namespace kintsugi::splitmerge {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kStoreDeadline{5000};

Deadline soon() {
  return Deadline::in(kStoreDeadline);
}

bool somebody_elses(const Error& error) {
  return error.sqlstate == sqlstate::kSerializationFailure;
}

tl::unexpected<Error> gone() {
  return fail(sqlstate::kAdminShutdown, "the job is another router's now");
}

}  // namespace

JobLease::JobLease(shardmap::MapStore& store, std::string where, std::string directory, StoredJob job,
                   milliseconds lease, const std::atomic<bool>& stop)
    : store_(store),
      where_(std::move(where)),
      directory_(std::move(directory)),
      lease_(lease),
      stop_(stop),
      record_(std::move(job.record)),
      body_(std::move(job.body)),
      beat_(record_.beat),
      last_good_(Clock::now().time_since_epoch().count()),
      rows_(record_.info.progress.rows),
      bytes_(record_.info.progress.bytes),
      total_(record_.info.progress.total),
      thread_([this] { beat(); }) {}

JobLease::~JobLease() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool JobLease::lost() const {
  if (lost_) return true;
  const Clock::time_point good{Clock::duration(last_good_.load())};
  return Clock::now() - good > lease_;
}

Status JobLease::go_on(bool may_cancel) const {
  if (lost()) return gone();
  if (stop_) return fail(sqlstate::kAdminShutdown, "this router is being stopped");
  if (may_cancel && cancel_) return fail(sqlstate::kQueryCanceled, "the job was canceled");
  return {};
}

void JobLease::pause(milliseconds time) const {
  const auto end = Clock::now() + time;
  const bool canceled = cancel_;
  while (Clock::now() < end && !lost() && !stop_ && cancel_ == canceled) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    std::this_thread::sleep_for(std::clamp(left, milliseconds(1), milliseconds(20)));
  }
}

Status JobLease::put(shardmap::MapStore& store, JobRecord& next) {
  next.beat = ++beat_;
  const auto sent = Clock::now();
  const Status done = store.put_notes(changes_to(next, body_), soon());
  if (!done) {
    if (somebody_elses(done.error())) lost_ = true;
    return done;
  }
  body_ = is_over(next) ? "" : body_of(next);
  last_good_ = sent.time_since_epoch().count();
  return {};
}

Status JobLease::update(const Change& change) {
  const std::lock_guard lock(mutex_);
  if (lost()) return gone();
  JobRecord next = record_;
  fill_progress(next);
  change(next);
  settle_progress(next);
  KG_CHECK(put(store_, next));
  record_ = std::move(next);
  return {};
}

Status JobLease::renew() {
  const std::lock_guard lock(mutex_);
  return put_beat();
}

Status JobLease::put_beat() {
  if (lost()) return gone();
  if (!beat_store_) {
    KG_TRY(beat_store_, shardmap::open_store(where_, directory_, soon()));
  }
  JobRecord next = record_;
  fill_progress(next);
  return put(*beat_store_, next);
}

Result<shardmap::StoredMap> JobLease::commit(shardmap::MapChange& map,
                                             const shardmap::MapChange::Decide& decide, const Change& change,
                                             bool last_call, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (lost()) return gone();
  JobRecord next = record_;
  next.beat = ++beat_;
  fill_progress(next);
  change(next);
  settle_progress(next);
  std::vector<shardmap::NoteChange> notes = changes_to(next, body_);
  // Deleting nothing: only to be sure that it is not there.
  if (last_call) notes.push_back({kCancelNote, std::to_string(next.info.id), {}, ""});
  const auto sent = Clock::now();
  auto done = map.commit(decide, notes, deadline);
  if (!done) {
    const std::string& message = done.error().message;
    if (last_call && message.find(kCancelNote) != std::string::npos) {
      cancel_ = true;
      return fail(sqlstate::kQueryCanceled, "the job was canceled");
    }
    if (somebody_elses(done.error()) && message.starts_with("the note")) lost_ = true;
    // Nobody can say whether it was committed. Whoever takes the job up next will read it in the record.
    if (done.error().sqlstate == sqlstate::kMapReadOnly && !done.error().detail.empty()) lost_ = true;
    return done;
  }
  body_ = body_of(next);
  record_ = std::move(next);
  last_good_ = sent.time_since_epoch().count();
  return done;
}

void JobLease::progress(std::uint64_t rows, std::uint64_t bytes) {
  rows_ += rows;
  bytes_ += bytes;
}

void JobLease::start_progress(std::uint64_t total_rows) {
  rows_ = 0;
  bytes_ = 0;
  total_ = total_rows;
  copy_began_ = Clock::now().time_since_epoch().count();
}

void JobLease::finish_progress() {
  total_ = rows_.load();
}

// Once all is copied there is no more than what was, whatever had been expected.
void JobLease::settle_progress(JobRecord& record) {
  JobProgress& progress = record.info.progress;
  if (record.info.state == JobState::kDone) progress.total = progress.rows;
  if (record.info.state != JobState::kCopying) progress.eta_s.reset();
}

void JobLease::fill_progress(JobRecord& record) const {
  JobProgress& progress = record.info.progress;
  progress.rows = rows_;
  progress.bytes = bytes_;
  progress.total = std::max<std::uint64_t>(total_, progress.rows);
  progress.eta_s.reset();
  const Clock::rep began = copy_began_;
  if (record.info.state != JobState::kCopying || began == 0 || progress.rows == 0) return;
  const double spent =
      std::chrono::duration<double>(Clock::now() - Clock::time_point(Clock::duration(began))).count();
  progress.eta_s =
      spent * static_cast<double>(progress.total - progress.rows) / static_cast<double>(progress.rows);
}

void JobLease::beat() {
  const milliseconds every = std::max(lease_ / 8, milliseconds(20));
  std::unique_lock lock(mutex_);
  while (!ended_ && !lost_) {
    changed_.wait_for(lock, every, [this] { return ended_; });
    if (ended_ || lost() || is_over(record_)) continue;
    const Status done = put_beat();
    if (!done) {
      log::warning("the lease of a job could not be renewed",
                   {{"job", record_.info.id}, {"reason", done.error().message}});
    } else if (JobNotes(*beat_store_).cancel_asked(record_.info.id, soon()).value_or(false)) {
      cancel_ = true;
    }
  }
}

}  // namespace kintsugi::splitmerge
