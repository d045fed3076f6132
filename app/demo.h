// `kintsugi demo`: real PostgreSQL clusters, a sample, and a router over them, from nothing and from what is
// there.
#pragma once

#include <string>

#include "app/signals.h"
#include "base/error.h"

namespace kintsugi::app {

struct DemoOptions {
  int shards = 0;    // 0: as many as there are, 4 at first
  std::string data;  // empty: demo-data here, or where PostgreSQL's user can go
  int port = 6432;
  int admin_port = 8432;
};

// Runs until a signal ends it; no process of the demo is left when it returns. Needs block_signals() first.
[[nodiscard]] Result<Ended> run_demo(const DemoOptions& options);

}  // namespace kintsugi::app
