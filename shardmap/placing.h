// A table that has rows already comes into the map. Its rows are checked, but until every router goes by the
// new map somebody could still write one where nobody would look for it, or change one copy of several. So
// triggers on the shards refuse such writes, as the fence of a move does, and routers hold their statements
// meanwhile (docs/decisions/0031-shard-map-changes.md). A note in the store says that they are there: what a
// maker who dies leaves behind, a recoverer takes away.
#pragma once

#include <functional>

#include "shardmap/map_change.h"

namespace kintsugi::shardmap {

// Every row of the table is where `map` says. Called before anything is guarded, and again behind the guard.
using CheckRows = std::function<Status(const ShardMap& map)>;

// The map has the table then, and the guard is gone or a recoverer's to remove. 55006: somebody else is placing
// this table; 55P03: transactions that write to it do not end.
Result<MapPtr> place_table(MapStore& store, MapChange& change, const Table& table, const CheckRows& check,
                           Deadline deadline);

// Takes away the guards of those who have died. The number of those that remain, because their maker is at work
// or a shard does not answer.
Result<int> clear_placings(MapStore& store, MapChange& change, Deadline deadline);

}  // namespace kintsugi::shardmap
