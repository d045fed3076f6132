#include <iostream>

#include "app/commands.h"
#include "app/version.h"

namespace kintsugi::app {

void add_version(CLI::App& root, int& exit_code) {
  CLI::App* command = root.add_subcommand("version", "print the version");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, &exit_code] {
    if (*json) {
      std::cout << "{\"version\": \"" << kVersion << "\", \"protocol\": \"3.0\"}\n";
    } else {
      std::cout << "kintsugi " << kVersion << "\n";
    }
    exit_code = kDone;
  });
}

}  // namespace kintsugi::app
