#include <iostream>
#include <sstream>

#include "app/commands.h"
#include "app/config_file.h"
#include "app/config_value.h"

namespace kintsugi::app {
namespace {

struct Options {
  std::string file;
  std::string data;
  bool json = false;
};

// {"problems": ["...", ...]}
std::string problems_as_json(const std::string& lines) {
  std::string text;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) text += (text.empty() ? "" : ", ") + toml_string(line);
  return "{\"problems\": [" + text + "]}\n";
}

int run(const Options& options) {
  auto loaded = load_config({.file = options.file, .data = options.data, .environment = process_environment()});
  if (!loaded) {
    if (options.json) {
      std::cout << problems_as_json(loaded.error().message);
    } else {
      std::cerr << loaded.error().message << "\n";
    }
    return kFailed;
  }
  if (options.json) {
    std::cout << describe_config_as_json(*loaded);
    return kDone;
  }
  std::cout << "# " << options.file << " is sound. What `serve` would run with:\n\n"
            << describe_config(*loaded);
  return kDone;
}

}  // namespace

void add_check_config(CLI::App& root, int& exit_code) {
  CLI::App* command =
      root.add_subcommand("check-config", "check a configuration file and print what it comes to");
  auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "the file")->required();
  command->add_option("--data", options->data, "where relative paths start");
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace kintsugi::app
