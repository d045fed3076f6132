// Somebody writes, past all routers, to rows on the target that are still arriving there.
#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class GuardTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    shop();
  }
  static JobRunnerOptions by_keys() {
    JobRunnerOptions with = options();
    with.tuning.verify_in_fence = -1ms;  // no table is small enough to be compared as a whole
    return with;
  }
  // "" when it was done.
  static std::string refusal_of(const std::string& sql) {
    try {
      pgtest::Connection(dsn(2)).query(sql);
      return "";
    } catch (const std::exception& refused) {
      return refused.what();
    }
  }
  static bool refuses(const std::string& sql) {
    const std::string refused = refusal_of(sql);
    EXPECT_TRUE(refused.empty() || refused.find("kintsugi: shardlet moved") != std::string::npos) << refused;
    return !refused.empty();
  }
};

}  // namespace

TEST_F(GuardTest, WritesOnTheTargetToWhatIsArrivingAreRefused) {
  const auto orders = all_rows("orders");
  const std::uint64_t id = move_that_waits(by_keys());
  EXPECT_TRUE(refuses("UPDATE stock SET amount = 7 WHERE tenant = 150"));
  EXPECT_TRUE(refuses("INSERT INTO stock VALUES (150, 7) ON CONFLICT (tenant) DO UPDATE SET amount = 7"));
  EXPECT_TRUE(refuses("DELETE FROM orders WHERE tenant = 150"));
  EXPECT_TRUE(refuses("INSERT INTO items (tenant, n) VALUES (150, 1)"));
  EXPECT_TRUE(refuses("COPY items (tenant, n) FROM PROGRAM 'echo \"150\t1\"'"));
  // Neither is a row carried into the range or out of it.
  EXPECT_TRUE(refuses("UPDATE stock SET tenant = 1000 WHERE tenant = 150"));
  EXPECT_FALSE(refuses("INSERT INTO stock VALUES (1000, 1)"));
  EXPECT_TRUE(refuses("UPDATE stock SET tenant = 151 WHERE tenant = 1000"));
  EXPECT_FALSE(refuses("DELETE FROM stock WHERE tenant = 1000"));
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(rows(2, "stock").size(), 100U);
  EXPECT_TRUE(rows(2, "stock", "amount <> 100").empty());
  EXPECT_EQ(rows(2, "orders").size(), 1000U);
  EXPECT_EQ(all_rows("orders").size(), orders.size());
  EXPECT_FALSE(refuses("UPDATE stock SET amount = 7 WHERE tenant = 150"));
  expect_clean();
}

TEST_F(GuardTest, AForeignKeyThatDeletesOnBothShardsIsNoMistake) {
  on_both(
      "CREATE TABLE plans (id bigint PRIMARY KEY); INSERT INTO plans VALUES (1), (2);"
      "ALTER TABLE stock ADD plan bigint REFERENCES plans ON DELETE CASCADE");
  pgtest::psql(dsn(1), "UPDATE stock SET plan = 1 + tenant % 2");
  const std::uint64_t id = move_that_waits(by_keys());
  for (const int shard : {1, 2}) pgtest::psql(dsn(shard), "DELETE FROM plans WHERE id = 2");
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(rows(2, "stock").size(), 50U);
  EXPECT_EQ(all_rows("stock").size(), 150U);
  expect_clean();
}

TEST_F(GuardTest, ItIsGoneWhenTheMoveWasCanceled) {
  const std::uint64_t id = move_that_waits(by_keys());
  must(jobs().cancel(id, soon()));
  // The transaction on the source goes on meanwhile.
  const JobInfo job = must(jobs().wait(id, soon()));
  writer_->query("COMMIT");
  ASSERT_EQ(job.state, JobState::kCanceled) << story(job);
  EXPECT_FALSE(refuses("INSERT INTO stock VALUES (150, 7)"));
  pgtest::psql(dsn(2), "DELETE FROM stock");
  expect_clean();
}

// A report on the target has read the tables and stays: nobody's writes wait for it, nor does the job.
TEST_F(GuardTest, AReaderOnTheTargetThatStaysDelaysNobody) {
  const std::uint64_t id = move_that_waits(by_keys());
  pgtest::Connection reader(dsn(2));
  reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  reader.query("SELECT count(*) FROM stock");
  const JobInfo job = end_of(id);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("the guard's triggers, disabled"), std::string::npos) << story(job);
  EXPECT_FALSE(refuses("UPDATE stock SET amount = 7 WHERE tenant = 150"));
  reader.query("COMMIT");
  expect_clean();
}

}  // namespace kintsugi::splitmerge
