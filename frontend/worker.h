// One thread of the router: a listener of its own, its sessions, its pools. Workers share what is in Shared and
// talk by posting to each other's loops.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "admin/commands/command_queue.h"
#include "base/config.h"
#include "base/io/gate.h"
#include "executor/deadlock.h"
#include "executor/lookout.h"
#include "executor/moments.h"
#include "executor/pool.h"
#include "executor/witness.h"
#include "frontend/catalog_source.h"
#include "frontend/load_counter.h"
#include "frontend/map_source.h"
#include "frontend/statement_book.h"
#include "frontend/users.h"

namespace kintsugi::frontend {

class Session;
class Worker;

// What the program does for the sessions in the background.
struct Services {
  std::shared_ptr<CatalogSource> catalogs;  // null: there is no catalogue but the one at the start
  std::function<void()> settle;             // a commit has left prepared transactions; may be empty
};

// What all threads see. Immutable but for the atomics and the TLS context, which is exchanged under its lock.
struct Shared {
  Shared(const Config& c, std::shared_ptr<MapSource> m, std::shared_ptr<admin::CommandQueue> q,
         std::shared_ptr<executor::Moments> o)
      : config(c), maps(std::move(m)), commands(std::move(q)), pools(c.pool), moments(std::move(o)) {}

  Config config;
  const std::shared_ptr<MapSource> maps;  // whose lease and store; the map itself is Worker::map()
  const std::shared_ptr<admin::CommandQueue> commands;  // Kintsugi's own statements are run there
  const bool routes = config.shards.size() != 1;
  // May share its shards with others: nobody else can read a map that is a file of this router.
  const bool several_routers = !config.map.store.starts_with("sqlite:");
  UserTable users;
  executor::PoolDirectory pools;
  std::shared_ptr<executor::Moments> moments;
  std::vector<std::unique_ptr<Worker>> workers;
  // Writes over several shards begin on one alone, the same for all: for a while after a deadlock, when they
  // are to be expected.
  [[nodiscard]] bool in_turn() const {
    return Deadline::Clock::now().time_since_epoch().count() < in_turn_until_.load();
  }
  void note_deadlock() {
    in_turn_until_ = (Deadline::Clock::now() + std::chrono::minutes(1)).time_since_epoch().count();
  }
  std::atomic<int> clients{0};      // logged in or logging in as a session
  std::atomic<int> connections{0};  // accepted sockets

  std::shared_ptr<const io::TlsContext> tls() {
    std::lock_guard lock(tls_mutex_);
    return tls_;
  }
  void set_tls(std::shared_ptr<const io::TlsContext> context) {
    std::lock_guard lock(tls_mutex_);
    tls_ = std::move(context);
  }
  // The pools' login at a shard for a client: the same object for the same client name, and for all clients
  // when the shard's DSN names a user. A shard whose DSN has changed has another one.
  Result<std::shared_ptr<const executor::ShardLogin>> login_for(const shardmap::Shard& shard,
                                                                const std::string& user,
                                                                const std::string& password,
                                                                const std::optional<wire::ScramKeys>& keys);

 private:
  std::atomic<Deadline::Clock::rep> in_turn_until_{INT64_MIN};
  std::mutex tls_mutex_;
  std::shared_ptr<const io::TlsContext> tls_;
  std::mutex logins_mutex_;
  struct ShardLogins {
    std::string dsn_text;
    executor::Dsn dsn;
    std::map<std::string, std::shared_ptr<const executor::ShardLogin>> by_client;
  };
  std::map<std::string, ShardLogins> logins_;  // by the shard's name
};

class Worker final : public io::EventTarget {
 public:
  static constexpr std::size_t kScratchBytes = 64 * 1024;

  Worker(Shared& shared, int index, io::UniqueFd listener);
  ~Worker();

