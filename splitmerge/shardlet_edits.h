// Split and merge as edits of the map, and what a request means in a map. Pure; any thread. Private to
// splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "shardmap/map_edit.h"
#include "splitmerge/job.h"

namespace kintsugi::splitmerge {

// `name` becomes `left`, its keys before `at`, and `right`, those from `at` on. `at` is of the map's bound
// types (a hash for HASH maps) and may be a prefix of a tuple. 42P17 when one of the two would have no keys.
Result<shardmap::MapEdit> split_edit(const shardmap::ShardMap& map, const std::string& name,
                                     const shardmap::Bound& at, const std::string& left,
                                     const std::string& right);

// These shardlets become one with the keys of all. 55000 when they are not neighbours, not on one shard or not
// in one state.
Result<shardmap::MapEdit> merge_edit(const shardmap::ShardMap& map, const std::vector<std::string>& names,
                                     const std::string& into);

// `at` made whole: what is missing is MINVALUE.
shardmap::Bound whole_bound(const shardmap::Mapping& mapping, shardmap::Bound at);

// The request with all that it left open filled in (names of parts, the shard to merge on, which part moves),
// or why it makes no sense in this map. `map_name` gets the map that it is about, "" for several.
Result<JobRequest> settle(const shardmap::ShardMap& map, JobRequest request, std::string& map_name);

}  // namespace kintsugi::splitmerge
