// The tenant guard: a session that may touch one key of one map. A statement is inside when its text proves it:
// every sharded table in it is pinned with = to exactly that key in the query it stands in, what it writes has
// that key, and nothing else in it reads or writes rows, runs SQL by name, or can tell of other rows by its
// errors. What is not proven is outside, and refused with KG004.
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "planner/analysis.h"

namespace kintsugi::planner {

struct TenantGuard {
  std::string map;
  std::string key;    // encoded; empty: the map is not there (any more), and no row is inside
  std::string shown;  // "tenants(42)", for messages
};

// KG004: "... is outside of tenants(42)", with the reason.
[[nodiscard]] Error outside(const TenantGuard& guard, const std::string& why);

// Nothing: the statement with these values is inside. Without parameters what they decide is left open: ask
// again when they are there.
[[nodiscard]] std::optional<Error> refuses(const TenantGuard& guard, const Analysis& analysis,
                                           const Values& values, const shardmap::ShardMap& map);

// What no values change.
[[nodiscard]] std::optional<Error> refuses_always(const TenantGuard& guard, const Analysis& analysis);

}  // namespace kintsugi::planner
