#include "executor/deadlock.h"

#include <gtest/gtest.h>

namespace kintsugi::executor {
namespace {

std::vector<std::string> chosen(const std::vector<std::pair<std::string, std::string>>& waits) {
  std::set<Wait> all;
  for (const auto& [who, for_whom] : waits) all.insert({who, for_whom, "then"});
  return one_of_each_circle(all);
}

using Names = std::vector<std::string>;

TEST(Deadlock, AChainIsNone) {
  EXPECT_EQ(chosen({}), Names());
  EXPECT_EQ(chosen({{"t1", "t2"}, {"t2", "t3"}, {"t1", "t3"}, {"t4", "t2"}, {"c1:5", "t1"}}), Names());
}

TEST(Deadlock, OfACircleTheLastTransactionIsChosen) {
  EXPECT_EQ(chosen({{"t1", "t2"}, {"t2", "t1"}}), Names{"t2"});
  EXPECT_EQ(chosen({{"t9", "t1"}, {"t1", "t3"}, {"t3", "t2"}, {"t2", "t1"}}), Names{"t3"})
      << "who only waits for a circle is not in it";
}

// A connection of one shard, which may be anybody's, can be a link.
TEST(Deadlock, OthersAreLinksAndAreNotChosen) {
  EXPECT_EQ(chosen({{"t1", "c1:5"}, {"c1:5", "t2"}, {"t2", "t1"}}), Names{"t2"});
  EXPECT_EQ(chosen({{"c1:5", "c1:6"}, {"c1:6", "c1:5"}, {"t1", "c1:5"}}), Names()) << "PostgreSQL's own";
}

TEST(Deadlock, OneOfEachCircle) {
  EXPECT_EQ(chosen({{"t1", "t2"}, {"t2", "t1"}, {"t3", "t4"}, {"t4", "t3"}}), (Names{"t2", "t4"}));
  // Both lead through t3: one end is enough.
  EXPECT_EQ(chosen({{"t1", "t3"}, {"t3", "t1"}, {"t2", "t3"}, {"t3", "t2"}}), Names{"t3"});
  // Two circles with two transactions in common, and the third ends neither.
  EXPECT_EQ(chosen({{"t1", "t2"}, {"t2", "t1"}, {"t2", "t3"}, {"t3", "t1"}}), (Names{"t2"}));
}

}  // namespace
}  // namespace kintsugi::executor
