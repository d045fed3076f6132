// Transactions over several shards that wait for each other in a circle. Each PostgreSQL finds the circles that
// lie in it alone (deadlock_timeout); of one over several it sees a chain without an end. So whoever has been
// waiting for a while is looked for on the shards: who waits for whom there (pg_blocking_pids), and which
// connections belong to one transaction. Of each circle one is broken off, and its client gets PostgreSQL's own
// 40P01.
//
// Several routers: each writes down in kintsugi.held_up, on every shard, which connections there belong to
// which transaction of its own that waits. All see the same circle then, and name the same one of it; whose
// that is breaks it off.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "executor/shard_sessions.h"

namespace kintsugi::executor {

// A transaction over several shards whose statement has been waiting for them.
struct HeldUp {
  std::uint64_t session = 0;
  std::int64_t since = 0;  // when the statement came: the session's next one has another number
  std::vector<std::pair<shardmap::ShardId, std::int32_t>> backends;  // process numbers
};

// What the client is told.
Error deadlock_detected();

// On some shard. Transactions of routers have names that begin with 't'; other names are of connections.
struct Wait {
  std::string who, for_whom;
  std::string when;  // the shard, the connection and the moment at which it began
  auto operator<=>(const Wait&) const = default;
};
// One transaction of each circle, the last by name. Circles without any are PostgreSQL's own business.
std::vector<std::string> one_of_each_circle(const std::set<Wait>& waits);

// One look at all shards, blocking. Keeps its connections; one thread at a time.
class DeadlockRound {
 public:
  // Without `several_routers` nothing is written.
  explicit DeadlockRound(bool several_routers);

  // Those of `mine`, which is what waits in this router, that have to be broken off.
  std::vector<HeldUp> run(const shardmap::ShardMap& map, const std::vector<HeldUp>& mine, Deadline deadline);
  void close() { sessions_.close_all(); }

 private:
  std::set<Wait> look(const shardmap::ShardMap& map, const std::vector<HeldUp>& mine, Deadline deadline);
  Status look_at(const shardmap::Shard& shard, const std::vector<HeldUp>& mine, std::set<Wait>* waits,
                 Deadline deadline);
  void learn_servers(const shardmap::ShardMap& map, Deadline deadline);
  [[nodiscard]] std::string name_of(const HeldUp& transaction) const;

  bool several_routers_;
  std::string router_;  // a name of its own
  ShardSessions sessions_;
  // Shards that are databases of one server have its processes, roles and transactions together.
  std::map<shardmap::ShardId, std::string> servers_;
};

// A thread that does so every second while somebody waits. start() once; stop(), or the destructor, waits for
// the round that runs.
class DeadlockWatch {
 public:
  struct Router {
    std::function<shardmap::MapPtr()> map;
    std::function<std::vector<HeldUp>()> held_up;
    std::function<void(const HeldUp&)> break_off;  // unless it has gone on meanwhile
    bool several = false;                          // there may be others on these shards
  };
  explicit DeadlockWatch(Router router);
  ~DeadlockWatch();
  DeadlockWatch(const DeadlockWatch&) = delete;
  DeadlockWatch& operator=(const DeadlockWatch&) = delete;

  void start();
  void stop();

 private:
  void loop();

  Router router_;
  std::mutex mutex_;
  std::condition_variable condition_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::executor
