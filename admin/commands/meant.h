// "Did you mean ...?" where a command names a shard, a map, a shardlet or a table that is not there. Pure.
#pragma once

#include "base/error.h"
#include "shardmap/shard_map.h"

namespace kintsugi::admin {

// The error, with the name that was most likely meant as its hint, if it is about a missing one and has no
// hint.
[[nodiscard]] Error with_what_was_meant(Error error, const shardmap::ShardMap& map);

}  // namespace kintsugi::admin
