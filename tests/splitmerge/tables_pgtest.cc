// Tables that are made, dropped or renamed while a shardlet with rows of theirs moves.
#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class TablesTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    shop();
  }
  std::uint64_t copying(MoveMode mode = MoveMode::kOnline) {
    start_runner();
    JobRequest request = move_of("b", "s2");
    request.max_rate = 100000;
    request.mode = mode;
    const std::uint64_t id = must(jobs().submit(request, soon())).id;
    while (must(jobs().show(id, soon())).state != JobState::kCopying) std::this_thread::sleep_for(1ms);
    return id;
  }
  // As a router does it: on all shards, then in the map.
  void drop_stock() {
    on_both("DROP TABLE stock");
    must(change().edit({edit::DropTable{"public", "stock"}}, soon()));
  }
  void rename(const std::string& table, const std::string& name) {
    on_both("ALTER TABLE " + table + " RENAME TO " + name);
    must(change().edit({edit::DropTable{"public", table},
                        edit::PutTable{Table{"public", name, TableKind::kSharded, "tenants", {"tenant"}}}},
                       soon()));
  }
};

}  // namespace

TEST_F(TablesTest, WhatIsCanceledAfterOneWasDroppedComesToItsEnd) {
  const std::uint64_t id = copying();
  must(jobs().cancel(id, soon()));
  drop_stock();
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kCanceled) << story(job);
  EXPECT_TRUE(rows(2, "orders").empty());
  expect_clean();
}

// Table items has no key: how its rows are identified is restored by whatever name.
TEST_F(TablesTest, WhatIsCanceledAfterTwoWereRenamedLeavesNoRowsBehind) {
  const std::uint64_t id = move_that_waits();
  EXPECT_EQ(rows(2, "stock").size(), 100U);
  rename("stock", "store");
  rename("items", "pieces");
  must(jobs().cancel(id, soon()));
  const JobInfo job = end_of(id);
  EXPECT_EQ(job.state, JobState::kCanceled) << story(job);
  for (const char* table : {"orders", "pieces", "store"}) EXPECT_TRUE(rows(2, table).empty()) << table;
  EXPECT_EQ(rows(1, "store").size(), 300U);
  expect_clean();
}

TEST_F(TablesTest, RowsThatHaveMovedAreDeletedOnTheSourceWhateverTheirTableIsCalledByThen) {
  auto with = options();
  with.tuning.clean_batch_rows = 20;  // of the tables before it: there is time
  with.tuning.clean_pause = 5ms;
  start_runner(with);
  const std::uint64_t id = must(jobs().submit(move_of("b", "s2"), soon())).id;
  while (must(jobs().show(id, soon())).state < JobState::kCleaning) std::this_thread::sleep_for(1ms);
  rename("stock", "store");
  EXPECT_EQ(rows(1, "store", "tenant >= 100 AND tenant < 200").size(), 100U) << "it was too late";
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(rows(1, "store").size(), 200U);
  EXPECT_EQ(rows(2, "store").size(), 100U);
  expect_clean();
}

// It waits for who reads which rows to delete, and who deletes them would wait behind it.
TEST_F(TablesTest, WhatIsAlteredWhileRowsAreDeletedDoesNotWaitForAll) {
  auto with = options();
  with.tuning.clean_batch_rows = 10;
  with.tuning.clean_pause = 10ms;
  start_runner(with);
  const std::uint64_t id = must(jobs().submit(move_of("b", "s2"), soon())).id;
  while (must(jobs().show(id, soon())).state < JobState::kCleaning) std::this_thread::sleep_for(1ms);
  const auto left = [] { return rows(1, "items", "tenant >= 100 AND tenant < 200").size(); };
  while (left() == 1000) std::this_thread::sleep_for(1ms);
  pgtest::psql(dsn(1), "SET lock_timeout = '20s'; ALTER TABLE items ADD COLUMN colour text");
  EXPECT_GT(left(), 0U) << "it was too late";
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(left(), 0U);
  expect_clean();
}

TEST_F(TablesTest, OneThatIsMadeMovesToo) {
  const std::uint64_t id = copying();
  on_both("CREATE TABLE later (tenant bigint, note text)");
  put_table("later");
  pgtest::psql(dsn(1), "INSERT INTO later SELECT t, 'x' FROM generate_series(0, 299) t");
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("other tables than when the move began: copying anew"), std::string::npos)
      << story(job);
  EXPECT_EQ(rows(2, "later").size(), 100U);
  EXPECT_EQ(all_rows("later").size(), 300U);
  EXPECT_EQ(rows(2, "orders").size(), 1000U);
  expect_clean();
}

TEST_F(TablesTest, OneThatIsDroppedIsNoReasonToStay) {
  const std::uint64_t id = copying();
  drop_stock();
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(owner_of("b"), "s2");
  EXPECT_EQ(rows(2, "orders").size(), 1000U);
  expect_clean();
}

