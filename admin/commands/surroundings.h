// What commands need to know of the router that they run in. Filled by app/ before the first command and then
// left alone; every function may be called by any thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "admin/commands/router_load.h"
#include "base/error.h"
#include "shardmap/shard_map.h"

namespace kintsugi::admin {

struct PoolState {
  std::string shard, role;
  int open = 0, limit = 0, waiting = 0;
};

struct Surroundings {
  std::string store;      // as for open_store; empty: the map is fixed by [[shard]] and cannot be changed
  std::string directory;  // for relative paths in it
  std::string router;     // this router's name
  std::function<shardmap::MapPtr()> map;  // the newest that this router knows
  std::function<bool()> lease_valid, store_reachable;
  std::function<bool()> serving;        // clients are accepted
  std::function<void()> look_for_jobs;  // there is a new one
  std::function<std::vector<PoolState>()> pools;
  std::function<std::map<std::string, std::int64_t>()> shard_bytes;  // of those that have answered lately
  std::function<std::optional<RouterLoad>()> load;                   // nothing: a thread does not answer
  // Where a statement would go, and why it would not.
  std::function<Result<std::vector<std::string>>(const std::string& statement, const std::string& user)> route;
};

}  // namespace kintsugi::admin
