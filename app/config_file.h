// From the places where a configuration is written (defaults, file, environment, flags, each above the one
// before) to the value that the program runs with. Everything that is wrong is found at once, each with the
// place it was read. Runs at the start, on one thread; reads files, changes none.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/error.h"

namespace kintsugi::app {

struct ConfigSources {
  std::string file = {};                                // empty: no file
  std::string data = {};                                // where relative paths start; empty: left as they are
  std::map<std::string, std::string> environment = {};  // all of it; KINTSUGI_<SECTION>_<KEY> is looked for
  struct Flag {
    std::string name;  // "--listen", for the error
    std::string key;   // "server.listen"
    std::string value;
  };
  std::vector<Flag> flags = {};
};

struct LoadedConfig {
  Config config;
  // "server.listen" -> "kintsugi.toml:3", "environment KINTSUGI_SERVER_LISTEN", "--listen"; absent: the
  // default.
  std::map<std::string, std::string> origins;
};

// The error is F0000; its message has one line a problem: place, what was read, what is allowed.
[[nodiscard]] Result<LoadedConfig> load_config(const ConfigSources& sources);

// Every value with where it comes from, as a TOML file that could be used again, but for passwords.
[[nodiscard]] std::string describe_config(const LoadedConfig& loaded);

// The same for programs: {"config": {"server": {...}, ..., "user": [...], "shard": [...]}, "origins": {...}}.
[[nodiscard]] std::string describe_config_as_json(const LoadedConfig& loaded);

// The environment of this process.
[[nodiscard]] std::map<std::string, std::string> process_environment();

}  // namespace kintsugi::app
