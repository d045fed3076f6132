// Until the planner itself is here: every statement goes to the home shard, as before.
#include "planner/analysis.h"

namespace kintsugi::planner {

class Analysis {};

Result<AnalysisOutcome> analyse(std::shared_ptr<const parser::Statement>, const parser::Normaliser&,
                                std::uint32_t, const NameContext&, const Catalog&, const shardmap::ShardMap&) {
  return AnalysisOutcome{std::make_shared<const Analysis>(), false, {}};
}

Result<Plan> make_plan(const Analysis&, const Values&, const shardmap::ShardMap& map) {
  return Plan(Route{.shard = map.home_shard() != nullptr ? map.home_shard()->id : 0});
}

bool depends_on_parameters(const Analysis&) {
  return false;
}

std::size_t bytes_of(const Analysis&) {
  return sizeof(Analysis);
}

}  // namespace kintsugi::planner
