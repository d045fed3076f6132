#include "app/commands.h"
#include "app/demo.h"

namespace kintsugi::app {
namespace {

int run(const DemoOptions& options) {
  block_signals();
  auto ended = run_demo(options);
  if (!ended) {
    complain(ended.error());
    return kFailed;
  }
  if (*ended == Ended::kAtOnce) std::_Exit(kFailed);
  return kDone;
}

}  // namespace

void add_demo(CLI::App& root, int& exit_code) {
  CLI::App* command =
      root.add_subcommand("demo", "local PostgreSQL shards with a sample, and a router; until Ctrl-C");
  auto options = std::make_shared<DemoOptions>();
  command->add_option("--shards", options->shards, "how many shards; 4 at first, later as many as there are")
      ->check(CLI::Range(1, 64));
  command->add_option("--data", options->data, "where everything is kept; default: demo-data here");
  command->add_option("--port", options->port, "for PostgreSQL clients; 0 takes a free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  command->add_option("--admin-port", options->admin_port, "for REST and the console; 0 takes a free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace kintsugi::app
