// The demo's shard map, in its own SQLite store: its clusters as shards, and the sample's tables in a map by
// tenant. Runs before the router does, on the demo's thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kintsugi::app {

struct DemoMapShard {
  std::string name;
  std::string dsn;
};

// Brings the store to what the demo is: makes what is missing, tells it of a shard whose port has changed, and
// leaves alone what a user has changed since. The first shard has the sample.
[[nodiscard]] Status prepare_demo_map(const std::string& store, const std::vector<DemoMapShard>& shards);

}  // namespace kintsugi::app
