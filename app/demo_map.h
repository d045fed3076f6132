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
// leaves alone what a user has changed since. The first `spread` shards have the sample's tenants, in parts; 0:
// the first has all of them.
[[nodiscard]] Status prepare_demo_map(const std::string& store, const std::vector<DemoMapShard>& shards,
                                      int spread);

}  // namespace kintsugi::app
