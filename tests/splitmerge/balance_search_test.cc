// The cheapest way to level weights, beside one that tries them all.
#include "splitmerge/balance_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

namespace kintsugi::splitmerge {
namespace {

struct Found {
  double cost = -1;  // none
  double gap = 0;
};

double gap_of(const std::vector<Weight>& weights, const std::vector<std::size_t>& place, std::size_t places) {
  std::vector<double> loads(places);
  for (std::size_t i = 0; i < weights.size(); ++i) loads[place[i]] += weights[i].weight;
  const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
  return *most - *least;
}

double cost_of(const std::vector<Weight>& weights, const std::vector<std::size_t>& place) {
  double cost = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) cost += place[i] == weights[i].place ? 0 : weights[i].cost;
  return cost;
}

// The cheapest of all placements whose gap is no more than `width`.
Found of_all(const std::vector<Weight>& weights, std::size_t places, double width) {
  std::vector<std::size_t> place(weights.size());
  Found best;
  for (;;) {
    const double gap = gap_of(weights, place, places);
    const double cost = cost_of(weights, place);
    if (gap <= width && (best.cost < 0 || cost < best.cost)) best = {cost, gap};
    std::size_t i = 0;
    while (i < place.size() && ++place[i] == places) place[i++] = 0;
    if (i == place.size()) return best;
  }
}

double mean_of(const std::vector<Weight>& weights, std::size_t places) {
  double total = 0;
  for (const Weight& weight : weights) total += weight.weight;
  return total / static_cast<double>(places);
}

std::vector<Weight> at_random(std::mt19937& random, std::size_t count, std::size_t places, bool own_cost,
                              unsigned most) {
  std::vector<Weight> weights;
  const std::size_t used = 1 + random() % places;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = 1 + random() % most;
    weights.push_back({weight, own_cost ? 1.0 + random() % 1000 : weight, random() % used});
  }
  return weights;
}

}  // namespace

TEST(BalanceSearch, NothingIsCheaperThanWhatItFinds) {
  std::mt19937 random(7);
  int levelled = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::size_t places = 2 + random() % 3;
    const std::size_t count = 1 + random() % (places == 2 ? 11 : places == 3 ? 7 : 6);
    const auto weights = at_random(random, count, places, random() % 2 == 0, random() % 2 == 0 ? 4 : 1000);
    const double tolerance = mean_of(weights, places) * (random() % 2 == 0 ? 0.1 : 0.5);
    const Placement found = level(weights, places, tolerance);
    EXPECT_DOUBLE_EQ(found.cost, cost_of(weights, found.place));
    EXPECT_DOUBLE_EQ(found.gap, gap_of(weights, found.place, places));
    const Found best = of_all(weights, places, tolerance);
    if (best.cost >= 0) {
      ++levelled;
      ASSERT_LE(found.gap, tolerance) << "round " << round;
      ASSERT_DOUBLE_EQ(found.cost, best.cost) << "round " << round;
    } else {
      ASSERT_DOUBLE_EQ(found.cost, of_all(weights, places, found.gap).cost) << "round " << round;
    }
    ASSERT_DOUBLE_EQ(found.at_least, found.cost) << "round " << round;
  }
  EXPECT_GT(levelled, 1500);
}

TEST(BalanceSearch, NothingLevelIsTouched) {
  EXPECT_EQ(level({}, 3, 0).cost, 0);
  EXPECT_EQ(level({{10, 10, 0}, {9, 9, 1}}, 2, 1).cost, 0);
  // To carry the only one elsewhere would help nobody.
  EXPECT_EQ(level({{10, 10, 0}}, 2, 1).cost, 0);
}

// What stands there as a limit is one, also where not everything could be tried.
TEST(BalanceSearch, TheLimitHoldsWhereTheSearchEndsEarly) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    const auto weights = at_random(random, 9, 3, round % 2 == 0, 1000);
    const double tolerance = mean_of(weights, 3) * 0.1;
    const Placement early = level(weights, 3, tolerance, 20);
    EXPECT_DOUBLE_EQ(early.cost, cost_of(weights, early.place));
    EXPECT_LE(early.at_least, early.cost + 1e-6);
    const Found best = of_all(weights, 3, std::max(tolerance, early.gap));
    ASSERT_GE(best.cost, 0);
    EXPECT_LE(early.at_least, best.cost + 1e-6) << "round " << round;
    EXPECT_LE(best.cost, early.cost);
  }
}

// How far from it the plans for many shardlets may be: figures of docs/operations.md.
TEST(BalanceSearch, OfManyWeightsThePlanIsNearTheLimit) {
  std::mt19937 random(13);
  for (const auto& [count, places] :
       {std::pair(24, 4), std::pair(64, 5), std::pair(200, 5), std::pair(2000, 10)}) {
    double worst = 1;
    double all = 0;
    const int rounds = count > 64 ? 20 : 5;
    for (int round = 0; round < rounds; ++round) {
      auto weights =
          at_random(random, static_cast<std::size_t>(count), static_cast<std::size_t>(places), false, 1000);
      // A shard is new, the others are as they have grown.
      for (Weight& weight : weights) weight.place = random() % static_cast<unsigned>(places - 1);
      const double tolerance = mean_of(weights, static_cast<std::size_t>(places)) * 0.1;
      const Placement found = level(weights, static_cast<std::size_t>(places), tolerance);
      EXPECT_LE(found.gap, tolerance);
      EXPECT_LE(found.at_least, found.cost + 1e-6);
      const double ratio = found.cost / found.at_least;
      worst = std::max(worst, ratio);
      all += ratio / rounds;
    }
    std::printf("%d shardlets on %d shards: %.3f times the limit, at worst %.3f\n", count, places, all, worst);
    EXPECT_LT(worst, 1.25);
  }
}

}  // namespace kintsugi::splitmerge
