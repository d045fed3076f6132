// Locks on a busy server: short transactions that take longer than a fence waits at first, one after the other
// without a gap.
#include <atomic>

#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class PatienceTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    shop();
  }
  // Of other shardlets, in the same tables, on one shard.
  class Writers {
   public:
    Writers(const std::string& dsn, int count) {
      for (int i = 0; i < count; ++i) {
        threads_.emplace_back([this, dsn, i] {
          pgtest::Connection pg(dsn);
          while (!stop_) {
            pg.query("BEGIN");
            pg.query("UPDATE orders SET note = 'x' WHERE tenant = " + std::to_string(i) + " AND id = 1");
            pg.query("UPDATE stock SET amount = amount WHERE tenant = " + std::to_string(i));
            pg.query("SELECT pg_sleep(0.03)");
            pg.query("COMMIT");
          }
        });
      }
    }
    ~Writers() {
      stop_ = true;
      for (std::thread& thread : threads_) thread.join();
    }

   private:
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
  };
  static std::size_t refusals(const JobInfo& job) {
    return static_cast<std::size_t>(
        std::ranges::count(job.history, std::string("the lock was not to be had"), &JobEvent::what));
  }
};

}  // namespace

// With the patience that it begins with, of 2 ms among transactions of 30, it would not get the lock in a
// minute.
TEST_F(PatienceTest, AFenceAmongShortTransactionsIsRaisedAfterAFewAttempts) {
  JobRunnerOptions with = options();
  with.tuning.fence_lock_timeout = 2ms;
  with.tuning.fence_lock_timeout_max = 2000ms;  // however slow this machine is
  start_runner(with);
  const Writers writers(dsn(1), 4);
  const JobInfo job = done(move_of("b", "s2"));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_LE(refusals(job), 10U) << story(job);
}

// Who must be waited for does not make others wait longer.
TEST_F(PatienceTest, ALongTransactionLetsNobodyQueueForLongerThanAtFirst) {
  JobRunnerOptions with = options();
  with.tuning.fence_lock_timeout = 20ms;
  with.tuning.fence_lock_timeout_max = 30000ms;
  with.tuning.fence_retry_after = 1ms;
  const std::uint64_t id = move_that_waits(with);
  pgtest::Connection other(dsn(1));
  for (const Deadline enough = Deadline::in(5000ms); !enough.passed();) {
    const auto began = std::chrono::steady_clock::now();
    other.query("UPDATE orders SET note = 'y' WHERE tenant = 5 AND id = 1");
    EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
  }
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_GE(refusals(job), 2U) << story(job);
  expect_clean();
}

}  // namespace kintsugi::splitmerge
