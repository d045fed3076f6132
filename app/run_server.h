// A server from its configuration to its end. What `serve` does, and `demo` once its shards are up.
#pragma once

#include <functional>
#include <string>

#include "app/signals.h"
#include "base/config.h"
#include "base/error.h"

namespace kintsugi::app {

// Starts the server, calls `listening` with its address ("127.0.0.1:6432", the real port when 0 was asked), and
// returns when a signal ended it. Needs block_signals() first. An error: it never listened.
[[nodiscard]] Result<Ended> run_server(const Config& config,
                                       const std::function<void(const std::string& address)>& listening);

}  // namespace kintsugi::app
