// Our hold on one job: its record, renewed by a thread of its own so that nobody else takes the job up while a
// step runs long. Made by the runner that has put itself into the record as owner.
//
// The worker's thread calls everything; progress(), renew() and go_on() any thread may. Once the lease is lost
// it stays lost: the worker leaves everything as it is.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/deadline.h"
#include "shardmap/map_change.h"
#include "splitmerge/job_notes.h"

namespace kintsugi::splitmerge {

class JobLease {
 public:
  // `store` is the worker's; the renewing thread opens one for itself.
  JobLease(shardmap::MapStore& store, std::string where, std::string directory, StoredJob job,
           std::chrono::milliseconds lease, const std::atomic<bool>& stop);
  ~JobLease();
  JobLease(const JobLease&) = delete;
  JobLease& operator=(const JobLease&) = delete;

  [[nodiscard]] const JobRecord& record() const { return record_; }
  [[nodiscard]] std::uint64_t id() const { return record_.info.id; }

  using Change = std::function<void(JobRecord& record)>;
  // Writes the changed record down. On failure the record is as it was.
  Status update(const Change& change);
  // The same together with an edit of the map; `last_call`: fails with 57014 when somebody has asked to cancel.
  Result<shardmap::StoredMap> commit(shardmap::MapChange& map, const shardmap::MapChange::Decide& decide,
                                     const Change& change, bool last_call, Deadline deadline);
  // Asks the store now. A connection opened before a renewal that succeeds is ours to use: whoever takes the
  // job up later will find it.
  Status renew();

  [[nodiscard]] bool lost() const;
  [[nodiscard]] bool cancel_asked() const { return cancel_; }
  // An error when the lease is lost, the program ends (57P01), or (`may_cancel`) a cancel was asked for
  // (57014).
  [[nodiscard]] Status go_on(bool may_cancel) const;
  // Sleeps, shorter when one of these happens.
  void pause(std::chrono::milliseconds time) const;

  // Counts what was copied; it is written down with the next renewal.
  void progress(std::uint64_t rows, std::uint64_t bytes);
  void start_progress(std::uint64_t total_rows);
  void finish_progress();  // what was counted is the whole

 private:
  using Clock = std::chrono::steady_clock;
  void beat();
  // Under the mutex; `next` gets the next beat.
  Status put(shardmap::MapStore& store, JobRecord& next);
  Status put_beat();
  void fill_progress(JobRecord& record) const;
  static void settle_progress(JobRecord& record);

  shardmap::MapStore& store_;
  std::string where_;
  std::string directory_;
  std::chrono::milliseconds lease_;
  const std::atomic<bool>& stop_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  JobRecord record_;                                // changed by the worker's thread alone, under the mutex
  std::string body_;                                // guarded: what is stored
  std::uint64_t beat_;                              // guarded
  std::unique_ptr<shardmap::MapStore> beat_store_;  // guarded: renewals are of any thread
  bool ended_ = false;                              // guarded
  std::atomic<bool> lost_{false};
  std::atomic<bool> cancel_{false};
  std::atomic<Clock::rep> last_good_;
  std::atomic<std::uint64_t> rows_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> total_{0};
  std::atomic<Clock::rep> copy_began_{0};
  std::thread thread_;
};

}  // namespace kintsugi::splitmerge
