// Finishes what a commit over several shards left behind: prepared transactions of routers that died or lost a
// connection. Any router may do it at any time, several at once, beside commits that are going on: nothing is
// decided by a clock (docs/decisions/0050-fan-out-and-two-phase.md).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "executor/moments.h"
#include "executor/shard_sessions.h"
#include "shardmap/shard_map.h"

namespace kintsugi::executor {

struct SettleReport {
  int committed = 0, rolled_back = 0;
  int alive = 0;      // their deciding transaction is still open: nobody else's business
  int young = 0;      // left alone this time
  int forgotten = 0;  // decision rows that nobody needs any more
  std::vector<Error>
      errors;  // what kept a transaction from being settled: a shard that is away, a missing right
  std::vector<shardmap::ShardId> clean;  // nothing is left prepared there, of what was when the round began
};

// One round over all shards of a map, blocking. Keeps its connections from round to round; one thread at a
// time.
class SettleRound {
 public:
  SettleRound();
  ~SettleRound();
  SettleRound(const SettleRound&) = delete;
  SettleRound& operator=(const SettleRound&) = delete;

  // `least_age`: transactions that were prepared more recently, by their own shard's clock, are not looked at.
  // It spares commits that go on the trouble of being overtaken; that is all it is for.
  SettleReport run(const shardmap::ShardMap& map, std::chrono::milliseconds least_age, Deadline deadline);

 private:
  struct Prepared;
  struct Decision;
  enum class Verdict : std::uint8_t { kCommit, kRollBack, kAlive };

  Result<shardmap::PgSession*> session_of(const shardmap::Shard& shard, Deadline deadline);
  Result<std::vector<Decision>> decisions_on(const shardmap::Shard& shard, Deadline deadline);
  Status list_prepared(const shardmap::ShardMap& map, const shardmap::Shard& shard,
                       std::chrono::milliseconds least_age, std::vector<Prepared>& into, Deadline deadline);
  Result<Verdict> verdict_of(const shardmap::ShardMap& map, const Prepared& prepared, Deadline deadline);
  // False: somebody else is about to.
  Result<bool> settle(const shardmap::ShardMap& map, const Prepared& prepared, Verdict verdict,
                      Deadline deadline);
  Status forget(const shardmap::ShardMap& map, const std::vector<Decision>& decisions,
                const std::vector<Prepared>& prepared, const std::vector<shardmap::ShardId>& answered,
                SettleReport& report, Deadline deadline);

  ShardSessions sessions_;
};

// A thread that does so every `interval`, and sooner when it is woken or shards are in doubt. Owned by the
// program: start() once, stop() (or the destructor) waits for the round that runs. Any thread may wake it.
class Settler {
 public:
  // `map` gives the current map, or null while there is none; called on the Settler's thread. `moments` learns
  // which shards are beyond doubt.
  Settler(std::function<shardmap::MapPtr()> map, std::shared_ptr<Moments> moments,
          std::chrono::milliseconds interval);
  ~Settler();
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;

  void start();
  void stop();
  void wake();

 private:
  void loop();

  std::function<shardmap::MapPtr()> map_;
  std::shared_ptr<Moments> moments_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable condition_;
  bool woken_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::executor
