#include "splitmerge/balance_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace kintsugi::splitmerge {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::size_t kMovesMax = 10000;
constexpr std::size_t kLooksMax = 20'000'000;  // of an improvement, at weights

using Loads = std::vector<double>;

double gap_of(const Loads& loads) {
  const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
  return *most - *least;
}

// Some difference is only that of sums made in another order.
double with_rounding(double value, double scale) {
  return value + 1e-9 * scale;
}

// How much has to change its place at the least until all loads are within [low, low + width] for some low:
// what is above, and what is missing below, whichever is more. The first shrinks with a higher low, the second
// grows.
double least_change(Loads loads, double width) {
  std::sort(loads.begin(), loads.end());
  const auto above_and_below = [&](double low) {
    double above = 0;
    double below = 0;
    for (const double load : loads) {
      above += std::max(0.0, load - low - width);
      below += std::max(0.0, low - load);
    }
    return std::pair(above, below);
  };
  // Between two neighbouring corners both are straight lines.
  Loads corners = loads;
  for (const double load : loads) corners.push_back(load - width);
  std::sort(corners.begin(), corners.end());
  double before = corners.front();
  for (const double corner : corners) {
    const auto [above, below] = above_and_below(corner);
    if (below < above) {
      before = corner;
      continue;
    }
    const auto [above_before, below_before] = above_and_below(before);
    const double closing = (above_before - below_before) + (below - above);
    const double part = closing > 0 ? (above_before - below_before) / closing : 0;
    return std::max(0.0, above_before + part * (above - above_before));
  }
  return 0;
}

// From the fullest place to the emptiest, each time what leaves the two nearest to each other.
std::vector<std::size_t> one_after_the_other(const std::vector<Weight>& weights, Loads loads,
                                             double tolerance) {
  std::vector<std::size_t> place(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) place[i] = weights[i].place;
  std::vector<bool> moved(weights.size());
  for (std::size_t moves = 0; moves < kMovesMax && gap_of(loads) > tolerance; ++moves) {
    const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
    const auto from = static_cast<std::size_t>(most - loads.begin());
    std::size_t best = weights.size();
    double best_left = *most - *least;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (place[i] != from || moved[i]) continue;
      const double left = std::abs(*most - *least - 2 * weights[i].weight);
      if (left > best_left ||
          (left == best_left && (best == weights.size() || weights[i].cost >= weights[best].cost)))
        continue;
      best = i;
      best_left = left;
    }
    if (best == weights.size()) break;
    moved[best] = true;
    place[best] = static_cast<std::size_t>(least - loads.begin());
    *most -= weights[best].weight;
    *least += weights[best].weight;
  }
  return place;
}

// Between the fullest or the emptiest place and another, one for one or one for none, as long as the squares of
// the loads become less by it. For what one_after_the_other() does not find.
void exchange(const std::vector<Weight>& weights, double tolerance, std::vector<std::size_t>& place,
              Loads& loads) {
  if (weights.size() * weights.size() / loads.size() > kLooksMax) return;
  const std::size_t none = weights.size();
  for (std::size_t steps = 0; steps < kMovesMax && gap_of(loads) > tolerance; ++steps) {
    const auto [emptiest, fullest] = std::minmax_element(loads.begin(), loads.end());
    const auto least = static_cast<std::size_t>(emptiest - loads.begin());
    const auto most = static_cast<std::size_t>(fullest - loads.begin());
    double best = -1e-9 * *fullest * *fullest;
    std::size_t one = none;
    std::size_t other = none;
    std::size_t to = 0;
    const auto consider = [&](std::size_t i, std::size_t k, std::size_t q) {
      const double shift = weights[i].weight - (k == none ? 0 : weights[k].weight);
      const double change = 2 * shift * (loads[q] - loads[place[i]] + shift);
      if (change < best) std::tie(best, one, other, to) = std::tuple(change, i, k, q);
    };
    for (std::size_t i = 0; i < weights.size(); ++i) {
      for (std::size_t q = 0; q < loads.size(); ++q) {
        if (q != place[i] && (place[i] == most || q == least)) consider(i, none, q);
      }
      if (place[i] != most) continue;
      for (std::size_t k = 0; k < weights.size(); ++k) {
        if (place[k] != most) consider(i, k, place[k]);
      }
    }
    for (std::size_t k = 0; k < weights.size(); ++k) {
      if (place[k] != least) continue;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (place[i] != least) consider(i, k, least);
      }
    }
    if (one == none) return;
    const double shift = weights[one].weight - (other == none ? 0 : weights[other].weight);
    loads[place[one]] -= shift;
    loads[to] += shift;
    if (other != none) place[other] = place[one];
    place[one] = to;
  }
}

