// When store, local maps and rows do not say the same: finds every difference, repairs from either side, and
// makes the store anew from the shards. Control work; the store is used by the caller's thread.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "shardmap/map_store.h"

namespace kintsugi::shardmap {

struct Difference {
  enum class Kind : std::uint8_t {
    kUnreachable,  // nothing can be said of this shard
    kIdentity,     // the database is no shard, or another one
    kShardlet,     // store and local map disagree about its owner, range or state
    kTable,        // about a table
    kRow,          // a key lies on a shard that does not own it
  };
  Kind kind = Kind::kShardlet;
  std::string shard;
  std::string what;  // a sentence
};
[[nodiscard]] std::string_view name_of(Difference::Kind kind);

// Compares all of it; `rows` also reads the keys of every sharded table. A change that is just on its way to a
// shard may show as a difference: look twice.
Result<std::vector<Difference>> check(MapStore& store, bool rows, Deadline deadline);

enum class Side : std::uint8_t { kStore, kShards };

// Makes the other side say what `right` says. Rows are never touched. The answer is what was done, or with
// `dry_run` what would be, a sentence each. From the shards: every one of them must be reachable.
Result<std::vector<std::string>> resolve(MapStore& store, Side right, bool dry_run, Deadline deadline);

// Fills an empty store from the local maps of these databases, and makes them its shards. Where two of them
// claim the same keys, the one with the later epoch is right, and the answer says so. 55000 when the store
// has shards or maps, or the databases are of different stores. Killed in between, it is as it was, or a
// recoverer finishes it.
Result<std::vector<std::string>> rebuild(MapStore& store, const std::vector<std::string>& dsns,
                                         Deadline deadline);

}  // namespace kintsugi::shardmap
