// Whether a transaction that keeps one snapshot may still run a statement after the map has changed: its
// snapshots on the shards were taken under `then`, and rows that have come to a shard since are not in them,
// nor are rows gone that have left it. Pure.
#pragma once

#include "planner/analysis.h"

namespace kintsugi::planner {

// True only when the rows that the statement is about lie, under `now`, where a snapshot of `then` has them. A
// statement about one shardlet asks that its shard be the same; any other that nothing of its maps has changed
// hands. `plan` is the statement's under `now`.
[[nodiscard]] bool same_places(const Analysis& analysis, const Values& values, const Plan& plan,
                               const shardmap::ShardMap& then, const shardmap::ShardMap& now);

}  // namespace kintsugi::planner
