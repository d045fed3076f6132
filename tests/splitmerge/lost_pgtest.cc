// What a move follows the source by is taken away under it, or the shard itself becomes another: it begins
// anew, or ends with an error that says what to do; never does it wait for what will not come.
#include <atomic>
#include <functional>

#include "tests/splitmerge/troubled.h"

namespace kintsugi::splitmerge {
namespace {

class LostTest : public Troubled {
 protected:
  // By an administrator who looks for slots that keep the log: as often as somebody comes for it before him.
  static void drop_slot_of(int shard, std::uint64_t id, bool of_rows) {
    pgtest::Connection pg(dsn(shard));
    const std::string which = slots_like(id, of_rows);
    ASSERT_EQ(pg.query("SELECT FROM pg_replication_slots WHERE " + which).size(), 1U);
    for (const Deadline patience = soon(); !patience.passed();) {
      pg.query(
          "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE active_pid IS NOT "
          "NULL AND " +
          which);
      try {
        pg.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE " + which);
        return;
      } catch (const std::runtime_error&) {  // it is in use again
      }
    }
  }
  static void more_log_than_may_be_kept(pgtest::Connection& pg) {
    for (int i = 0; i < 4; ++i)
      pg.query("SELECT pg_switch_wal() FROM pg_logical_emit_message(false, 'x', 'x')");
    pg.query("CHECKPOINT");
  }
  static void keep_log(const std::string& size) {
    pgtest::psql(clusters_[0]->dsn(),
                 "ALTER SYSTEM SET max_slot_wal_keep_size = '" + size + "'; SELECT pg_reload_conf()");
  }
  void TearDown() override {
    pgtest::psql(clusters_[0]->dsn(), "ALTER SYSTEM RESET max_slot_wal_keep_size; SELECT pg_reload_conf()");
    Troubled::TearDown();
  }
  void expect_copied_anew(std::uint64_t id, const std::string& why) {
    const JobInfo job = must(jobs().show(id, soon()));
    EXPECT_NE(story(job).find(why), std::string::npos) << story(job);
    EXPECT_NE(story(job).find("copying anew"), std::string::npos) << story(job);
  }
};

}  // namespace

TEST_F(LostTest, ASlotThatSomebodyDropsWhileItWaitsForTheFence) {
  for (const bool of_rows : {false, true}) {
    const std::uint64_t id = move_that_waits_to("s2");
    drop_slot_of(1, id, of_rows);
    expect_done(id, "s2");
    expect_copied_anew(id, "is gone");
    runners_.clear();
    start_runner();
    ASSERT_EQ(done(move_of("b", "s1")).state, JobState::kDone);
    expect_nothing_lost();
    runners_.clear();
  }
}

TEST_F(LostTest, ASlotThatSomebodyDropsWhileTheRowsAreCopied) {
  for (const bool of_rows : {false, true}) {
    const std::uint64_t id = move_that_copies("s2");
    drop_slot_of(1, id, of_rows);
    expect_done(id, "s2");
    expect_copied_anew(id, "is gone");
    runners_.clear();
    start_runner();
    ASSERT_EQ(done(move_of("b", "s1")).state, JobState::kDone);
    expect_nothing_lost();
    runners_.clear();
  }
}

// One burst of others' log: the move gets by with a new beginning.
TEST_F(LostTest, ASlotThatTheServerGivesUpOnce) {
  const std::uint64_t id = move_that_waits_to("s2");
  keep_log("1MB");
  pgtest::Connection pg(dsn(1));
  while (pg.query("SELECT FROM pg_replication_slots WHERE wal_status = 'lost'").empty())
    more_log_than_may_be_kept(pg);
  keep_log("-1");
  expect_done(id, "s2");
  expect_copied_anew(id, "max_slot_wal_keep_size");
}

TEST_F(LostTest, ASlotThatTheServerGivesUpAgainAndAgainEndsTheMove) {
  keep_log("1MB");
  std::atomic<bool> stop{false};
  std::thread others([&stop] {
    pgtest::Connection pg(dsn(1));
    while (!stop) {
      more_log_than_may_be_kept(pg);
      std::this_thread::sleep_for(20ms);
    }
  });
  start_runner();
  const std::uint64_t id = slow_move("s2");
  const JobInfo job = must(jobs().wait(id, soon()));
  stop = true;
  others.join();
  expect_failed(job, "s1", "max_slot_wal_keep_size");
  EXPECT_FALSE(job.error->hint.empty());
  keep_log("-1");
  ASSERT_TRUE(jobs().resume(id, soon()));
  expect_done(id, "s2");
}

TEST_F(LostTest, ASubscriptionThatSomebodyStopsOrDrops) {
  for (const bool drop : {false, true}) {
    const std::uint64_t id = move_that_waits_to("s2");
    const std::string name = pgtest::psql(dsn(2), "SELECT subname FROM pg_subscription");
    const std::string disable = "ALTER SUBSCRIPTION " + name + " DISABLE";
    pgtest::psql(dsn(2), !drop ? disable
                               : "BEGIN; " + disable + "; ALTER SUBSCRIPTION " + name +
                                     " SET (slot_name = NONE); DROP SUBSCRIPTION " + name + "; COMMIT");
    expect_done(id, "s2");
    expect_copied_anew(id, drop ? "is gone" : "is disabled");
    runners_.clear();
    start_runner();
    ASSERT_EQ(done(move_of("b", "s1")).state, JobState::kDone);
    runners_.clear();
  }
}

TEST_F(LostTest, APublicationThatSomebodyDrops) {
  const std::uint64_t id = move_that_waits_to("s2");
  pgtest::psql(dsn(1), "DROP PUBLICATION " + pgtest::psql(dsn(1), "SELECT pubname FROM pg_publication"));
  expect_done(id, "s2");
  expect_copied_anew(id, "is gone");
}

// The shard fails over to its standby while the move still talks to the server that it was on: what is written
// there counts.
TEST_F(LostTest, AShardThatHasAnotherServerFromNowOn) {
  bring_b_to_s2();
  pgtest::Cluster standby = pgtest::Cluster::standby_of(*clusters_[1]);
  const std::uint64_t id = move_that_waits_to("s1");
  pgtest::psql(dsn(2), "SELECT pg_logical_emit_message(false, 'x', 'x')");
  standby.promote();
  const std::string there = standby.dsn("shard2");
  must(change().reattach_shard("s2", there, soon()));
  pgtest::psql(there, "UPDATE orders SET note = 'after' WHERE tenant = 150");
  const JobInfo job = end_of(id);
  EXPECT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(owner_of("b"), "s1");
  EXPECT_EQ(rows(1, "orders", "tenant = 150 AND note = 'after'").size(), 30U) << story(job);
  EXPECT_EQ(pgtest::psql(there, "SELECT count(*) FROM orders"), "0");
  EXPECT_EQ(pgtest::psql(there, "SELECT count(*) FROM pg_publication"), "0");
  EXPECT_EQ(pgtest::psql(there, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%'"), "0");
  EXPECT_EQ(rows(1, "orders").size(), 9000U);
  EXPECT_EQ(pgtest::psql(dsn(1), "SELECT count(*) FROM pg_subscription"), "0");
  runners_.clear();
}

// Before its rows are hidden there nothing keeps an administrator from dropping the target.
TEST_F(LostTest, ATargetThatIsDroppedBeforeAnythingIsThere) {
  const std::uint64_t id = must(jobs().submit(move_of("b", "s2"), soon())).id;
  clusters_[1]->stop();
  start_runner();
  until_told(id, "cannot be reached");
  must(change().drop_shard("s2", soon()));
  const JobInfo job = must(jobs().wait(id, soon()));
  EXPECT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_NE(story(job).find("s2"), std::string::npos) << story(job);
  EXPECT_EQ(owner_of("b"), "s1");
  EXPECT_EQ(map()->shardlet("b")->state, ShardletState::kOnline);
  EXPECT_TRUE(must(store_->notes("job", soon())).empty());
}

// Whatever goes wrong in the same way each time it is copied: it ends.
TEST_F(LostTest, ACopyThatFailsEachTimeIsGivenUp) {
  pgtest::psql(dsn(2),
               "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room "
               "today' USING "
               "ERRCODE = '53200'; END $$; CREATE TRIGGER kintsugi_fence_spoil BEFORE INSERT ON stock FOR EACH "
               "ROW EXECUTE "
               "FUNCTION spoil(); ALTER TABLE stock ENABLE ALWAYS TRIGGER kintsugi_fence_spoil");
  JobRunnerOptions with = options();
  with.tuning.retry_patience = 1000ms;
  start_runner(with);
  const JobInfo job = done(move_of("b", "s2"));
  pgtest::psql(dsn(2), "DROP TRIGGER kintsugi_fence_spoil ON stock; DROP FUNCTION spoil()");
  expect_failed(job, "s1", "no room today");
  EXPECT_NE(job.error->message.find("\"s2\""), std::string::npos) << story(job);
}

}  // namespace kintsugi::splitmerge
