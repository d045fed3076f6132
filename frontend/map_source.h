// What the front asks of whoever keeps the shard map up to date: app/ with a MapFeed, or a map that never
// changes. New maps come the other way, by Server::deliver. Any thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/config.h"
#include "base/error.h"
#include "shardmap/shard_map.h"

namespace kintsugi::frontend {

class MapSource {
 public:
  virtual ~MapSource() = default;

  // The map to start with. Never null, but there may be no shard in it yet.
  [[nodiscard]] virtual shardmap::MapPtr current() const = 0;

  // Every thread plans on `epoch` or a later one.
  virtual void seen(std::uint64_t) {}
  // And no statement that was planned on an earlier one runs any more.
  virtual void taken(std::uint64_t epoch) = 0;

  // False: others no longer count on this router having taken each epoch (MapFeed says more).
  [[nodiscard]] virtual bool lease_valid() const = 0;
  // Until when that is so. Asked for every statement, with a clock's value that is at hand.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point lease_end() const {
    using Time = std::chrono::steady_clock::time_point;
    return lease_valid() ? Time::max() : Time::min();
  }

  // False: the map cannot be changed now, KG006.
  [[nodiscard]] virtual bool store_reachable() const = 0;
};

// The [[shard]] entries of a configuration as a map: the first is home, and nothing ever changes. 42710 when
// two have one name.
Result<std::shared_ptr<MapSource>> fixed_map(const Config& config);

}  // namespace kintsugi::frontend
