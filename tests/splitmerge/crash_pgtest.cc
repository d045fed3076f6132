// A shard fails, by SIGKILL of all its processes, right behind a step of a move after which something may be
// relied on: it must be there when the server is back, whatever synchronous_commit is for the database. The
// server's WAL writer is frozen beforehand, so that nothing is on disk by chance: only what somebody has waited
// for.
#include <signal.h>

#include "tests/splitmerge/moving.h"
#include "tests/splitmerge/runner_process.h"

namespace kintsugi::splitmerge {
namespace {

constexpr int kFailing = 1;  // of clusters_: the one that has s2 and not the store

class CrashTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    // Nobody else commits on the server that is to fail.
    pgtest::psql(clusters_[kFailing]->dsn(),
                 "ALTER SYSTEM SET autovacuum = off; ALTER DATABASE shard2 SET synchronous_commit = off;"
                 "SELECT pg_reload_conf()");
    ranges();
    shop();
    on_both("CREATE TABLE tickets (tenant bigint, id bigserial, PRIMARY KEY (tenant, id))");
    pgtest::psql(dsn(1), "INSERT INTO tickets (tenant) SELECT generate_series(0, 299)");
    put_table("tickets");
    for (const char* table : kTables) {
      in_b_.push_back(rows(1, table, "tenant >= 100 AND tenant < 200"));
      ASSERT_FALSE(in_b_.back().empty());
    }
  }
  void TearDown() override {
    pgtest::psql(clusters_[kFailing]->dsn(), "ALTER SYSTEM RESET autovacuum; SELECT pg_reload_conf()");
    Moving::TearDown();
  }
  static void stop_wal_writer() {
    pgtest::Connection pg(clusters_[kFailing]->dsn());
    kill(std::stoi(pg.query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")[0][0]),
         SIGSTOP);
  }
  // As after a power cut, but that the kernel still has what it was given.
  static void fail_and_come_back() {
    clusters_[kFailing]->kill();
    clusters_[kFailing]->start();
  }
  void expect_rows_of_b(int shard, bool there) {
    for (std::size_t i = 0; i < std::size(kTables); ++i)
      EXPECT_EQ(rows(shard, kTables[i], "tenant >= 100 AND tenant < 200"),
                there ? in_b_[i] : std::vector<std::string>())
          << kTables[i] << " on s" << shard;
  }
  // Fan-outs read there without leaving anything out.
  void until_revealed() {
    while (!map()->mapping("tenants")->hidden().empty()) std::this_thread::sleep_for(1ms);
  }
  JobInfo ended(std::uint64_t id) {
    JobInfo job = must(jobs().wait(id, soon()));
    runners_.clear();
    return job;
  }

  static constexpr const char* kTables[] = {"orders", "items", "stock", "tickets"};
  std::vector<std::vector<std::string>> in_b_;
};

}  // namespace

// Before the guard stands no other step writes on the target once the rows are deleted there.
TEST_F(CrashTest, WhatAnUndoneMoveHasDeletedOnTheTargetStaysDeleted) {
  const JobInfo job = must(jobs().submit(move_of("b", "s2"), soon()));
  {
    RunnerProcess process(store_dsn(), "move: copied");
    ASSERT_TRUE(process.died(20s)) << story(*jobs().show(job.id, soon()));
  }
  expect_rows_of_b(2, true);
  ASSERT_TRUE(jobs().cancel(job.id, soon()));
  // The next to commit there would be the local map, behind the reveal: it comes too late.
  pgtest::Connection late(dsn(2));
  late.query("BEGIN");
  late.query("LOCK TABLE kintsugi.identity IN EXCLUSIVE MODE");
  stop_wal_writer();
  start_runner();
  until_revealed();
  fail_and_come_back();
  expect_rows_of_b(2, false);
  EXPECT_EQ(ended(job.id).state, JobState::kCanceled);
  expect_rows_of_b(1, true);
  expect_clean();
}

TEST_F(CrashTest, WhatAMoveHasDeletedOnItsSourceStaysDeleted) {
  start_runner();
  ASSERT_EQ(done(move_of("b", "s2")).state, JobState::kDone);
  wait_for_leftovers();
  runners_.clear();
  const JobInfo job = must(jobs().submit(move_of("b", "s1"), soon()));
  {
    RunnerProcess process(store_dsn(), "move: cleaning");
    ASSERT_TRUE(process.died(20s)) << story(*jobs().show(job.id, soon()));
  }
  expect_rows_of_b(2, true);
  pgtest::Connection late(dsn(2));
  late.query("BEGIN");
  late.query("LOCK TABLE kintsugi.identity IN EXCLUSIVE MODE");
  stop_wal_writer();
  start_runner();
  until_revealed();
  fail_and_come_back();
  expect_rows_of_b(2, false);
  const JobInfo moved = ended(job.id);
  EXPECT_EQ(moved.state, JobState::kDone) << story(moved);
  expect_rows_of_b(1, true);
  expect_clean();
}

// What was copied, what was followed, and how far the source's sequences have counted.
TEST_F(CrashTest, WhatIsOnTheTargetAtTheCommitIsThereWhenItComesBack) {
  for (const MoveMode mode : {MoveMode::kOnline, MoveMode::kOffline}) {
    stop_wal_writer();
    JobRequest request = move_of("b", "s2");
    request.mode = mode;
    const JobInfo job = must(jobs().submit(request, soon()));
    {
      RunnerProcess process(store_dsn(), "move: after commit");
      ASSERT_TRUE(process.died(20s)) << story(*jobs().show(job.id, soon()));
    }
    ASSERT_EQ(owner_of("b"), "s2");
    fail_and_come_back();
    expect_rows_of_b(2, true);
    EXPECT_EQ(pgtest::psql(dsn(2), "SELECT last_value, is_called FROM tickets_id_seq"), "300|t");
    start_runner();
    const JobInfo moved = ended(job.id);
    EXPECT_EQ(moved.state, JobState::kDone) << story(moved);
    expect_rows_of_b(2, true);
    expect_rows_of_b(1, false);
    start_runner();
    ASSERT_EQ(done(move_of("b", "s1")).state, JobState::kDone);
    expect_clean();
    runners_.clear();
    pgtest::psql(dsn(2), "SELECT setval('tickets_id_seq', 1, false)");
    if (HasFailure()) FAIL() << story(moved);
  }
}

// The local map answers routers in careful mode: what it has said must not be forgotten.
TEST_F(CrashTest, WhatTheLocalMapSaysItSaysAfterwards) {
  stop_wal_writer();
  must(change().edit({edit::AlterShardlet{"b", {}, "s2", {}}}, soon()));
  const std::string says =
      "SELECT epoch, (SELECT string_agg(name, ',') FROM kintsugi.owned) FROM kintsugi.identity";
  const std::string before = pgtest::psql(dsn(2), says);
  EXPECT_NE(before.find("|b"), std::string::npos) << before;
  fail_and_come_back();
  EXPECT_EQ(pgtest::psql(dsn(2), says), before);
}

}  // namespace kintsugi::splitmerge
