// The command line: which command was meant, what to say when none was. Runs on the main thread.
#pragma once

#include <string>
#include <vector>

namespace kintsugi::app {

// Everything that main() does. The result is the exit code.
[[nodiscard]] int run_command_line(const std::vector<std::string>& arguments);

}  // namespace kintsugi::app