// All placements within `width`, the cheapest of them: depth first, the heavy ones first.
class Search {
 public:
  Search(const std::vector<Weight>& weights, std::size_t places, double width, long nodes)
      : weights_(weights), width_(width), nodes_(nodes), order_(weights.size()), fixed_(places), rest_(places) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      const Weight& x = weights[a];
      const Weight& y = weights[b];
      return std::tuple(-x.weight, x.place, x.cost) < std::tuple(-y.weight, y.place, y.cost);
    });
    for (const Weight& weight : weights) rest_[weight.place] += weight.weight;
    for (const double load : rest_) mean_ += load / static_cast<double>(places);
    for (const double load : rest_) total_ += load;
    cheapest_.assign(weights.size() + 1, kInfinite);
    for (std::size_t i = weights.size(); i-- > 0;) {
      const Weight& weight = weights[order_[i]];
      cheapest_[i] = std::min(cheapest_[i + 1], weight.weight > 0 ? weight.cost / weight.weight : kInfinite);
    }
    place_.resize(weights.size());
  }

  // What is cheaper than `bound`. None: there is nothing, or it was not found in time.
  std::optional<std::vector<std::size_t>> run(double bound) {
    bound_ = bound;
    step(0, 0);
    return std::exchange(found_, std::nullopt);
  }
  [[nodiscard]] bool complete() const { return nodes_ > 0; }
  [[nodiscard]] double at_least() const { return still_to_pay(0); }
  [[nodiscard]] double cost() const { return bound_; }

 private:
  [[nodiscard]] double still_to_pay(std::size_t i) const {
    Loads loads(fixed_.size());
    for (std::size_t p = 0; p < loads.size(); ++p) loads[p] = fixed_[p] + rest_[p];
    const double change = least_change(std::move(loads), with_rounding(width_, total_));
    if (change <= 1e-9 * total_) return 0;
    return cheapest_[i] == kInfinite ? kInfinite : change * cheapest_[i];
  }

  void step(std::size_t i, double cost) {
    if (--nodes_ <= 0) return;
    if (cost + still_to_pay(i) >= bound_ * (1 - 1e-12)) return;
    if (i == order_.size()) {
      bound_ = cost;
      found_ = place_;
      return;
    }
    const Weight& weight = weights_[order_[i]];
    const Weight* before = i > 0 ? &weights_[order_[i - 1]] : nullptr;
    // Of weights that are one as good as the other only one order is tried.
    const bool twin = before != nullptr && before->weight == weight.weight && before->cost == weight.cost &&
                      before->place == weight.place;
    const std::size_t first = twin ? rank(place_[order_[i - 1]], weight.place) : 0;
    rest_[weight.place] -= weight.weight;
    for (std::size_t r = first; r < fixed_.size() && nodes_ > 0; ++r) {
      const std::size_t to = place_of_rank(r, weight.place);
      if (fixed_[to] + weight.weight > with_rounding(mean_ + width_, total_) ||
          like_an_earlier(to, weight.place))
        continue;
      fixed_[to] += weight.weight;
      place_[order_[i]] = to;
      step(i + 1, cost + (to == weight.place ? 0 : weight.cost));
      fixed_[to] -= weight.weight;
    }
    rest_[weight.place] += weight.weight;
  }

  // Its own place first: that costs nothing.
  static std::size_t rank(std::size_t place, std::size_t own) {
    return place == own ? 0 : place < own ? place + 1 : place;
  }
  static std::size_t place_of_rank(std::size_t rank, std::size_t own) {
    return rank == 0 ? own : rank <= own ? rank - 1 : rank;
  }
  // Two empty places that have nothing of their own are one.
  [[nodiscard]] bool like_an_earlier(std::size_t to, std::size_t own) const {
    if (to == own || fixed_[to] != 0 || rest_[to] != 0) return false;
    for (std::size_t p = 0; p < to; ++p) {
      if (p != own && fixed_[p] == 0 && rest_[p] == 0) return true;
    }
    return false;
  }

  const std::vector<Weight>& weights_;
  double width_;
  long nodes_;
  double bound_ = kInfinite;
  std::vector<std::size_t> order_;
  Loads fixed_, rest_;  // what is placed, and what is not yet, where it is
  double mean_ = 0, total_ = 0;
  std::vector<double> cheapest_;  // a unit of weight, of those from here on
  std::vector<std::size_t> place_;
  std::optional<std::vector<std::size_t>> found_;
};

