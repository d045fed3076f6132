// Ranges of keys as SQL: text that is true for exactly those rows whose key lies in them. For a publication's
// row filter, a trigger's WHEN, the selection of rows to copy, delete or leave out. Immutable built-in
// expressions without subqueries; compares as the map does (text under "C"). Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "shardmap/mapping.h"
#include "shardmap/shard_map.h"

namespace kintsugi::shardmap {

// As the entries of a map have it: encoded bounds [low, high) of `bound_types()`; in a LIST map `low` is the
// value and `high` is empty.
struct KeyRange {
  std::string low;
  std::string high;
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// `columns` are the key columns as SQL, quoted and qualified as needed: `"tenant"`, `o."tenant"`,
// `NEW."tenant"`. The text is in parentheses or is one word; for a row with a NULL in its key it is false or
// NULL, never true. No range at all is `false`. XX001 for bytes that are no bounds of this map.
Result<std::string> inside_ranges(const Mapping& mapping, const std::vector<std::string>& columns,
                                  const std::vector<KeyRange>& ranges);
Result<std::string> inside_ranges(MapKind kind, const KeyTypes& key_types,
                                  const std::vector<std::string>& columns, const std::vector<KeyRange>& ranges);

// True for all the others, rows with a NULL in their key among them: what a fan-out adds for hidden ranges.
Result<std::string> outside_ranges(const Mapping& mapping, const std::vector<std::string>& columns,
                                   const std::vector<KeyRange>& ranges);

// The ranges of `mapping` that are hidden on that shard now.
std::vector<KeyRange> hidden_on(const Mapping& mapping, ShardId shard);
// What a shardlet holds.
std::vector<KeyRange> ranges_of(const Shardlet& shardlet);

}  // namespace kintsugi::shardmap
