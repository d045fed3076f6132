// Which weights have to change their places so that all places bear nearly the same, at the least cost. Pure.
// Private to splitmerge/.
#pragma once

#include <cstddef>
#include <vector>

namespace kintsugi::splitmerge {

struct Weight {
  double weight = 0;
  double cost = 0;        // of being moved
  std::size_t place = 0;  // where it is
};

struct Placement {
  std::vector<std::size_t> place;  // of each weight
  double cost = 0;
  double at_least = 0;  // no placement that is as level costs less than this
  double gap = 0;       // between the fullest and the emptiest place
};

inline constexpr std::size_t kExactWeightsMax = 64;
inline constexpr long kExactNodesMax = 500'000;

// A gap of `tolerance` is wanted; where it is not to be had, or not found, the smallest that moves and
// exchanges between the fullest or the emptiest place and others lead to. Of the placements that reach it the
// cheapest: up to 64 weights all of them are searched, as long as `nodes` go; then cost equals at_least. Beyond
// that the placement is improved until no single change makes it cheaper.
Placement level(const std::vector<Weight>& weights, std::size_t places, double tolerance,
                long nodes = kExactNodesMax);

}  // namespace kintsugi::splitmerge
