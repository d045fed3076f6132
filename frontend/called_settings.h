// SELECT set_config(...) in a transaction: what it sets is to hold on every shard of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "planner/analysis.h"

namespace kintsugi::frontend {

// The same without rows; none when something else than set_config() of plain strings is in it.
std::optional<std::string> settings_as_block(std::string_view text);

// The statement with the values of its parameters as plain strings. One that cannot be written so stays a
// parameter, and so does one for is_local that is not true: only what ends with the transaction is repeated.
std::string with_values(std::string_view text, std::span<const planner::Parameter> parameters);

// Whether it can run on several shards and be the same on each: of constants, parameters and names of settings.
bool sets_alike(std::string_view text);

}  // namespace kintsugi::frontend
