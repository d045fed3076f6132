// What one shard knows of itself, in its own schema `kintsugi`: whose it is, which shardlets it owns at which
// epoch. The source to rebuild the store from, and the proof of ownership in careful mode. One thread at a
// time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "shardmap/shard_map.h"

namespace kintsugi::shardmap {

class PgSession;

struct ShardIdentity {
  std::string store_id;
  std::string shard_id;  // the shard's own uuid
  std::string shard_name;
  std::uint64_t epoch = 0;   // that the rest was taken from
  std::optional<bool> home;  // none of both: an older program wrote it
  std::optional<ShardState> state;
  friend bool operator==(const ShardIdentity&, const ShardIdentity&) = default;
};

struct LocalMapping {
  std::string name;
  MapKind kind = MapKind::kRange;
  KeyTypes key_types;
  std::vector<Shardlet> owned;  // `shard` is not set
};

struct LocalContents {
  ShardIdentity identity;
  std::vector<LocalMapping> mappings;  // by name: all maps, with the shardlets of this shard
  std::vector<Table> tables;
};

class LocalMap {
 public:
  static Result<LocalMap> connect(const std::string& dsn, Deadline deadline);
  ~LocalMap();
  LocalMap(LocalMap&&) noexcept;
  LocalMap& operator=(LocalMap&&) noexcept;

  // None: this database belongs to no store.
  Result<std::optional<ShardIdentity>> identity(Deadline deadline);

  // Makes the database a shard: installs or upgrades the schema, records the identity. Doing it again is fine;
  // 55000 when it is another shard already, of this store or of another.
  Status claim(const std::string& store_id, const std::string& shard_id, const std::string& shard_name,
               Deadline deadline);

  // Gives the database back: drops the schema if it is this shard's. Fine when there is none or it is
  // another's.
  Status release(const std::string& store_id, const std::string& shard_id, Deadline deadline);

  // Brings the local map to what `map` says of the shard with this identity. Never backwards: nothing happens
  // when the shard has a later epoch. 55000 when this is another shard.
  Status bring_to(const ShardMap& map, const Shard& shard, Deadline deadline);

  // For repairs: the shard with this identity is this store's from now on, whose ever it was; a database that
  // says of no shard that it is one becomes it. What it owns stays as it is until bring_to().
  Status adopt(const std::string& store_id, const std::string& shard_id, const std::string& shard_name,
               Deadline deadline);

  // 55000: there is none. XX001: it says what makes no sense, as after a change by hand.
  Result<LocalContents> read(Deadline deadline);

  // For checks of the rows themselves.
  [[nodiscard]] PgSession& session() { return *session_; }

 private:
  explicit LocalMap(std::unique_ptr<PgSession> session);
  Status need_identity(const std::string& store_id, const std::string& shard_id, Deadline deadline);
  Status bring_up_to_date(Deadline deadline);
  std::unique_ptr<PgSession> session_;
};

// Where a program before this one has made the schema `kintsugi`, it is extended to what this one wants. A
// newer one, or none, is left alone.
Status upgrade_local_map(PgSession& session, Deadline deadline);

// What the store's map says that this shard's local map should hold.
LocalContents contents_of(const ShardMap& map, const Shard& shard);

}  // namespace kintsugi::shardmap
