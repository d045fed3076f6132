// What one may ask of the map, a function each: for the command layer that SQL, REST and the command line
// share. Each loads the newest map, checks, commits, and brings the shards into step; the answer is the new
// map. One thread, one store.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardmap/map_change.h"
#include "shardmap/map_file.h"

namespace kintsugi::shardmap {

struct NewMap {
  std::string name;
  MapKind kind = MapKind::kRange;
  KeyTypes key_types;
  // HASH: so many shardlets of equal size, dealt out to these shards (all that may be given shardlets, if none
  // is named); their names are the map's with _1, _2 ... 0: none yet.
  int shardlets = 0;
  std::vector<std::string> shards;
};

class MapCommands {
 public:
  explicit MapCommands(MapStore& store) : store_(store), change_(store) {}

  Result<MapPtr> create_shard(const NewShard& shard, Deadline deadline) {
    return change_.create_shard(shard, deadline);
  }
  // A new DSN must lead to the same shard.
  Result<MapPtr> alter_shard(const edit::AlterShard& request, Deadline deadline);
  Result<MapPtr> drop_shard(const std::string& name, Deadline deadline) {
    return change_.drop_shard(name, deadline);
  }

  Result<MapPtr> create_map(const NewMap& request, Deadline deadline);
  Result<MapPtr> drop_map(const std::string& name, Deadline deadline);

  Result<MapPtr> create_shardlet(const edit::CreateShardlet& request, Deadline deadline);
  // Its name and state; moving it to another shard is a job, not this (0A000).
  Result<MapPtr> alter_shardlet(const edit::AlterShardlet& request, Deadline deadline);
  // Refused (55000) while its shard has rows of it.
  Result<MapPtr> drop_shardlet(const std::string& name, Deadline deadline);

  // Takes a table that the shards have, with its rows, into the map: its key columns must fit, and every row
  // must be where the map says; 55000 names those that are not.
  Result<MapPtr> shard_table(const Table& table, Deadline deadline);
  // What is to be known of a table that is sharded, a sentence each: constraints that hold on each shard alone.
  Result<std::vector<std::string>> warnings_of(const ShardMap& map, const Table& table, Deadline deadline);
  // Records a table as it is said to be; the shards are not looked at.
  Result<MapPtr> put_table(const Table& table, Deadline deadline);
  Result<MapPtr> drop_table(const std::string& schema, const std::string& name, Deadline deadline);

  Result<std::string> export_all(Deadline deadline);
  // Into an empty store, entirely or not at all: the databases of the file are claimed for it, then everything
  // is committed at once.
  Result<MapPtr> import_all(std::string_view text, Deadline deadline);

 private:
  MapStore& store_;
  MapChange change_;
};

}  // namespace kintsugi::shardmap
