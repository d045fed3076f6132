// Parameters of types that users have made. Such a type has another OID on every shard, so what one shard says
// of a statement's parameters means nothing, or something else, on the others.
#pragma once

#include "base/error.h"
#include "frontend/session_state.h"
#include "planner/catalog.h"

namespace kintsugi::frontend {

// Whether PostgreSQL has made the type, and not a user.
[[nodiscard]] constexpr bool is_built_in(std::uint32_t type) {
  return type < 16384;  // FirstNormalObjectId
}

// Names the types in the texts of the plan, which may be the run's own or another, for the parameters that have
// one: then the texts mean the same on every shard, and `types` say text for them. `types` are the home
// shard's, and so is the catalogue.
Status spell_made_types(planner::Plan* plan, Run* run, const planner::Catalog& catalog, bool standard_strings);

}  // namespace kintsugi::frontend
