// Changes of the map that reach shards too: the store decides, the shards' local maps follow.
//
// Every commit that concerns a shard leaves, in the same transaction, a note that this shard is to be brought
// to that epoch. Making a shard begins, and dropping one ends, with a note of what is still to be done on that
// database. Whoever comes across a note finishes it: the one who made the change, at once, or any router's
// recoverer within a second or two. Every step may be done twice and at any later time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "shardmap/local_map.h"
#include "shardmap/map_store.h"

namespace kintsugi::shardmap {

struct NewShard {
  std::string name;
  std::string dsn;
  ShardState state = ShardState::kOnline;
};

class MapChange {
 public:
  // The store is used by this object's thread alone, and must outlive it.
  explicit MapChange(MapStore& store) : store_(store) {}

  // Commits what `decide` makes of the newest map, again when somebody else was first, then brings the shards
  // into step as far as they answer. The result is the committed map.
  using Decide = std::function<Result<MapEdit>(const ShardMap& map)>;
  Result<MapPtr> edit(const Decide& decide, Deadline deadline);
  Result<MapPtr> edit(const MapEdit& edit, Deadline deadline);

  // Claims the database for this store, then puts the shard into the map.
  Result<MapPtr> create_shard(const NewShard& shard, Deadline deadline);
  // Claims all of these databases, then puts them and what `rest` makes of the map with them into the map at
  // once.
  Result<MapPtr> create_shards(const std::vector<NewShard>& shards, const Decide& rest, Deadline deadline);
  // Shards that another store may have had come into the map, or are to follow it again, by an edit that says
  // so (it raises the epoch above theirs): these databases are this store's from then on. The number of shards
  // that will follow later, because they do not answer.
  Result<int> take_over(const Decide& decide, const std::vector<ShardIdentity>& others, Deadline deadline);
  // Takes it out of the map, then gives the database back.
  Result<MapPtr> drop_shard(const std::string& name, Deadline deadline);
  // Another DSN for a shard that has moved or was restored from a backup: the database there must have its
  // identity.
  Result<MapPtr> reattach_shard(const std::string& name, const std::string& dsn, Deadline deadline);

  // ---- for changes of many steps, which say themselves when a shard must be in step
  // The newest map, made from the one that this object last saw and the edits since.
  Result<StoredMap> newest(Deadline deadline);
  // Commits `decide`'s edit and these notes together, again when somebody else was first; a note that is not as
  // expected ends it with 40001. The shards concerned are left to bring_into_step(), or to a recoverer.
  Result<StoredMap> commit(const Decide& decide, const std::vector<NoteChange>& notes, Deadline deadline);
  // This shard's local map says what `stored` says, or something later.
  Status bring_into_step(const StoredMap& stored, ShardId shard, Deadline deadline);

  // Finishes what others left: shards out of step, claims without a shard, databases to give back. `patience`:
  // how old the note of a shard's making must be before it is taken to be abandoned. The number of notes that
  // remain, because their databases do not answer.
  Result<int> recover(std::chrono::milliseconds patience, Deadline deadline);

 private:
  Result<StoredMap> commit_and_step(const Decide& decide, const std::vector<NoteChange>& notes,
                                    Deadline deadline);
  Status bring_into_step(const StoredMap& stored, ShardId shard, const std::string& note, Deadline deadline);
  Status make_free(const ShardMap& map, const NewShard& shard, const std::string& identity, LocalMap& local,
                   Deadline deadline);
  Status adopt(const StoredMap& stored, const Note& note, Deadline deadline);
  Result<bool> claim_is_left_over(const ShardMap& map, const ShardIdentity& found, Deadline deadline);
  Status give_back(const std::string& key, const std::string& body, Deadline deadline);
  MapStore& store_;
  StoredMap known_;  // for newest()
};

// The shards whose local maps differ between the two maps.
std::vector<ShardId> concerned_shards(const ShardMap& before, const ShardMap& after, const MapEdit& edit);

// Does recover() again and again, on a thread of its own, with a store of its own. Every router has one.
class Recoverer {
 public:
  Recoverer(std::string store, std::string directory,
            std::chrono::milliseconds every = std::chrono::milliseconds(1000),
            std::chrono::milliseconds patience = std::chrono::milliseconds(5000));
  ~Recoverer();
  Recoverer(const Recoverer&) = delete;
  Recoverer& operator=(const Recoverer&) = delete;

 private:
  void run();
  std::string store_;
  std::string directory_;
  std::chrono::milliseconds every_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::shardmap
