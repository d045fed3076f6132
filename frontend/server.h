// The PostgreSQL side of a router: everything that listens for clients. Started and stopped by one thread; runs
// on its own.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "admin/commands/command_queue.h"
#include "admin/commands/router_load.h"
#include "base/config.h"
#include "base/error.h"
#include "executor/deadlock.h"
#include "executor/moments.h"
#include "frontend/catalog_source.h"
#include "frontend/map_source.h"

namespace kintsugi::frontend {

struct Shared;

class Server {
 public:
  // Listens when it returns. A map without a shard is no reason not to start: clients come to make one.
  static Result<std::unique_ptr<Server>> start(const Config& config, std::shared_ptr<MapSource> maps,
                                               std::shared_ptr<admin::CommandQueue> commands,
                                               std::shared_ptr<executor::Moments> moments = nullptr);
  // With the map that config.shards are.
  static Result<std::unique_ptr<Server>> start(const Config& config);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "127.0.0.1:6432": with the real port when port 0 was asked for.
  [[nodiscard]] std::string address() const { return address_; }

  // A newer map, for all threads; the source learns by taken() when the last has it. Any thread, one at a time,
  // in rising epochs. Does nothing once the server has been shut down.
  void deliver(const shardmap::MapPtr& map);

  // For SHOW and metrics. Any thread, while the server lives.
  [[nodiscard]] std::vector<admin::PoolState> pools() const;
  // Asks every thread, for a second at the most; nothing when one does not answer.
  [[nodiscard]] std::optional<admin::RouterLoad> load() const;
  // Transactions over several shards that wait; those of threads that answer within a second. And the end of
  // one, when it still does: 40P01.
  [[nodiscard]] std::vector<executor::HeldUp> held_up() const;
  void break_off(const executor::HeldUp& transaction);
  // Where a statement would go, as EXPLAIN (ROUTE) shows it.
  Result<std::vector<std::string>> route(const std::string& statement, const std::string& user) const;
  // False once the shutdown has begun.
  [[nodiscard]] bool accepting() const { return !stopped_; }

  // A newer catalogue, for all threads. Any thread.
  void deliver(const planner::CatalogPtr& catalog);
  // Who is asked for a newer one, and who is told of commits that left something to settle. Before the first
  // client, by the thread that started the server.
  void set_services(std::shared_ptr<CatalogSource> catalogs, std::function<void()> settle);

  // The certificate and key again, for connections from now on. The old ones stay when the new ones cannot be
  // used.
  void reload_tls();

  // No new clients; idle ones are sent away; running statements and open transactions may end within
  // `patience`; then the rest is cut. Blocks until everything is closed.
  void shutdown(std::chrono::milliseconds patience);

 private:
  Server();
  std::unique_ptr<Shared> shared_;
  std::string address_;
  mutable std::mutex delivering_;  // held around each delivery, and when the workers go
  std::atomic<bool> stopped_{false};
};

}  // namespace kintsugi::frontend
