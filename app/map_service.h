// The shard map of a running router: follows the map store, keeps the replica, finishes what others left
// undone, does the jobs, and hands every new map to the server. With [[shard]] entries there is no store, and
// the map is those. Made and ended by one thread; what a MapSource offers may be called by any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "app/file_lock.h"
#include "base/config.h"
#include "base/error.h"
#include "frontend/map_source.h"
#include "shardmap/map_change.h"
#include "shardmap/map_feed.h"
#include "splitmerge/job_runner.h"

namespace kintsugi::frontend {
class Server;
}

namespace kintsugi::app {

class MapService final : public frontend::MapSource {
 public:
  // Has a map when it returns: the store's, or the replica's when the store is away.
  static Result<std::shared_ptr<MapService>> start(const Config& config);
  ~MapService() override;
  MapService(const MapService&) = delete;
  MapService& operator=(const MapService&) = delete;

  // Hands over the map now and every later one, until the server is detached (before it is destroyed).
  void attach(frontend::Server& server);
  void detach();

  // The server, while it is attached; false otherwise. It does not go away meanwhile.
  bool with_server(const std::function<void(frontend::Server& server)>& work) const;

  // Ends following; nothing is handed over any more, and the map may no longer be counted on.
  void stop();

  [[nodiscard]] shardmap::MapPtr current() const override;
  void seen(std::uint64_t epoch) override;
  void taken(std::uint64_t epoch) override;
  [[nodiscard]] bool lease_valid() const override;
  [[nodiscard]] std::chrono::steady_clock::time_point lease_end() const override;
  [[nodiscard]] bool store_reachable() const override;

  // There may be a new job.
  void look_for_jobs();

  // Where changes go; empty with [[shard]] entries: the map cannot be changed.
  [[nodiscard]] const std::string& store() const { return store_; }
  // This router's name among those of the store.
  [[nodiscard]] const std::string& router() const { return router_; }

 private:
  MapService() = default;
  void deliver(const shardmap::MapPtr& map);

  FileLock replica_lock_, store_lock_;
  std::string store_;
  std::string router_;
  mutable std::mutex mutex_;  // of the map and the server
  shardmap::MapPtr map_;
  frontend::Server* server_ = nullptr;
  std::mutex delivering_;  // held around each delivery, before `mutex_`: maps are handed over in order
  std::unique_ptr<shardmap::MapFeed> feed_;  // exchanged only while no other thread can call
  std::unique_ptr<shardmap::Recoverer> recoverer_;
  std::unique_ptr<splitmerge::JobRunner> runner_;
};

}  // namespace kintsugi::app
