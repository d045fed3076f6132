// SELECT set_config(...) with nothing but constants, for shards that join the transaction later.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::frontend {

// The same without rows; none when something else than set_config() of plain strings is in it.
std::optional<std::string> settings_as_block(std::string_view text);

}  // namespace kintsugi::frontend
