// A server from its configuration to its end. What `serve` does, and `demo` once its shards are up.
#pragma once

#include <functional>
#include <string>

#include "app/signals.h"
#include "base/config.h"
#include "base/error.h"

namespace kintsugi::app {

// Where a server listens: "127.0.0.1:6432", the real port when 0 was asked.
struct Listening {
  std::string clients, admin;
};

// Starts the server, calls `listening`, and returns when a signal ended it. Needs block_signals() first. An
// error: it never listened.
[[nodiscard]] Result<Ended> run_server(const Config& config,
                                       const std::function<void(const Listening& at)>& listening);

}  // namespace kintsugi::app
