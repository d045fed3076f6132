#include "app/run_server.h"

#include <unistd.h>

#include "app/map_service.h"
#include "app/open_files.h"
#include "app/version.h"
#include "base/log.h"
#include "frontend/server.h"

namespace kintsugi::app {
namespace {

constexpr std::size_t kShardsExpected = 16;  // that may come while the router runs

}  // namespace

Result<Ended> run_server(const Config& config,
                         const std::function<void(const std::string& address)>& listening) {
  log::set_level(config.log.level);
  KG_TRY(std::shared_ptr<MapService> maps, MapService::start(config));
  const std::size_t shards = maps->current()->shards().size();
  raise_open_files(config.server.max_clients,
                   config.pool.size * static_cast<int>(std::max(shards, kShardsExpected)));
  KG_TRY(std::unique_ptr<frontend::Server> server, frontend::Server::start(config, maps));
  maps->attach(*server);
  log::info("listening", {{"address", server->address()},
                          {"database", config.database.name},
                          {"shards", shards},
                          {"epoch", maps->current()->epoch()},
                          {"version", kVersion},
                          {"pid", getpid()}});
  listening(server->address());
  Ended ended = wait_for_the_end({.reload = [&server] { server->reload_tls(); },
                                  .shutdown = [&] { server->shutdown(config.server.shutdown_timeout); }});
  if (ended == Ended::kAtOnce) {
    static_cast<void>(new std::shared_ptr<MapService>(std::move(maps)));
    static_cast<void>(server.release());  // its threads are still at work, and the process is about to end
  } else {
    maps->detach();
    server.reset();
    maps->stop();
    log::info("ended");
  }
  return ended;
}

}  // namespace kintsugi::app