  void start();
  void join();
  // From any thread. Phase one: no new clients, idle sessions end. Phase two: all sessions end now.
  void begin_shutdown();
  void end_sessions();
  // A newer map. On this thread: `seen` once statements are planned on it, `taken` once none runs that was
  // planned on an older one.
  void deliver(shardmap::MapPtr map, std::function<void()> seen, std::function<void()> taken);
  void deliver(planner::CatalogPtr catalog);
  void deliver(std::shared_ptr<const Services> services);
  [[nodiscard]] const Services& services() const { return *services_; }
  // From any thread: `tell` is called on this one with what has been counted here.
  void ask_load(std::function<void(const admin::RouterLoad& load)> tell);
  // From any thread: `tell` is called on this one with the transactions over several shards that wait.
  void ask_held_up(std::function<void(std::vector<executor::HeldUp>)> tell);
  // From any thread: the client gets 40P01, unless the session has gone on.
  void break_off(const executor::HeldUp& transaction);
  // From any thread: as EXPLAIN (ROUTE) of a session with the default settings.
  void ask_route(std::string text, std::string user,
                 std::function<void(Result<std::vector<std::string>> lines)> tell);
  // A CancelRequest with this key has come to some thread; it belongs to a session here.
  // `on_done` is called on this thread when it has arrived at the shard, or has nobody to reach.
  void cancel(wire::BackendKey key, std::function<void()> on_done);

  [[nodiscard]] Shared& shared() { return shared_; }
  // The map that statements are planned on now. Keep a MapPtr of your own for as long as one runs.
  [[nodiscard]] const shardmap::MapPtr& map() const { return routing_.map; }
  // The same with the catalogue.
  [[nodiscard]] const Routing& routing() const { return routing_; }
  [[nodiscard]] StatementBook& book() { return book_; }
  [[nodiscard]] LoadCounter& load() { return load_; }
  // False: one shard of a fixed configuration takes every statement as it is.
  [[nodiscard]] bool routes() const { return shared_.routes; }
  [[nodiscard]] io::Loop& loop() { return loop_; }
  [[nodiscard]] io::Gate& gate() { return gate_; }
  [[nodiscard]] executor::ThreadPools& pools() { return pools_; }
  [[nodiscard]] executor::Lookout& lookout() { return lookout_; }
  [[nodiscard]] executor::Witness& witness() { return witness_; }
  [[nodiscard]] char* scratch() { return scratch_.data(); }
  [[nodiscard]] bool shutting_down() const { return shutting_down_; }
  [[nodiscard]] bool ending() const { return ending_; }

  // A session is entering until it has its key, or leaves.
  void entering(Session* session) { entering_.insert(session); }
  void gone(Session* session) { entering_.erase(session); }
  wire::BackendKey add(Session* session);
  void remove(wire::BackendKey key);
  // Sends a cancel request for what the connection runs and wakes the session when it has arrived.
  void send_cancel(const executor::BackendPool& pool, const executor::Backend& backend,
                   wire::BackendKey session, std::function<void()> on_done = {});
  // Makes a connection that a session left behind like new, or closes it.
  void clean_up(executor::BackendLease lease, bool discard);
  void wake(wire::BackendKey session);
  // A session's statement has ended: it may have been the last one of an older map.
  void statement_ended() {
    if (!taking_.empty()) tell_taken();
  }

  std::vector<planner::Parameter> parameters_scratch;
  std::uint64_t last_unnamed_version = 0;  // told apart between threads by its high bits

  void on_event(io::Watch& watch, std::uint32_t ready) override;  // somebody wants to connect

  static int index_of(wire::BackendKey key) { return static_cast<int>(key.pid & 0xff); }

 private:
  void run();
  Result<std::vector<std::string>> route_of(const std::string& text, const std::string& user);
  void routing_changed(const shardmap::MapPtr& before);
  void tell_taken();
  void accept_all();
  io::Task<> drain_and_stop();

  Shared& shared_;
  int index_;
  Routing routing_;
  // Who waits until no statement runs that was planned on an older map than that.
  std::vector<std::pair<std::uint64_t, std::function<void()>>> taking_;
  std::shared_ptr<const Services> services_ = std::make_shared<const Services>();
  StatementBook book_;
  LoadCounter load_;
  io::Loop loop_;
  io::UniqueFd listener_;
  io::Watch listener_watch_;
  io::Timer accept_again_;
  executor::ThreadPools pools_;
  io::Gate gate_;  // sessions, connections being made like new, the lookout
  executor::Lookout lookout_{loop_, gate_};
  executor::Witness witness_{loop_, gate_};
  io::Gate cancels_;  // cancel requests: those of the last sessions too
  io::Gate stopper_;  // what waits for the gates
  std::unordered_map<std::uint32_t, Session*> sessions_;
  std::unordered_set<Session*> entering_;
  std::uint32_t next_session_ = 0;
  bool shutting_down_ = false, ending_ = false;
  std::array<char, kScratchBytes> scratch_;  // what is read is understood or copied before anything else runs
  std::thread thread_;
};

}  // namespace kintsugi::frontend
