// Everything that routing needs, at one epoch: shards, maps with their shardlets, tables. Immutable: made by
// apply() or ShardMapLoader, shared as a pointer to const, read by any thread without a lock. A change is a new
// ShardMap that shares with the old one whatever the edit did not touch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "shardmap/mapping.h"

namespace kintsugi::shardmap {

enum class ShardState : std::uint8_t {
  kPreparing,  // known, not yet with the schema and the replicated tables: may not receive shardlets
  kOnline,
  kDraining,  // may not receive shardlets
  kOffline,   // known to be away
};
[[nodiscard]] std::string_view name_of(ShardState state);
[[nodiscard]] std::optional<ShardState> shard_state_named(std::string_view name);

struct Shard {
  ShardId id = 0;
  std::string name;
  std::string dsn;  // holds a password, perhaps: never log it
  std::string
      identity;  // the uuid in the shard's own schema `kintsugi`; empty until it has been registered there
  ShardState state = ShardState::kOnline;
  friend bool operator==(const Shard&, const Shard&) = default;
};

enum class TableKind : std::uint8_t { kSharded, kReplicated, kHome };
[[nodiscard]] std::string_view name_of(TableKind kind);
[[nodiscard]] std::optional<TableKind> table_kind_named(std::string_view name);

struct Table {
  std::string schema;
  std::string name;
  TableKind kind = TableKind::kHome;
  std::string map;               // sharded: its map
  std::vector<std::string> key;  // sharded: its key columns, in the order of the map's types
  [[nodiscard]] std::string display() const { return schema + "." + name; }
  friend bool operator==(const Table&, const Table&) = default;
};

// A shardlet as a value of its own, for those who are not in a hurry.
struct Shardlet {
  std::string name;
  std::string map;
  std::string low;  // RANGE, HASH: encoded bounds
  std::string high;
  std::vector<std::string> values;  // LIST: encoded values, ascending
  ShardId shard = 0;
  ShardletState state = ShardletState::kOnline;
  friend bool operator==(const Shardlet&, const Shardlet&) = default;
};

class ShardMap;
using MapPtr = std::shared_ptr<const ShardMap>;

class ShardMap {
 public:
  // Epoch 0, nothing in it. `store_id` is the identity (a uuid) of the store that the map lives in.
  static MapPtr empty(std::string store_id);

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] const std::string& store_id() const { return store_id_; }

  // Null where there is none. The pointers are good as long as the map.
  [[nodiscard]] const Shard* shard(ShardId id) const;
  [[nodiscard]] const Shard* shard_named(std::string_view name) const;
  [[nodiscard]] std::vector<const Shard*> shards() const;  // by id
  // Where home tables live: the first shard ever made, until it is set otherwise.
  [[nodiscard]] const Shard* home_shard() const { return shard(home_); }

  // The number that the next shard will have.
  [[nodiscard]] ShardId next_shard() const { return next_shard_; }

  [[nodiscard]] const Mapping* mapping(std::string_view name) const;
  [[nodiscard]] std::vector<const Mapping*> mappings() const;  // by name
  [[nodiscard]] std::optional<Shardlet> shardlet(std::string_view name) const;
  // Each shardlet of a map once, in the order of its first key. Allocates a lot for a large map.
  [[nodiscard]] std::vector<Shardlet> shardlets_of(const Mapping& mapping) const;

  [[nodiscard]] const Table* table(std::string_view schema, std::string_view name) const;
  [[nodiscard]] std::vector<const Table*> tables() const;  // by schema and name
  [[nodiscard]] std::vector<const Table*> tables_of(std::string_view map) const;

  // Memory of all entries and their names' index.
  [[nodiscard]] std::size_t bytes() const;

 private:
  friend class MapDraft;
  friend class ShardMapLoader;

  ShardMap() = default;

  std::uint64_t epoch_ = 0;
  std::string store_id_;
  ShardId next_shard_ = 1;
  ShardId home_ = 0;                                      // 0: no shard yet
  std::vector<std::shared_ptr<const Shard>> shards_;      // by id; few, so found by looking at each
  std::vector<std::shared_ptr<const Mapping>> mappings_;  // by name
  std::vector<std::shared_ptr<const Table>> tables_;      // by schema and name
  std::shared_ptr<const ChunkRegister> chunks_;
};

// Builds a map from what a store holds. Entries of one map come in ascending order of `low`; a broken promise
// of the stored data is an error (XX001), not a crash. One thread, one use.
class ShardMapLoader {
 public:
  ShardMapLoader(std::string store_id, std::uint64_t epoch);
  ~ShardMapLoader();
  ShardMapLoader(const ShardMapLoader&) = delete;
  ShardMapLoader& operator=(const ShardMapLoader&) = delete;

  Status add_shard(Shard shard);
  void set_home(ShardId home, ShardId next_shard);
  Status add_mapping(std::string name, MapKind kind, KeyTypes types);
  Status add_entry(const Entry& entry);  // of the mapping added last
  Status add_hidden(HiddenRange hidden);
  Status add_table(Table table);
  Result<MapPtr> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kintsugi::shardmap
