// SELECT set_config(...) in a transaction: what it sets is to hold on every shard of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::frontend {

// The same without rows; none when something else than set_config() of plain strings is in it.
std::optional<std::string> settings_as_block(std::string_view text);

// Whether it can run on several shards and be the same on each: of constants, parameters and names of settings.
bool sets_alike(std::string_view text);

}  // namespace kintsugi::frontend
