// A change of the map as a value: what the store logs, routers replay, and tests make at random. It names
// things as people do and holds keys in PostgreSQL's text form, so it means the same wherever it is read. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "shardmap/key_encoding.h"
#include "shardmap/shard_map.h"

namespace kintsugi::shardmap {

namespace edit {

struct CreateShard {
  std::string name;
  std::string dsn;
  std::string identity;
  ShardState state = ShardState::kOnline;
  friend bool operator==(const CreateShard&, const CreateShard&) = default;
};
struct AlterShard {
  std::string name;
  std::optional<std::string> new_name, dsn, identity;
  std::optional<ShardState> state;
  friend bool operator==(const AlterShard&, const AlterShard&) = default;
};
// Refused while it has shardlets, or is the home of tables.
struct DropShard {
  std::string name;
  friend bool operator==(const DropShard&, const DropShard&) = default;
};
struct SetHome {
  std::string shard;
  friend bool operator==(const SetHome&, const SetHome&) = default;
};
struct CreateMap {
  std::string name;
  MapKind kind = MapKind::kRange;
  KeyTypes key_types;
  friend bool operator==(const CreateMap&, const CreateMap&) = default;
};
// With its shardlets; refused while tables use it.
struct DropMap {
  std::string name;
  friend bool operator==(const DropMap&, const DropMap&) = default;
};
struct CreateShardlet {
  std::string map;
  std::string name;
  Bound low, high;                               // RANGE; HASH: one bigint, the hash
  std::vector<std::vector<std::string>> values;  // LIST: each one text a key column
  std::string shard;
  ShardletState state = ShardletState::kOnline;
  friend bool operator==(const CreateShardlet&, const CreateShardlet&) = default;
};
// What is not given stays.
struct AlterShardlet {
  std::string name;
  std::optional<std::string> new_name, shard;
  std::optional<ShardletState> state;
  friend bool operator==(const AlterShardlet&, const AlterShardlet&) = default;
};
struct DropShardlet {
  std::string name;
  friend bool operator==(const DropShardlet&, const DropShardlet&) = default;
};
// Records the table, or records it anew.
struct PutTable {
  Table table;
  friend bool operator==(const PutTable&, const PutTable&) = default;
};
struct DropTable {
  std::string schema, name;
  friend bool operator==(const DropTable&, const DropTable&) = default;
};
// Rows of this shardlet's keys on that shard, which does not own them, are left out of fan-outs from this epoch
// on.
struct HideRange {
  std::string shardlet, shard, job;
  friend bool operator==(const HideRange&, const HideRange&) = default;
};
// Ends all that a job has hidden; fine when there is nothing.
struct RevealRanges {
  std::string job;
  friend bool operator==(const RevealRanges&, const RevealRanges&) = default;
};

// Makes this edit's epoch at least that: after a fail-over that lost commits, so that no number comes twice.
struct RaiseEpoch {
  std::uint64_t at_least = 0;
  friend bool operator==(const RaiseEpoch&, const RaiseEpoch&) = default;
};

using Operation =
    std::variant<CreateShard, AlterShard, DropShard, SetHome, CreateMap, DropMap, CreateShardlet, AlterShardlet,
                 DropShardlet, PutTable, DropTable, HideRange, RevealRanges, RaiseEpoch>;

}  // namespace edit

struct MapEdit {
  std::vector<edit::Operation> operations;  // done in order, all or none

  MapEdit() = default;
  MapEdit(std::initializer_list<edit::Operation> list) : operations(list) {}
  friend bool operator==(const MapEdit&, const MapEdit&) = default;
};

// One line of JSON, and back. Unknown members and operations are errors (22023): an older program must not
// half-read a newer one's edit.
[[nodiscard]] std::string to_json(const MapEdit& edit);
Result<MapEdit> map_edit_from_json(std::string_view json);

// The next map, its epoch one higher; `map` is as it was. An operation that cannot be done fails the whole edit
// with an error that names what is in the way: 42710 the name is taken, 42704 there is no such thing, 42P17 a
// bad range or an overlap (naming the other shardlet), 2BP01 something still depends on it, 22xxx a bad key.
Result<MapPtr> apply(const ShardMap& map, const MapEdit& edit);

// A shardlet of `map` as CreateShardlet would make it again. For split and merge: drop and create in one edit.
Result<edit::CreateShardlet> creation_of(const ShardMap& map, std::string_view shardlet);

}  // namespace kintsugi::shardmap
