// A new shard becomes like the others: their schema, their functions and types, the rows of the replicated
// tables; then it may be given shardlets. Private to splitmerge/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shardmap/map_change.h"
#include "shardmap/pg_session.h"
#include "splitmerge/job_lease.h"
#include "splitmerge/move_tuning.h"
#include "splitmerge/moved_table.h"

namespace kintsugi::splitmerge {

class Provision {
 public:
  Provision(shardmap::MapStore& store, shardmap::MapChange& map, JobLease& lease, const MoveTuning& tuning)
      : store_(store), map_(map), lease_(lease), tuning_(tuning) {}

  // copying -> cleaning: the shard is online. May be done again at any point. Writes to replicated tables wait
  // while their rows are copied: they meet a fence as those of a moving shardlet do.
  Status fill();
  // cleaning -> `last`: when no router runs a statement that does not know the shard, the fence goes.
  Status finish(const JobLease::Change& last);
  // The fence goes; the schema stays on the new shard, which is still not used.
  Status undo();

 private:
  Status connect();
  Result<std::vector<std::string>> not_shared();
  Status take_schema();
  Status check_schema();
  Status set_sequences_apart();
  Status fence();
  Result<bool> drop();
  Status copy_replicated();

  shardmap::MapStore& store_;
  shardmap::MapChange& map_;
  JobLease& lease_;
  const MoveTuning& tuning_;
  shardmap::StoredMap stored_;
  const shardmap::Shard* like_ = nullptr;  // the shard that it shall be like; null: it is the first
  const shardmap::Shard* fresh_ = nullptr;
  std::string name_;
  std::unique_ptr<shardmap::PgSession> source_;
  std::unique_ptr<shardmap::PgSession> target_;
  std::vector<MovedTable> replicated_;
};

}  // namespace kintsugi::splitmerge
