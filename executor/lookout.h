// What keeps the statements of this router and the commits of all others apart (docs/decisions/0052): a commit
// over several shards holds kintsugi.moment on each in ROW EXCLUSIVE mode, from before its first PREPARE until
// it is visible there; a statement over several shards has it held in SHARE mode while its snapshots are taken.
// Whoever holds a mode on all shards at one moment has nobody of the other kind half done. A crash does not let
// go: a prepared transaction keeps its locks.
//
// The locks are held by connections of their own, up to kLanes a thread, shard and login; statements that come
// while all are in use wait, and share the next ones. Nobody waits for long: a lock that does not come is given
// up on all shards and asked for again after a pause (two that wait for each other on different shards part
// so), and a router that is frozen loses its locks.
//
// A statement that is to be alone has kintsugi.opening held, too, which nobody else holds at the same time: its
// snapshots and those of the next one like it are not taken in different order on different shards.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/io/gate.h"
#include "executor/backend.h"
#include "executor/connect_shard.h"

namespace kintsugi::executor {

// Before a PREPARE TRANSACTION and the COMMIT that decides. A lock_timeout of the client's is not meant for it.
inline constexpr std::string_view kLockForCommit =
    "SET LOCAL lock_timeout = 0; LOCK TABLE kintsugi.moment IN ROW EXCLUSIVE MODE";

// Belongs to one thread.
class Lookout {
 private:
  struct Entry;

 public:
  // One statement's. Given up when it is destroyed.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { give_up(); }

    // The waiter is told of each change.
    [[nodiscard]] bool held() const;  // on all shards, for at most the patience
    [[nodiscard]] const std::optional<Error>& refused() const;
    // The snapshots are taken.
    void let_go();
    // After that: whether it was held all the while. Nothing while that is not known.
    [[nodiscard]] std::optional<bool> was_held() const;

   private:
    friend class Lookout;
    explicit Watch(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
    void give_up();
    std::shared_ptr<Entry> entry_;
  };
  using Logins = std::vector<std::shared_ptr<const ShardLogin>>;

  static constexpr std::size_t kLanes = 4;

  // Everything runs in the gate, which is closed when nobody watches any more.
  Lookout(io::Loop& loop, io::Gate& gate) : loop_(loop), gate_(gate) {}
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  // The shards in the order of their ids. Of the same program those who are to be alone, and have two shards in
  // common, come one after the other.
  [[nodiscard]] Watch watch(Logins shards, io::Waiter* waiter, std::chrono::milliseconds patience,
                            bool alone = false);

 private:
  struct Connection {
    std::shared_ptr<const ShardLogin> login;
    std::unique_ptr<Backend> backend;
    std::optional<Error> trouble;  // of this round
    bool contended = false;
    bool ended = false;  // its transaction, as it was meant to
    bool alone = false;
  };
  using Entries = std::vector<std::shared_ptr<Entry>>;
  // Connections that are locked and unlocked together.
  struct Lane {
    explicit Lane(io::Loop& loop) : waiter(loop) {}
    io::Waiter waiter;
    std::map<const ShardLogin*, Connection> connections;
    bool busy = false;
    [[nodiscard]] std::vector<Connection*> connections_of(const Entries& entries);
  };

  io::Task<> run(Lane* lane);
  static io::Task<> lock(Lane* lane, Entries entries, std::chrono::milliseconds lock_timeout);
  static io::Task<> lock_these(Lane* lane, std::vector<Connection*> connections, std::string settings);
  static io::Task<> unlock(Lane* lane, std::vector<Connection*> locked);

  io::Loop& loop_;
  io::Gate& gate_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Entries waiting_;
};

}  // namespace kintsugi::executor
