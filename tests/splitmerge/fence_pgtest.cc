// The fence by itself: what it stops, and that it lets go without waiting for those who read.
#include "splitmerge/fence.h"

#include <filesystem>
#include <fstream>
#include <future>

#include "splitmerge/disk_space.h"
#include "splitmerge/shardlet_edits.h"
#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class FenceTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    shop(200, 1);
    session_ = must(shardmap::PgSession::connect(dsn(1), true, soon()));
    tables_ = must(describe(*session_, *map()->mapping("tenants"), tables_of_map(), moving(), soon()));
  }
  void TearDown() override {
    session_.reset();
    Moving::TearDown();
  }
  std::vector<Table> tables_of_map() {
    std::vector<Table> all;
    const MapPtr now = map();
    for (const Table* table : now->tables_of("tenants")) all.push_back(*table);
    return all;
  }
  std::vector<shardmap::KeyRange> moving() { return ranges_of(*map()->shardlet("b")); }
  Result<bool> raise() {
    const MapPtr now = map();
    return raise_fence(*session_, {7, now->mapping("tenants"), "b", moving(), &tables_, ""}, 100ms, soon());
  }
  static bool may_write(int tenant, const std::string& as = "SELECT 1") {
    pgtest::Connection pg(dsn(1));
    pg.query(as);
    try {
      pg.query("UPDATE stock SET amount = amount + 1 WHERE tenant = " + std::to_string(tenant));
      return true;
    } catch (const std::exception& refused) {
      EXPECT_NE(std::string(refused.what()).find("shardlet moved"), std::string::npos) << refused.what();
      return false;
    }
  }

  std::unique_ptr<shardmap::PgSession> session_;
  std::vector<MovedTable> tables_;
};

}  // namespace

TEST_F(FenceTest, ItOpensForWritersWhileAReaderHasTheTable) {
  ASSERT_TRUE(must(raise()));
  EXPECT_FALSE(may_write(150));
  EXPECT_TRUE(may_write(50));
  pgtest::Connection reader(dsn(1));
  reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  reader.query("SELECT count(*) FROM stock");
  EXPECT_FALSE(must(drop_fence(*session_, 7, 50ms, soon()))) << "the reader has the table";
  ASSERT_TRUE(must(raise()));
  EXPECT_FALSE(may_write(150));
  ASSERT_TRUE(must(open_fence(*session_, 7, 100ms, soon())));
  EXPECT_TRUE(may_write(150));
  EXPECT_EQ(pgtest::psql(dsn(1), "SELECT count(*) FROM kintsugi.fence"), "0");
  // It can be made to stand again, and opened again.
  ASSERT_TRUE(must(raise()));
  EXPECT_FALSE(may_write(150));
  ASSERT_TRUE(must(open_fence(*session_, 7, 100ms, soon())));
  ASSERT_TRUE(must(open_fence(*session_, 7, 100ms, soon())));
  EXPECT_TRUE(may_write(150));
  reader.query("COMMIT");
  ASSERT_TRUE(must(drop_fence(*session_, 7, 100ms, soon())));
  EXPECT_EQ(pgtest::psql(dsn(1), "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%'"), "0");
}

// Between the look for its triggers and the statement that takes them away the table gets another name.
TEST_F(FenceTest, ItGoesFromATableThatIsRenamedMeanwhile) {
  const auto renamed_during = [](const std::string& from, const std::string& to, const auto& attempt) {
    pgtest::Connection other(dsn(1));
    other.query("BEGIN");
    other.query("ALTER TABLE " + from + " RENAME TO " + to);
    auto done = std::async(std::launch::async, attempt);
    while (pgtest::psql(dsn(1), "SELECT count(*) FROM pg_locks WHERE NOT granted") == "0")
      std::this_thread::sleep_for(1ms);
    other.query("COMMIT");
    return done.get();
  };
  ASSERT_TRUE(must(raise()));
  EXPECT_FALSE(must(renamed_during("stock", "store", [&] { return open_fence(*session_, 7, 10s, soon()); })));
  pgtest::psql(dsn(1), "ALTER TABLE store RENAME TO stock");
  EXPECT_FALSE(may_write(150)) << "this table's still stands";
  ASSERT_TRUE(must(open_fence(*session_, 7, 100ms, soon())));
  EXPECT_TRUE(may_write(150));
  EXPECT_FALSE(must(renamed_during("stock", "store", [&] { return drop_fence(*session_, 7, 10s, soon()); })));
  EXPECT_NE(pgtest::psql(dsn(1), "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%'"), "0");
  ASSERT_TRUE(must(drop_fence(*session_, 7, 100ms, soon())));
  EXPECT_EQ(pgtest::psql(dsn(1), "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%'"), "0");
}

