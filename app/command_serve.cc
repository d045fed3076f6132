#include <filesystem>

#include "app/commands.h"
#include "app/config_file.h"
#include "app/run_server.h"
#include "app/signals.h"

namespace kintsugi::app {
namespace {

struct Options {
  std::string file;
  std::string data = ".";
  std::string listen;
  std::string admin;
  std::vector<std::string> settings;
};

Result<ConfigSources> sources_of(const Options& options) {
  ConfigSources sources{.file = options.file, .data = options.data, .environment = process_environment()};
  std::string beside = options.data + "/kintsugi.toml";
  if (sources.file.empty() && std::filesystem::exists(beside)) sources.file = beside;
  if (!options.listen.empty()) sources.flags.push_back({"--listen", "server.listen", options.listen});
  if (!options.admin.empty()) sources.flags.push_back({"--admin", "admin.listen", options.admin});
  for (const std::string& setting : options.settings) {
    std::size_t equals = setting.find('=');
    if (equals == std::string::npos)
      return fail("F0000", "--set " + setting + ": it is --set SECTION.KEY=VALUE");
    sources.flags.push_back({"--set", setting.substr(0, equals), setting.substr(equals + 1)});
  }
  return sources;
}

// The router's own files are in it, and made at the first start: so is the folder.
Status make_folder(const std::string& data) {
  std::error_code problem;
  if (!data.empty()) std::filesystem::create_directories(data, problem);
  if (problem) return fail("58000", "cannot make the folder " + data + ": " + problem.message());
  return {};
}

int run(const Options& options) {
  block_signals();
  auto sources = sources_of(options);
  if (!sources) {
    complain(sources.error());
    return kWrongUsage;
  }
  auto loaded = load_config(*sources);
  if (!loaded) {
    complain(loaded.error());
    return kFailed;
  }
  if (const Status made = make_folder(options.data); !made) {
    complain(made.error());
    return kFailed;
  }
  auto ended = run_server(loaded->config, [](const Listening&) {});
  if (!ended) {
    complain(ended.error());
    return kFailed;
  }
  if (*ended == Ended::kAtOnce) std::_Exit(kFailed);
  return kDone;
}

}  // namespace

void add_serve(CLI::App& root, int& exit_code) {
  CLI::App* command = root.add_subcommand("serve", "run a router until SIGTERM");
  auto options = std::make_shared<Options>();
  command
      ->add_option("--config", options->file,
                   "the configuration; default: kintsugi.toml under --data, when there")
      ->envname("KINTSUGI_CONFIG");
  command->add_option("--data", options->data, "where relative paths start")
      ->capture_default_str()
      ->envname("KINTSUGI_DATA");
  command->add_option("--listen", options->listen, "server.listen: HOST:PORT for clients");
  command->add_option("--admin", options->admin, "admin.listen: HOST:PORT for REST and the console");
  command->add_option("--set", options->settings, "any key of the configuration: SECTION.KEY=VALUE")
      ->take_all();
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace kintsugi::app
