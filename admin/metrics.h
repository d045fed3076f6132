// What /metrics says, in Prometheus' text form, and what /readyz does. Any thread.
#pragma once

#include <string>

#include "admin/commands/command_result.h"
#include "admin/commands/surroundings.h"

namespace kintsugi::admin {

[[nodiscard]] std::string metrics_text(const Surroundings& surroundings);

// {"ready", "serving", "epoch", "shards", "store", "lease"}: ready is a router that clients may be sent to. A
// store that is away does not make it less so: routing goes on.
[[nodiscard]] Json readiness(const Surroundings& surroundings);

}  // namespace kintsugi::admin
