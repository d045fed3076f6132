#include "app/run_server.h"

#include <unistd.h>

#include "app/open_files.h"
#include "app/version.h"
#include "base/log.h"
#include "frontend/server.h"

namespace kintsugi::app {

Result<Ended> run_server(const Config& config,
                         const std::function<void(const std::string& address)>& listening) {
  log::set_level(config.log.level);
  raise_open_files(config.server.max_clients, config.pool.size * static_cast<int>(config.shards.size()));
  KG_TRY(std::unique_ptr<frontend::Server> server, frontend::Server::start(config));
  log::info("listening", {{"address", server->address()},
                          {"database", config.database.name},
                          {"shards", config.shards.size()},
                          {"version", kVersion},
                          {"pid", getpid()}});
  listening(server->address());
  Ended ended = wait_for_the_end({.reload = [&server] { server->reload_tls(); },
                                  .shutdown = [&] { server->shutdown(config.server.shutdown_timeout); }});
  if (ended == Ended::kAtOnce) {
    static_cast<void>(server.release());  // its threads are still at work, and the process is about to end
  } else {
    server.reset();
    log::info("ended");
  }
  return ended;
}

}  // namespace kintsugi::app
