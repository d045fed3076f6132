// Looks at the rows themselves: whether a table can be sharded by a map, and whether each row on a shard
// belongs there. The keys are read with a cursor and looked up in the map, by the encoding that routing uses.
// Control work: slow on large tables, never blocking.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "shardmap/local_map.h"

namespace kintsugi::shardmap {

struct MisplacedKey {
  std::string key;      // as describe_key() shows it; "NULL" when a column is
  std::string belongs;  // the name of the shard; empty: no shardlet has this key
};

// The key columns exist with the map's types (integers of other widths and varchar pass), without a length or
// precision that would change a value on its way into the row, without a nondeterministic collation, in a UTF-8
// database. 42P01 when the table is not there, 55000 for a partition, 42703 or 42804 for a column, 0A000 for
// the rest.
Status check_key_columns(LocalMap& shard, const Mapping& mapping, const Table& table, Deadline deadline);

// Every key that there can be is in one shardlet, on this shard: no row can be in the wrong place.
bool owns_every_key(const Mapping& mapping, const Shard& shard);

// The unique indexes of the table, with their columns, that hold on each shard alone: without its sharding key.
Result<std::vector<std::string>> unique_without_key(LocalMap& shard, const Table& table, Deadline deadline);

// The distinct keys on this shard, of a sharded table, that the map places elsewhere; at most `most`. Keys in a
// range that is hidden on this shard are a move's business and pass.
Result<std::vector<MisplacedKey>> misplaced_keys(LocalMap& local, const ShardMap& map, const Shard& shard,
                                                 const Table& table, std::size_t most, Deadline deadline);

// The first row here that the map places elsewhere, in words: "table public.orders has key (7), which belongs
// on shard \"s2\"". Empty: there is none. A table that is not here has none.
Result<std::string> row_of_others(LocalMap& local, const ShardMap& map, const Shard& shard, Deadline deadline);

// The first table that the map says is here and is not; empty: all are.
Result<std::string> table_missing(LocalMap& local, const ShardMap& map, const Shard& shard, Deadline deadline);

// Every shard that is in use has the table with the home shard's rows. 42P01 when home has no such table, 55000
// that names the shard that has none or other rows.
Status check_copies(const ShardMap& map, const Table& table, Deadline deadline);

}  // namespace kintsugi::shardmap
