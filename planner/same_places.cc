#include "planner/same_places.h"

#include <algorithm>

#include "planner/analysis_parts.h"

namespace kintsugi::planner {
namespace {

bool unmoved(const std::string& map, const shardmap::ShardMap& then, const shardmap::ShardMap& now) {
  if (map.empty()) return true;
  const shardmap::Mapping* before = then.mapping(map);
  const shardmap::Mapping* after = now.mapping(map);
  return before != nullptr && after != nullptr && before->placed() == after->placed();
}

}  // namespace

bool same_places(const Analysis& analysis, const Values& values, const Plan& plan,
                 const shardmap::ShardMap& then, const shardmap::ShardMap& now) {
  if (&then == &now || std::holds_alternative<WorkOut>(plan)) return true;  // that is planned again
  if (const auto* route = std::get_if<Route>(&plan); route != nullptr && !route->shardlet.empty()) {
    Values past = values;
    past.past_holds = true;
    const auto before = make_plan(analysis, past, then);
    const auto* place = before ? std::get_if<Route>(&*before) : nullptr;
    return place != nullptr && place->shard == route->shard && !place->shardlet.empty();
  }
  if (const auto* copy = std::get_if<CopyIn>(&plan)) return unmoved(copy->map, then, now);
  if (analysis.insert && !unmoved(analysis.insert->map, then, now)) return false;
  return std::ranges::all_of(analysis.tables,
                             [&](const TouchedTable& table) { return unmoved(table.map, then, now); });
}

}  // namespace kintsugi::planner
