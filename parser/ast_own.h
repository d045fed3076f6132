// Kintsugi's own statements: what the command layer executes. Names are folded as everywhere; key values are as
// written and are typed by whoever knows the map's key.
#pragma once

#include <cstdint>

#include "parser/ast_utility.h"

namespace kintsugi::parser {

struct KeyValue {
  enum class Kind : std::uint8_t { kMinValue, kMaxValue, kNull, kBoolean, kNumber, kString, kTuple };
  Kind kind = Kind::kString;
  std::string_view text;  // decoded; a number with its sign; true or false
  List<KeyValue> tuple;   // ('a', 1) in a LIST over several columns
};

struct CreateShard {
  Name name;
  std::string_view dsn;
  bool if_not_exists = false;
};

struct AlterShard {
  Name name;
  std::string_view dsn;
};

enum class MapKind : std::uint8_t { kList, kRange, kHash };

struct CreateShardMap {
  Name name;
  MapKind kind = MapKind::kRange;
  List<const TypeName*> key;
  int shardlets = 0;  // 0: not said
  List<Name> shards;
  bool if_not_exists = false;
};

struct CreateShardlet {
  Name name;
  Name map;
  List<KeyValue> low;   // FROM; empty for a LIST
  List<KeyValue> high;  // TO
  List<KeyValue> values;
  Name shard;
  bool if_not_exists = false;
};

struct AlterShardlet {
  enum class Action : std::uint8_t { kRename, kOffline, kOnline, kReadOnly };
  Name name;
  Action action = Action::kOnline;
  Name new_name;
};

struct DropOwn {
  enum class Kind : std::uint8_t { kShard, kShardMap, kShardlet };
  Kind kind = Kind::kShard;
  Name name;
  bool if_exists = false;
};

struct SplitShardlet {
  Name name;
  List<KeyValue> at;  // none: the middle of the data
  List<Name> into;    // two or none
  Name move;          // which of them moves; empty: none
  Name to_shard;
  List<Option> options;
};

struct MergeShardlets {
  Name left;
  Name right;
  Name into;
  Name on_shard;
  List<Option> options;
};

struct MoveShardlet {
  Name name;
  Name to_shard;
  List<Option> options;
};

struct Rebalance {
  Name map;  // empty: all
  List<Option> options;
};

struct DrainShard {
  Name name;
  List<Option> options;
};

struct ControlJob {
  bool resume = false;  // else cancel
  std::string_view id;
};

struct ShowOwn {
  enum class What : std::uint8_t {
    kShards,
    kShardMaps,
    kShardlets,
    kShardedTables,
    kJobs,
    kJob,
    kRouters,
    kPools,
    kStats
  };
  What what = What::kShards;
  Name map;
  std::string_view job;
};

}  // namespace kintsugi::parser
