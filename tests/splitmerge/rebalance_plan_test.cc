// The choice of moves as a function of sizes.
#include "splitmerge/rebalance_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace kintsugi::splitmerge {
namespace {

using shardmap::Shard;
using shardmap::ShardId;

class RebalancePlan : public testing::Test {
 protected:
  RebalancePlan() {
    for (ShardId id = 1; id <= 4; ++id) shards_.push_back({id, "s" + std::to_string(id), "", "", {}});
  }
  std::vector<const Shard*> first(std::size_t n) const {
    std::vector<const Shard*> out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(&shards_[i]);
    return out;
  }
  static ShardletSize size(const std::string& name, ShardId shard, std::uint64_t bytes) {
    return {"m", name, shard, bytes / 10, bytes};
  }
  std::vector<Shard> shards_;
};

}  // namespace

TEST_F(RebalancePlan, LevelShardsAreLeftAlone) {
  EXPECT_TRUE(balance({size("a", 1, 100), size("b", 2, 95)}, first(2)).moves.empty());
  EXPECT_TRUE(balance({}, first(4)).moves.empty());
  EXPECT_TRUE(balance({size("a", 1, 100)}, first(1)).moves.empty());
  // One large shardlet: to carry it elsewhere helps nobody.
  EXPECT_TRUE(balance({size("a", 1, 100)}, first(2)).moves.empty());
}

TEST_F(RebalancePlan, ANewShardGetsTheFewestBytesThatLevelThem) {
  const auto plan =
      balance({size("a", 1, 60), size("b", 1, 50), size("c", 1, 40), size("d", 1, 50)}, first(2)).moves;
  std::uint64_t bytes = 0;
  for (const PlannedMove& move : plan) {
    EXPECT_EQ(move.from, "s1");
    EXPECT_EQ(move.to, "s2");
    bytes += move.bytes;
  }
  // 110 and 90 would differ by a fifth of the mean.
  EXPECT_EQ(bytes, 100U);
}

// Wide rows and narrow ones: what is level by one measure is not by the other.
TEST_F(RebalancePlan, ByRowsTheRowsAreMadeEqual) {
  const std::vector<ShardletSize> sizes{{"m", "wide", 1, 10, 1000},
                                        {"m", "w2", 1, 10, 1000},
                                        {"m", "n1", 2, 500, 1000},
                                        {"m", "n2", 2, 480, 1000}};
  EXPECT_TRUE(balance(sizes, first(2)).moves.empty());
  const auto plan = balance(sizes, first(2), true).moves;
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].shardlet, "n2");
  EXPECT_EQ(plan[0].to, "s1");
  EXPECT_EQ(plan[0].rows, 480U);
}

TEST_F(RebalancePlan, AtRandomItEndsAndNeverMakesTheFullestFuller) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<ShardletSize> sizes;
    std::map<std::string, std::uint64_t> loads;
    const int count = static_cast<int>(random() % 60);
    for (int i = 0; i < count; ++i) {
      const auto shard = static_cast<ShardId>(1 + random() % 4);
      sizes.push_back(size("x" + std::to_string(i), shard, 1 + random() % 1000));
      loads["s" + std::to_string(shard)] += sizes.back().bytes;
    }
    std::uint64_t most = 0;
    for (const auto& [shard, load] : loads) most = std::max(most, load);
    std::map<std::string, int> moves;
    const MovePlan plan = balance(sizes, first(4));
    for (const PlannedMove& move : plan.moves) {
      loads[move.from] -= move.bytes;
      loads[move.to] += move.bytes;
      EXPECT_EQ(++moves[move.shardlet], 1) << "moved twice";
    }
    for (const auto& [shard, load] : loads) EXPECT_LE(load, most);
    EXPECT_LE(plan.bytes_at_least, plan.bytes);
  }
}

TEST_F(RebalancePlan, ADrainSpreadsWhatItTakes) {
  const auto plan =
      empty_out({size("a", 4, 100), size("b", 4, 90), size("c", 4, 80), size("d", 1, 0), size("e", 4, 0)},
                shards_[3], first(3))
          .moves;
  ASSERT_EQ(plan.size(), 4U);
  std::map<std::string, int> to;
  for (const PlannedMove& move : plan) {
    EXPECT_EQ(move.from, "s4");
    ++to[move.to];
  }
  EXPECT_EQ(to.size(), 3U);
}

}  // namespace kintsugi::splitmerge
