// Moves between two real servers, undisturbed and under load.
#include <atomic>

#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class MoveTest : public Moving {};

}  // namespace

TEST_F(MoveTest, ARangeMovesWithAllItsTables) {
  ranges();
  shop();
  const auto orders = all_rows("orders");
  const auto items = all_rows("items");
  start_runner();
  const JobInfo job = done(move_of("b", "s2"));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(owner_of("b"), "s2");
  EXPECT_EQ(all_rows("orders"), orders);
  EXPECT_EQ(all_rows("items"), items);
  EXPECT_EQ(rows(2, "orders").size(), 1000U);
  EXPECT_EQ(rows(1, "orders", "tenant >= 100 AND tenant < 200").size(), 0U);
  EXPECT_EQ(job.progress.rows, 2100U);
  EXPECT_FALSE(job.started.empty());
  EXPECT_FALSE(job.ended.empty());
  expect_clean();
  // And back.
  const JobInfo back = done(move_of("b", "s1"));
  ASSERT_EQ(back.state, JobState::kDone) << story(back);
  EXPECT_EQ(rows(1, "orders"), orders);
  expect_clean();
}

}  // namespace kintsugi::splitmerge
