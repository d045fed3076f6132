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
    EXPECT_EQ(until_copying(id).state, JobState::kCopying);
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

}  // namespace kintsugi::splitmerge
