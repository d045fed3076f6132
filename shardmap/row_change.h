// What an edit does to the rows of a store, the same for every kind of store. Private to shardmap/.
#pragma once

#include <string>
#include <vector>

#include "shardmap/map_edit.h"

namespace kintsugi::shardmap {

struct SqlValue {
  enum class Kind : std::uint8_t { kText, kInteger, kBytes };
  Kind kind = Kind::kText;
  std::string value;  // an integer in decimals

  static SqlValue text(std::string value) { return {Kind::kText, std::move(value)}; }
  static SqlValue bytes(std::string_view value) { return {Kind::kBytes, std::string(value)}; }
  static SqlValue integer(std::uint64_t value) { return {Kind::kInteger, std::to_string(value)}; }
};

// One statement; parameters are $1, $2 ... in the order in which they first stand in the text.
struct RowChange {
  std::string sql;
  std::vector<SqlValue> values;
};

// Everything but the rows of `edit` and `note`.
std::vector<RowChange> row_changes(const ShardMap& before, const ShardMap& after, const MapEdit& edit);

// The columns of one row, as a store reads them, to the loader. The order of the calls is the loader's.
Status load_shard_row(ShardMapLoader& loader, ShardId id, std::string name, std::string dsn,
                      std::string identity, const std::string& state);
Status load_map_row(ShardMapLoader& loader, std::string name, const std::string& kind,
                    const std::string& key_types);
Status load_entry_row(ShardMapLoader& loader, std::string_view low, std::string_view high,
                      std::string_view name, ShardId shard, std::int64_t state);
Status load_table_row(ShardMapLoader& loader, std::string schema, std::string name, const std::string& kind,
                      std::string map, const std::string& key_columns);

std::string key_types_json(const KeyTypes& types);
std::string columns_json(const std::vector<std::string>& columns);

}  // namespace kintsugi::shardmap
