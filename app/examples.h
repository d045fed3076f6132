// What each command's help shows it at work with.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::app {

// The examples of a command, "shard add" for one, as the end of its help; empty where there is nothing to show.
[[nodiscard]] std::string examples_of(std::string_view command);

}  // namespace kintsugi::app
