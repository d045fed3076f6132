// Rows that come out differently, and tables that become others under a move: found before the commit, whatever
// made them so.
#include <functional>

#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class VerifyTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    shop();
    ranges_of_log();
  }
  // Partitioned, nested, with a key of several columns and odd names.
  void ranges_of_log() {
    on_both(R"(
      CREATE TABLE "Lo""g" ("Ten ant" bigint NOT NULL, at date NOT NULL, "n'th" int, note text,
                            PRIMARY KEY ("n'th", at, "Ten ant")) PARTITION BY RANGE (at);
      CREATE TABLE log_old PARTITION OF "Lo""g" FOR VALUES FROM (MINVALUE) TO ('2026-01-01') PARTITION BY LIST ("Ten ant");
      CREATE TABLE log_rest PARTITION OF log_old DEFAULT;
      CREATE TABLE log_new PARTITION OF "Lo""g" DEFAULT;)");
    pgtest::psql(dsn(1),
                 "INSERT INTO \"Lo\"\"g\" SELECT t, date '2025-12-01' + t % 60, 1, 'a' FROM generate_series(0, "
                 "299) t; ANALYZE");
    put_table("Lo\"g", {"Ten ant"});
  }
  static JobRunnerOptions by_keys() {
    JobRunnerOptions with = options();
    with.tuning.verify_in_fence = -1ms;  // no table is small enough to be compared as a whole
    return with;
  }
  static JobRunnerOptions as_a_whole() {
    JobRunnerOptions with = options();
    with.tuning.verify_in_fence = 60s;  // however slow this machine is
    return with;
  }
  JobInfo until(std::uint64_t id, JobState state) {
    for (;;) {
      const JobInfo job = must(jobs().show(id, soon()));
      if (job.state >= state) return job;
      std::this_thread::sleep_for(2ms);
    }
  }
  // A row trigger on the target that fires for what replication brings, as a broken disk would.
  static void spoil(const std::string& table, const std::string& event, const std::string& body) {
    const std::string result = event == "DELETE" ? "OLD" : "NEW";
    pgtest::psql(dsn(2), "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + body +
                             " RETURN " + result + "; END $$; CREATE TRIGGER kintsugi_fence_spoil BEFORE " +
                             event + " ON " + table + " FOR EACH ROW EXECUTE FUNCTION spoil(); ALTER TABLE " +
                             table + " ENABLE ALWAYS TRIGGER kintsugi_fence_spoil");
  }
  static void unspoil(const std::string& table) {
    pgtest::psql(dsn(2), "DROP TRIGGER kintsugi_fence_spoil ON " + table + "; DROP FUNCTION spoil()");
  }
  // A move of b during whose copy `change` is made on the source.
  JobInfo move_while(const std::function<void()>& change, int max_rate = 200000) {
    JobRequest request = move_of("b", "s2");
    request.max_rate = static_cast<std::uint64_t>(max_rate);
    const JobInfo submitted = must(jobs().submit(request, soon()));
    until(submitted.id, JobState::kCopying);
    change();
    return must(jobs().wait(submitted.id, soon()));
  }
  void expect_aborted(const JobInfo& job, const std::string& table, const std::string& detail) {
    EXPECT_EQ(job.state, JobState::kFailed) << story(job);
    if (!job.error) return;
    EXPECT_EQ(job.error->sqlstate, "XX001") << story(job);
    EXPECT_NE(job.error->message.find(table), std::string::npos) << story(job);
    EXPECT_NE(job.error->detail.find(detail), std::string::npos) << story(job);
    EXPECT_EQ(story(job).find("committed"), std::string::npos) << story(job);
    EXPECT_EQ(owner_of("b"), "s1");
    EXPECT_EQ(map()->shardlet("b")->state, ShardletState::kOnline);
    for (const char* name : {"stock", "orders", "items", "\"Lo\"\"g\""})
      EXPECT_TRUE(rows(2, name).empty()) << name;
  }
};

}  // namespace

TEST_F(VerifyTest, ARowThatIsSpoiledOnItsWayIsFoundByItsKeyBeforeTheCommit) {
  start_runner(by_keys());
  spoil("stock", "UPDATE", "IF NEW.tenant = 133 THEN NEW.amount := NEW.amount + 1; END IF;");
  const JobInfo job =
      move_while([] { pgtest::psql(dsn(1), "UPDATE stock SET amount = 5 WHERE tenant IN (133, 134)"); });
  unspoil("stock");
  expect_aborted(job, "public.stock", "1 differ; key (133) not the same on both");
  EXPECT_EQ(rows(1, "stock", "tenant = 133"), std::vector<std::string>{"(133,5)"});
  expect_clean();
  // Nothing is lost, and without the spoiler it succeeds.
  ASSERT_TRUE(jobs().resume(job.id, soon()));
  const JobInfo again = must(jobs().wait(job.id, soon()));
  ASSERT_EQ(again.state, JobState::kDone) << story(again);
  EXPECT_EQ(rows(2, "stock", "tenant = 133"), std::vector<std::string>{"(133,5)"});
  expect_clean();
}

TEST_F(VerifyTest, AnInsertionThatIsLostIsFound) {
  start_runner(by_keys());
  spoil("orders", "INSERT", "IF NEW.id = 777 THEN RETURN NULL; END IF;");
  const JobInfo job =
      move_while([] { pgtest::psql(dsn(1), "INSERT INTO orders VALUES (133, 777, 'x'), (133, 778, 'y')"); });
  unspoil("orders");
  expect_aborted(job, "public.orders", "key (133,777) on the source only");
  expect_clean();
}