TEST_F(TablesTest, OneThatIsRenamedMovesUnderItsNewName) {
  const std::uint64_t id = copying();
  rename("stock", "store");
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(rows(2, "store").size(), 100U);
  expect_clean();
}

// Their rows are on the target already.
TEST_F(TablesTest, OnesThatAreRenamedBeforeTheFenceMoveUnderTheirNewNames) {
  const std::uint64_t id = move_that_waits();
  rename("stock", "store");
  rename("items", "pieces");
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("copying anew"), std::string::npos) << story(job);
  EXPECT_EQ(rows(2, "store").size(), 100U);
  EXPECT_EQ(all_rows("store").size(), 300U);
  EXPECT_EQ(rows(2, "pieces").size(), 1000U);
  EXPECT_EQ(all_rows("pieces").size(), 3000U);
  expect_clean();
}

// By hand, past all routers.
TEST_F(TablesTest, OneThatIsEmptiedOnTheTargetIsCopiedAnew) {
  const auto stock = rows(1, "stock", "tenant >= 100 AND tenant < 200");
  const std::uint64_t id = move_that_waits();
  pgtest::psql(dsn(2), "TRUNCATE stock");
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("copying anew"), std::string::npos) << story(job);
  EXPECT_EQ(rows(2, "stock"), stock);
  expect_clean();
}

// Somebody renames it on the shards and the map does not follow: its rows must not stay where nobody looks for
// them.
TEST_F(TablesTest, OneThatIsCalledOtherwiseThanTheMapSaysIsWaitedFor) {
  const std::uint64_t id = move_that_waits();
  on_both("ALTER TABLE stock RENAME TO store");
  writer_->query("COMMIT");
  for (JobInfo job = must(jobs().show(id, soon()));
       story(job).find("and the map does not know of it yet") == std::string::npos;
       job = must(jobs().show(id, soon()))) {
    ASSERT_FALSE(is_final(job.state)) << story(job);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(owner_of("b"), "s1");
  must(change().edit({edit::DropTable{"public", "stock"},
                      edit::PutTable{Table{"public", "store", TableKind::kSharded, "tenants", {"tenant"}}}},
                     soon()));
  writer_.reset();
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(rows(2, "store").size(), 100U);
  EXPECT_EQ(all_rows("store").size(), 300U);
  expect_clean();
}

// Writes wait for an offline move: it does not begin anew.
TEST_F(TablesTest, AnOfflineMoveIsGivenUp) {
  const std::uint64_t id = copying(MoveMode::kOffline);
  on_both("CREATE TABLE later (tenant bigint, note text)");
  put_table("later");
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_EQ(job.error->sqlstate, "55000") << story(job);
  EXPECT_NE(job.error->message.find("other tables"), std::string::npos) << story(job);
  EXPECT_TRUE(rows(2, "orders").empty());
  expect_clean();
}

// It is published with its table, and has no key: PostgreSQL refuses every UPDATE of it until it is followed by
// all its columns. That must not take until all else is copied.
TEST_F(TablesTest, APartitionThatIsMadeWhileTheRowsAreCopiedCanBeWrittenToSoon) {
  on_both(
      "CREATE TABLE log (tenant bigint NOT NULL, at int NOT NULL, n int) PARTITION BY RANGE (at);"
      "CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (0) TO (100)");
  pgtest::psql(dsn(1), "INSERT INTO log SELECT t, 1, 0 FROM generate_series(0, 299) t; ANALYZE");
  put_table("log");
  start_runner();
  JobRequest request = move_of("b", "s2");
  request.max_rate = 3000;  // a minute
  const std::uint64_t id = must(jobs().submit(request, soon())).id;
  while (must(jobs().show(id, soon())).state != JobState::kCopying) std::this_thread::sleep_for(1ms);
  on_both("CREATE TABLE log_2 PARTITION OF log FOR VALUES FROM (100) TO (200)");
  pgtest::Connection pg(dsn(1));
  pg.query("INSERT INTO log SELECT t, 101, 0 FROM generate_series(0, 299) t");
  bool updated = false;
  for (const Deadline patience = soon(15000ms); !updated && !patience.passed();
       std::this_thread::sleep_for(10ms)) {
    try {
      pg.query("UPDATE log SET n = 1 WHERE tenant = 150 AND at = 101");
      updated = true;
    } catch (const std::runtime_error& refused) {
      EXPECT_NE(std::string(refused.what()).find("replica identity"), std::string::npos) << refused.what();
    }
  }
  EXPECT_TRUE(updated) << story(must(jobs().show(id, soon())));
  must(jobs().cancel(id, soon()));
  EXPECT_EQ(end_of(id).state, JobState::kCanceled);
  expect_clean();
}

}  // namespace kintsugi::splitmerge