// Whatever single move can be left out, or made of something cheaper, is.
void improve(const std::vector<Weight>& weights, Loads loads, double width, std::vector<std::size_t>& place) {
  std::vector<std::size_t> moved;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (place[i] != weights[i].place) moved.push_back(i);
  }
  if (moved.size() * weights.size() > kLooksMax) return;
  std::sort(moved.begin(), moved.end(),
            [&](std::size_t a, std::size_t b) { return weights[a].cost > weights[b].cost; });
  for (const std::size_t i : moved) {
    const Weight& one = weights[i];
    const std::size_t to = place[i];
    loads[to] -= one.weight;
    loads[one.place] += one.weight;
    std::size_t best = weights.size();
    double best_cost = one.cost;
    if (gap_of(loads) <= width) {
      best_cost = 0;
    } else {
      for (std::size_t k = 0; k < weights.size(); ++k) {
        const Weight& other = weights[k];
        if (place[k] != other.place || k == i || other.place == to || other.cost >= best_cost) continue;
        loads[other.place] -= other.weight;
        loads[to] += other.weight;
        if (gap_of(loads) <= width) {
          best = k;
          best_cost = other.cost;
        }
        loads[other.place] += other.weight;
        loads[to] -= other.weight;
      }
    }
    if (best_cost == one.cost) {
      loads[to] += one.weight;
      loads[one.place] -= one.weight;
      continue;
    }
    place[i] = one.place;
    if (best == weights.size()) continue;
    place[best] = to;
    loads[weights[best].place] -= weights[best].weight;
    loads[to] += weights[best].weight;
  }
}

double cost_of(const std::vector<Weight>& weights, const std::vector<std::size_t>& place) {
  double cost = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) cost += place[i] == weights[i].place ? 0 : weights[i].cost;
  return cost;
}

Loads loads_of(const std::vector<Weight>& weights, const std::vector<std::size_t>& place, std::size_t places) {
  Loads loads(places);
  for (std::size_t i = 0; i < weights.size(); ++i) loads[place[i]] += weights[i].weight;
  return loads;
}

}  // namespace

Placement level(const std::vector<Weight>& weights, std::size_t places, double tolerance, long nodes) {
  Placement result;
  for (const Weight& weight : weights) result.place.push_back(weight.place);
  const Loads now = loads_of(weights, result.place, places);
  result.gap = gap_of(now);
  if (result.gap <= tolerance) return result;
  result.place = one_after_the_other(weights, now, tolerance);
  Loads loads = loads_of(weights, result.place, places);
  exchange(weights, tolerance, result.place, loads);
  result.gap = gap_of(loads);
  result.cost = cost_of(weights, result.place);
  const bool small = weights.size() <= kExactWeightsMax;
  double width = tolerance;
  if (result.gap > tolerance) {
    // Not reached: it may be for lack of looking.
    Search search(weights, places, tolerance, nodes);
    const auto found = small ? search.run(kInfinite) : std::nullopt;
    if (found) {
      result.place = *found;
    } else {
      width = result.gap;
    }
  }
  double total = 0;
  for (const double load : now) total += load;
  improve(weights, loads_of(weights, result.place, places), with_rounding(width, total), result.place);
  result.cost = cost_of(weights, result.place);
  Search search(weights, places, width, nodes);
  result.at_least = search.at_least();
  if (small) {
    if (const auto found = search.run(result.cost)) {
      result.place = *found;
      result.cost = cost_of(weights, result.place);
    }
    if (search.complete()) result.at_least = result.cost;
  }
  result.gap = gap_of(loads_of(weights, result.place, places));
  return result;
}

}  // namespace kintsugi::splitmerge