TEST_F(VerifyTest, ADeletionThatIsLostIsFoundAlsoInAPartition) {
  start_runner(by_keys());
  spoil("log_rest", "DELETE",
        "IF OLD.\"Ten ant\" = 120 AND (SELECT backend_type FROM pg_stat_activity WHERE pid = pg_backend_pid()) "
        "= 'logical replication worker' THEN RETURN NULL; END IF;");
  const JobInfo job =
      move_while([] { pgtest::psql(dsn(1), "DELETE FROM \"Lo\"\"g\" WHERE \"Ten ant\" IN (120, 121, 150)"); });
  unspoil("log_rest");
  expect_aborted(job, "public.Lo\"g", "key (1,2025-12-01,120) on the target only");
  expect_clean();
}

TEST_F(VerifyTest, RowsWithoutKeyAreComparedByTheShardingKey) {
  start_runner(by_keys());
  spoil("items", "UPDATE", "IF NEW.tenant = 133 THEN NEW.n := NEW.n + 1; END IF;");
  const JobInfo job =
      move_while([] { pgtest::psql(dsn(1), "UPDATE items SET n = 0 WHERE tenant IN (133, 134)"); });
  unspoil("items");
  expect_aborted(job, "public.items", "1 differ; key (133) not the same on both");
  expect_clean();
}

// The fence's own mark brings the trouble: after all comparing that could be done before, and before the
// commit.
TEST_F(VerifyTest, WhatIsSpoiledUnderTheFenceIsFoundBeforeTheCommit) {
  pgtest::psql(dsn(2),
               "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE public.stock SET "
               "amount = -1 WHERE "
               "tenant = 140; RETURN NEW; END $$; CREATE TRIGGER late BEFORE INSERT ON kintsugi.marker FOR "
               "EACH ROW EXECUTE "
               "FUNCTION late(); ALTER TABLE kintsugi.marker ENABLE ALWAYS TRIGGER late");
  for (const bool whole : {true, false}) {
    runners_.clear();
    start_runner(whole ? as_a_whole() : by_keys());
    // Small tables are compared as a whole; of others what has changed.
    const JobInfo job = move_while([whole] {
      if (!whole) pgtest::psql(dsn(1), "UPDATE stock SET amount = 9 WHERE tenant = 140");
    });
    expect_aborted(job, "public.stock", "key (140)");
  }
  pgtest::psql(dsn(2), "DROP TRIGGER late ON kintsugi.marker; DROP FUNCTION late()");
  expect_clean();
}

TEST_F(VerifyTest, ASuccessorComparesWhatThePredecessorHadSeenChange) {
  spoil("stock", "UPDATE", "IF NEW.tenant = 133 THEN NEW.amount := NEW.amount + 1; END IF;");
  // A transaction that keeps the fence from being raised, so that the first mover ends behind the copy.
  pgtest::Connection slow(dsn(1));
  start_runner(by_keys());
  JobRequest request = move_of("b", "s2");
  request.max_rate = 200000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  until(submitted.id, JobState::kCopying);
  slow.query("BEGIN");
  slow.query("UPDATE orders SET note = 'slow' WHERE tenant = 150 AND id = 1");
  pgtest::psql(dsn(1), "UPDATE stock SET amount = 5 WHERE tenant = 133");
  until(submitted.id, JobState::kFenced);
  runners_.clear();
  start_runner(by_keys());
  slow.query("COMMIT");
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  unspoil("stock");
  expect_aborted(job, "public.stock", "key (133) not the same on both");
  expect_clean();
}

// TRUNCATE is told by no publication of ours: it would empty the other shardlets' rows on the target.
TEST_F(VerifyTest, ATableThatIsEmptiedOnTheSourceIsCopiedAnew) {
  start_runner(by_keys());
  const JobInfo job = move_while(
      [] { pgtest::psql(dsn(1), "TRUNCATE stock; INSERT INTO stock VALUES (150, 1), (250, 2)"); }, 50000);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("copying anew"), std::string::npos) << story(job);
  EXPECT_EQ(rows(2, "stock"), std::vector<std::string>{"(150,1)"});
  EXPECT_EQ(rows(1, "stock"), std::vector<std::string>{"(250,2)"});
  expect_clean();
}

TEST_F(VerifyTest, ATableThatIsEmptiedWhileTheFenceIsWaitedForIsCopiedAnew) {
  pgtest::Connection slow(dsn(1));
  start_runner(by_keys());
  JobRequest request = move_of("b", "s2");
  request.max_rate = 200000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  until(submitted.id, JobState::kCopying);
  slow.query("BEGIN");
  slow.query("UPDATE orders SET note = 'slow' WHERE tenant = 150 AND id = 1");
  until(submitted.id, JobState::kFenced);
  pgtest::psql(dsn(1), "TRUNCATE stock");
  slow.query("COMMIT");
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("copying anew"), std::string::npos) << story(job);
  EXPECT_TRUE(rows(2, "stock").empty());
  EXPECT_EQ(rows(2, "orders", "note = 'slow'").size(), 1U);
  expect_clean();
}

// Each shard works the default of a new column out for itself: what clients have seen is what the source has.
TEST_F(VerifyTest, ATableThatIsAlteredMeanwhileIsCopiedAnew) {
  start_runner();
  std::vector<std::string> seen;
  const JobInfo job = move_while(
      [&seen] {
        on_both(
            "ALTER TABLE stock ADD extra uuid DEFAULT gen_random_uuid(); ALTER TABLE \"Lo\"\"g\" DROP note");
        seen = rows(1, "stock", "tenant >= 100 AND tenant < 200");
      },
      50000);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("copying anew"), std::string::npos) << story(job);
  EXPECT_EQ(rows(2, "stock"), seen);
  EXPECT_EQ(rows(2, "\"Lo\"\"g\"").size(), 100U);
  expect_clean();
}

}  // namespace kintsugi::splitmerge
