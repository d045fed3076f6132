// A whole map as a text file that people can read, edit and keep: one JSON object a line, in a fixed order, so
// that two exports differ in just the lines that changed. Reading what was written gives the same map, to the
// byte when written again. It holds the shards' DSNs with their passwords, if they have any: treat it like
// them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "shardmap/map_edit.h"

namespace kintsugi::shardmap {

// Hands over one line after the other, each with its newline.
void export_map(const ShardMap& map, const std::function<void(std::string_view line)>& sink);
[[nodiscard]] std::string export_map(const ShardMap& map);

// Everything is checked as an edit would be: overlaps, names, types. Errors name the line.
Result<MapPtr> import_map(std::string_view text);

// The edit that makes all of `map` in an empty one. Shards are numbered anew, in the same order.
Result<MapEdit> edit_that_makes(const ShardMap& map);

}  // namespace kintsugi::shardmap