// A loader, or the worker of a subscription to somewhere else, writes like this: ordinary triggers do not see
// it.
TEST_F(FenceTest, ItStopsAlsoWhoeverReplicates) {
  on_both(
      "CREATE TABLE parted (tenant bigint NOT NULL, n int) PARTITION BY RANGE (tenant); CREATE TABLE part "
      "PARTITION OF "
      "parted DEFAULT; INSERT INTO parted VALUES (150, 1), (50, 1)");
  put_table("parted");
  tables_ = must(describe(*session_, *map()->mapping("tenants"), tables_of_map(), moving(), soon()));
  ASSERT_TRUE(must(raise()));
  const std::string replicates = "SET session_replication_role = replica";
  EXPECT_FALSE(may_write(150, replicates));
  EXPECT_TRUE(may_write(50, replicates));
  EXPECT_FALSE(may_write(150, replicates + "; " + passes_fence(8))) << "another job's";
  EXPECT_TRUE(may_write(150, replicates + "; " + passes_fence(7)));
  for (const char* sql : {"TRUNCATE stock", "DELETE FROM part WHERE tenant = 150",
                          "INSERT INTO parted VALUES (160, 1)", "UPDATE parted SET n = 2 WHERE tenant = 150"}) {
    pgtest::Connection pg(dsn(1));
    pg.query(replicates);
    EXPECT_ANY_THROW(pg.query(sql)) << sql;
  }
  ASSERT_TRUE(must(open_fence(*session_, 7, 100ms, soon())));
  EXPECT_TRUE(may_write(150, replicates));
  ASSERT_TRUE(must(raise()));
  EXPECT_FALSE(may_write(150, replicates));
  ASSERT_TRUE(must(drop_fence(*session_, 7, 100ms, soon())));
  EXPECT_TRUE(may_write(150, replicates));
}

TEST_F(FenceTest, TheDiskIsAskedWhereTheRoleMay) {
  auto target = must(shardmap::PgSession::connect(dsn(2), true, soon()));
  const DiskSpace space = must(look_at_disk(*session_, *target, tables_, soon()));
  EXPECT_GT(space.needed, 0U);
  ASSERT_TRUE(space.free) << space.unknown;
  EXPECT_GT(*space.free, 1U << 20);
  EXPECT_EQ(space.where, pgtest::psql(dsn(2), "SHOW data_directory"));
  ASSERT_TRUE(target->run("SET ROLE pg_monitor", {}, soon()));
  const DiskSpace untold = must(look_at_disk(*session_, *target, tables_, soon()));
  EXPECT_FALSE(untold.free);
  EXPECT_NE(untold.unknown.find("may not ask"), std::string::npos) << untold.unknown;
  EXPECT_EQ(untold.needed, space.needed);
}

// A file with a hole stands for a table that is larger than any disk here.
TEST_F(FenceTest, AMoveThatDoesNotFitIsRefused) {
  const std::string file = pgtest::psql(
      dsn(1), "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('stock') || '_init'");
  { std::ofstream made(file); }
  std::error_code problem;
  std::filesystem::resize_file(file, 15ULL << 40, problem);
  if (problem) GTEST_SKIP() << "this file system makes no file of 15 TB: " << problem.message();
  const auto refused = jobs().submit(move_of("b", "s2"), soon());
  std::filesystem::remove(file);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "55000");
  EXPECT_NE(refused.error().message.find("free at " + pgtest::psql(dsn(2), "SHOW data_directory")),
            std::string::npos)
      << refused.error().to_string();
}

// A map store that was restored from a backup gives the same number to another job. What stands under it from
// before is not the fence that is asked for.
TEST_F(FenceTest, AnotherJobsOfTheSameNumberIsNotTakenForIt) {
  ASSERT_TRUE(must(raise()));
  const MapPtr now = map();
  for (const std::string name : {"a", "b", "b"}) {
    const auto ranges = ranges_of(*now->shardlet(name));
    const auto described = must(describe(*session_, *now->mapping("tenants"), tables_of_map(), ranges, soon()));
    ASSERT_TRUE(must(
        raise_fence(*session_, {7, now->mapping("tenants"), name, ranges, &described, ""}, 100ms, soon())));
    EXPECT_EQ(may_write(199), name == "a");
    EXPECT_EQ(may_write(99), name == "b");
    EXPECT_EQ(pgtest::psql(dsn(1), "SELECT shardlet FROM kintsugi.fence"), name);
  }
  // Nor does one of a job that nobody knows any more stand in its way.
  pgtest::psql(dsn(1), "UPDATE kintsugi.fence SET job = '6'");
  ASSERT_TRUE(must(raise()));
  EXPECT_FALSE(may_write(150));
}

}  // namespace kintsugi::splitmerge
