#include "app/run_server.h"

#include <unistd.h>

#include "admin/commands/command_queue.h"
#include "admin/rest_server.h"
#include "app/catalog_service.h"
#include "app/map_service.h"
#include "app/open_files.h"
#include "app/shard_sizes.h"
#include "app/version.h"
#include "base/log.h"
#include "executor/deadlock.h"
#include "executor/moments.h"
#include "executor/settler.h"
#include "frontend/server.h"

namespace kintsugi::app {
namespace {

constexpr auto kSettleEvery = std::chrono::seconds(5);
constexpr std::size_t kShardsExpected = 16;  // that may come while the router runs

std::string token_file(const Config& config) {
  return config.admin.token_file.empty() ? "admin.token" : config.admin.token_file;
}

std::shared_ptr<const admin::Surroundings> surroundings_of(const std::shared_ptr<MapService>& maps,
                                                           const std::shared_ptr<ShardSizes>& sizes) {
  auto made = std::make_shared<admin::Surroundings>();
  made->store = maps->store();
  made->router = maps->router();
  made->map = [maps] { return maps->current(); };
  made->lease_valid = [maps] { return maps->lease_valid(); };
  made->store_reachable = [maps] { return maps->store_reachable(); };
  made->serving = [maps] {
    bool accepting = false;
    maps->with_server([&accepting](frontend::Server& server) { accepting = server.accepting(); });
    return accepting;
  };
  made->shard_bytes = [sizes] { return sizes->known(); };
  made->look_for_jobs = [maps] { maps->look_for_jobs(); };
  made->pools = [maps] {
    std::vector<admin::PoolState> pools;
    maps->with_server([&pools](frontend::Server& server) { pools = server.pools(); });
    return pools;
  };
  made->load = [maps] {
    std::optional<admin::RouterLoad> load;
    maps->with_server([&load](frontend::Server& server) { load = server.load(); });
    return load;
  };
  made->route = [maps](const std::string& statement, const std::string& user) {
    Result<std::vector<std::string>> lines = fail(sqlstate::kCannotConnectNow, "the router is shutting down");
    maps->with_server([&](frontend::Server& server) { lines = server.route(statement, user); });
    return lines;
  };
  return made;
}

std::vector<shardmap::ShardId> ids_of(const std::vector<const shardmap::Shard*>& shards) {
  std::vector<shardmap::ShardId> ids;
  for (const shardmap::Shard* shard : shards) ids.push_back(shard->id);
  return ids;
}

}  // namespace

Result<Ended> run_server(const Config& config, const std::function<void(const Listening& at)>& listening) {
  log::set_level(config.log.level);
  KG_TRY(std::shared_ptr<MapService> maps, MapService::start(config));
  const std::size_t shards = maps->current()->shards().size();
  raise_open_files(config.server.max_clients,
                   config.pool.size * static_cast<int>(std::max(shards, kShardsExpected)));
  const auto sizes = std::make_shared<ShardSizes>([maps] { return maps->current(); });
  const auto surroundings = surroundings_of(maps, sizes);
  auto commands = std::make_shared<admin::CommandQueue>(surroundings);
  KG_TRY(std::unique_ptr<admin::RestServer> rest,
         admin::RestServer::start(
             {.listen = config.admin.listen,
              .token_file = token_file(config),
              .user_file = config.admin.user_file.empty() ? "admin.users" : config.admin.user_file,
              .tls_cert = config.admin.tls_cert,
              .tls_key = config.admin.tls_key,
              .version = std::string(kVersion)},
             surroundings));
  const auto moments = std::make_shared<executor::Moments>();
  // What a router before this one has left half committed is settled before anybody sees it.
  if (!maps->store().empty()) moments->doubt(ids_of(maps->current()->shards()));
  KG_TRY(std::unique_ptr<frontend::Server> server, frontend::Server::start(config, maps, commands, moments));
  maps->attach(*server);
  const auto catalogs = std::make_shared<CatalogService>(maps);
  auto settler = std::make_shared<executor::Settler>([maps] { return maps->current(); }, moments, kSettleEvery);
  // The schema kintsugi, where routers write down who waits, is on shards of a map that has a store.
  auto deadlocks = std::make_shared<executor::DeadlockWatch>(executor::DeadlockWatch::Router{
      .map = [maps] { return maps->current(); },
      .held_up = [its = server.get()] { return its->held_up(); },
      .break_off = [its = server.get()](const executor::HeldUp& held) { its->break_off(held); },
      .several = !maps->store().empty() && !config.map.store.starts_with("sqlite:")});
  if (maps->current()->shards().size() != 1 || !maps->store().empty()) {
    server->set_services(catalogs, [settler] { settler->wake(); });
    catalogs->start();
    if (!maps->store().empty()) {
      settler->start();
      settler->wake();
    }
    deadlocks->start();
  }
  log::info("listening", {{"address", server->address()},
                          {"database", config.database.name},
                          {"shards", shards},
                          {"epoch", maps->current()->epoch()},
                          {"version", kVersion},
                          {"pid", getpid()}});
  log::info("listening for REST", {{"address", rest->address()}, {"token_file", token_file(config)}});
  listening({.clients = server->address(), .admin = rest->address()});
  // The shutdown may still be at work when a second signal has ended the wait, and this function with it.
  Ended ended =
      wait_for_the_end({.reload =
                            [its = server.get(), admin = rest.get()] {
                              its->reload_tls();
                              admin->reload_tls();
                            },
                        .shutdown = [its = server.get(),
                                     patience = config.server.shutdown_timeout] { its->shutdown(patience); }});
  if (ended == Ended::kAtOnce) {
    static_cast<void>(new std::shared_ptr<MapService>(std::move(maps)));
    static_cast<void>(new std::shared_ptr<CatalogService>(catalogs));
    static_cast<void>(new std::shared_ptr<executor::Settler>(settler));
    static_cast<void>(new std::shared_ptr<executor::DeadlockWatch>(deadlocks));
    static_cast<void>(new std::shared_ptr<ShardSizes>(sizes));
    static_cast<void>(rest.release());
    static_cast<void>(server.release());  // its threads are still at work, and the process is about to end
  } else {
    maps->detach();
    rest.reset();
    deadlocks->stop();
    server.reset();
    catalogs->stop();
    settler->stop();
    sizes->stop();
    commands.reset();
    maps->stop();
    log::info("ended");
  }
  return ended;
}

}  // namespace kintsugi::app
