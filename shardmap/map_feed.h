// Keeps a router's map up to date: follows the store, keeps the replica, tells the store which epoch this
// router has taken and that it is alive.
//
// Owned by the program; has two threads of its own and three connections to the store. Maps are handed over
// on one of them, in rising epochs, never two at once; all other calls are for any thread. While the store is
// away the map stays, and `lease_valid()` soon says no; so it is while an empty store stands where another was.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "shardmap/map_store.h"

namespace kintsugi::shardmap {

struct MapFeedOptions {
  std::string store;      // as for open_store
  std::string directory;  // for relative paths
  std::string replica;    // the replica's file
  std::string router;     // this router's name among the others
  std::chrono::milliseconds lease{5000};
  std::chrono::milliseconds beat{1000};            // how often the lease is renewed; well below it
  std::chrono::milliseconds start_patience{3000};  // how long to wait for the store before the replica is used
};

class MapFeed {
 public:
  using Deliver = std::function<void(MapPtr map)>;

  // Returns when the first map has been delivered: the store's, or the replica's when the store is away. An
  // error when there is neither, or the store was made by a newer program.
  static Result<std::unique_ptr<MapFeed>> start(MapFeedOptions options, Deliver deliver);
  ~MapFeed();  // ends the threads; nothing is delivered afterwards
  MapFeed(const MapFeed&) = delete;
  MapFeed& operator=(const MapFeed&) = delete;

  // Each new statement of this router, on any of its threads, runs on `epoch` or a later one from now on;
  // statements of earlier ones may still be running. Writers of a moving shardlet wait for every router to say
  // this, so say it at once. Never saying it is right too, only slower: what was taken was seen.
  void seen(std::uint64_t epoch);
  // All threads of this router now run on `epoch` or a later one, and no statement of an earlier one answers
  // any more.
  void taken(std::uint64_t epoch);

  // True while every other process may count on this router having taken each epoch that it was told of. Once
  // it has run out, it comes back only after the store's newest epoch was taken. A router that was frozen finds
  // it run out.
  [[nodiscard]] bool lease_valid() const;
  // Until when it is valid if nothing renews it, for those who have a clock's value at hand.
  [[nodiscard]] std::chrono::steady_clock::time_point lease_end() const;

  [[nodiscard]] bool store_reachable() const;
  [[nodiscard]] StoredMap current() const;

 private:
  struct Shared;
  explicit MapFeed(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

// What a router last said of itself.
struct RouterState {
  std::string name;
  std::uint64_t epoch = 0;  // taken by all its threads
  std::uint64_t seen = 0;   // never below `epoch`
  std::int64_t age_ms = 0;  // since it said so
  std::int64_t lease_ms = 0;
  // Not alive: it does not answer from a shard without looking at the shard's local map, until it has taken the
  // newest epoch.
  [[nodiscard]] bool alive() const { return age_ms <= lease_ms; }
};

Result<std::vector<RouterState>> routers(MapStore& store, Deadline deadline);

// Waits until every router that is alive has taken `epoch`. Gives back those that are not alive and have not
// taken it. 57014 when the deadline comes first, naming who is missing.
Result<std::vector<RouterState>> wait_until_taken(MapStore& store, std::uint64_t epoch, Deadline deadline);
// The same for each new statement alone; earlier ones may still run.
Result<std::vector<RouterState>> wait_until_seen(MapStore& store, std::uint64_t epoch, Deadline deadline);

}  // namespace kintsugi::shardmap
