// What /metrics says, in Prometheus' text form, and what /readyz does. Any thread.
#pragma once

#include <string>

#include "admin/commands/command_result.h"
#include "admin/commands/surroundings.h"

namespace kintsugi::admin {

// What only the map store knows; empty while it is away.
struct OfTheStore {
  std::vector<Json> routers, jobs;
};
[[nodiscard]] std::string metrics_text(const Surroundings& surroundings, const OfTheStore& beside);

// {"ready", "why", "serving", "epoch", "shards", "store", "lease"}: ready is a router that clients may be sent
// to. A store that is away does not make it less so while the replica knows the map: routing goes on.
[[nodiscard]] Json readiness(const Surroundings& surroundings);

}  // namespace kintsugi::admin
