#include "app/map_service.h"

#include <unistd.h>

#include "frontend/server.h"

namespace kintsugi::app {
namespace {

// The same after a restart, so that a router that was killed leaves no second name behind.
std::string router_name(const Config& config) {
  char host[256] = "localhost";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  std::string name = std::string(host) + " " + config.server.listen;
  if (config.server.listen.ends_with(":0")) name += " pid " + std::to_string(getpid());
  return name;
}

}  // namespace

Result<std::shared_ptr<MapService>> MapService::start(const Config& config) {
  std::shared_ptr<MapService> service(new MapService);
  service->router_ = router_name(config);
  if (!config.shards.empty()) {
    KG_TRY(const auto fixed, frontend::fixed_map(config));
    service->map_ = fixed->current();
    return service;
  }
  constexpr std::string_view kSqlite = "sqlite:";
  KG_TRY(service->replica_lock_, FileLock::take(config.map.replica));
  if (config.map.store.starts_with(kSqlite)) {
    KG_TRY(service->store_lock_, FileLock::take(config.map.store.substr(kSqlite.size())));
  }
  service->store_ = config.map.store;
  shardmap::MapFeedOptions options{
      .store = config.map.store, .replica = config.map.replica, .router = service->router_};
  MapService* its = service.get();
  KG_TRY(service->feed_, shardmap::MapFeed::start(std::move(options),
                                                  [its](const shardmap::MapPtr& map) { its->deliver(map); }));
  service->recoverer_ = std::make_unique<shardmap::Recoverer>(config.map.store, "");
  KG_TRY(service->runner_,
         splitmerge::JobRunner::start({.store = config.map.store, .router = service->router_}));
  return service;
}

void MapService::look_for_jobs() {
  if (runner_) runner_->look_now();
}

MapService::~MapService() {
  stop();
}

void MapService::stop() {
  runner_.reset();
  recoverer_.reset();
  feed_.reset();
}

void MapService::deliver(const shardmap::MapPtr& map) {
  const std::lock_guard order(delivering_);
  frontend::Server* server = nullptr;
  {
    const std::lock_guard lock(mutex_);
    map_ = map;
    server = server_;
  }
  if (server != nullptr) server->deliver(map);
}

void MapService::attach(frontend::Server& server) {
  const std::lock_guard order(delivering_);
  shardmap::MapPtr map;
  {
    const std::lock_guard lock(mutex_);
    server_ = &server;
    map = map_;
  }
  server.deliver(map);
}

void MapService::detach() {
  const std::lock_guard order(delivering_);
  const std::lock_guard lock(mutex_);
  server_ = nullptr;
}

bool MapService::with_server(const std::function<void(frontend::Server& server)>& work) const {
  const std::lock_guard lock(mutex_);
  if (server_ == nullptr) return false;
  work(*server_);
  return true;
}

shardmap::MapPtr MapService::current() const {
  const std::lock_guard lock(mutex_);
  return map_;
}

void MapService::seen(std::uint64_t epoch) {
  if (feed_) feed_->seen(epoch);
}

void MapService::taken(std::uint64_t epoch) {
  if (feed_) feed_->taken(epoch);
}

bool MapService::lease_valid() const {
  return !feed_ || feed_->lease_valid();
}

std::chrono::steady_clock::time_point MapService::lease_end() const {
  return feed_ ? feed_->lease_end() : std::chrono::steady_clock::time_point::max();
}

bool MapService::store_reachable() const {
  return !feed_ || feed_->store_reachable();
}

}  // namespace kintsugi::app
