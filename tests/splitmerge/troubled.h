// Moves to whose servers something happens midway. One of them has the map store: the other one is the target,
// or becomes the source, where it is to be stopped.
#pragma once

#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {

class Troubled : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    shop(300, 30);
  }
  void TearDown() override {
    writer_.reset();
    runners_.clear();
    for (auto& cluster : clusters_) {
      if (!cluster->running()) cluster->start();
    }
    Moving::TearDown();
  }

  // b goes to s2, so that s2's server may be stopped while b leaves it.
  void bring_b_to_s2() {
    start_runner();
    const JobInfo job = done(move_of("b", "s2"));
    ASSERT_EQ(job.state, JobState::kDone) << story(job);
    wait_for_leftovers();
    runners_.clear();
  }
  JobInfo until(std::uint64_t id, JobState state) {
    for (const Deadline patience = soon();; std::this_thread::sleep_for(2ms)) {
      const JobInfo job = must(jobs().show(id, soon()));
      if (job.state >= state || patience.passed()) return job;
    }
  }
  // What the job has met, in its history.
  JobInfo until_told(std::uint64_t id, const std::string& what) {
    for (const Deadline patience = soon();; std::this_thread::sleep_for(2ms)) {
      const JobInfo job = must(jobs().show(id, soon()));
      if (story(job).find(what) != std::string::npos) return job;
      if (patience.passed()) throw std::runtime_error("not told: " + what + "\n" + story(job));
    }
  }
  std::uint64_t slow_move(const std::string& target, std::uint64_t rate = 500000) {
    JobRequest request = move_of("b", target);
    request.max_rate = rate;
    return must(jobs().submit(request, soon())).id;
  }
  // Is copying, and has not come to the end of it.
  std::uint64_t move_that_copies(const std::string& target, const JobRunnerOptions& with = options()) {
    start_runner(with);
    const std::uint64_t id = slow_move(target, 100000);
    until_copying(id);
    return id;
  }
  // Has copied and compared its rows, and waits with the fence for a transaction on the source.
  std::uint64_t move_that_waits_to(const std::string& target, const JobRunnerOptions& with = options()) {
    start_runner(with);
    const std::uint64_t id = slow_move(target);
    until_copying(id);
    writer_ = std::make_unique<pgtest::Connection>(dsn(target == "s2" ? 1 : 2));
    writer_->query("BEGIN");
    writer_->query("UPDATE orders SET note = 'slow' WHERE tenant = 199 AND id = 1");
    until(id, JobState::kFenced);
    return id;
  }
  void expect_done(std::uint64_t id, const std::string& place) {
    const JobInfo job = end_of(id);
    EXPECT_EQ(job.state, JobState::kDone) << story(job);
    EXPECT_EQ(owner_of("b"), place);
    expect_nothing_lost();
  }
  // Undone, and it says why; and there is a way on.
  void expect_failed(const JobInfo& job, const std::string& place, const std::string& why) {
    EXPECT_EQ(job.state, JobState::kFailed) << story(job);
    ASSERT_TRUE(job.error) << story(job);
    EXPECT_NE(job.error->to_string().find(why), std::string::npos) << story(job);
    EXPECT_EQ(story(job).find("committed"), std::string::npos) << story(job);
    EXPECT_EQ(owner_of("b"), place);
    EXPECT_EQ(map()->shardlet("b")->state, ShardletState::kOnline);
    expect_nothing_lost();
  }
  void expect_nothing_lost() {
    for (const char* table : {"orders", "items"}) EXPECT_EQ(all_rows(table).size(), 9000U) << table;
    EXPECT_EQ(all_rows("stock").size(), 300U);
    expect_clean();
  }
  // Of the job's two slots the one that is read by the target, or the one that tells which rows have changed.
  static std::string slots_like(std::uint64_t id, bool of_rows) {
    return "slot_name LIKE 'kintsugi\\_%\\_" + std::to_string(id) + (of_rows ? "\\_rows'" : "'");
  }
};

}  // namespace kintsugi::splitmerge
