// The commands of the program: one file each, `command_<name>.cc`, with one function that describes the command
// to the command line and says what runs. A new command is a new file, a line here and a line in kCommands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"

namespace kintsugi::app {

// What scripts may rely on (CONTRACT §2).
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kWrongUsage = 2,
  kRefused = 3,      // a precondition does not hold
  kUnreachable = 4,  // no router answers at the admin address
};

// Adds the command to `root`. Its callback writes the exit code.
using AddCommand = void (*)(CLI::App& root, int& exit_code);

void add_serve(CLI::App& root, int& exit_code);
void add_demo(CLI::App& root, int& exit_code);
void add_check_config(CLI::App& root, int& exit_code);
void add_version(CLI::App& root, int& exit_code);
// Those that talk to a router.
void add_shard(CLI::App& root, int& exit_code);
void add_map(CLI::App& root, int& exit_code);
void add_shardlet(CLI::App& root, int& exit_code);
void add_table(CLI::App& root, int& exit_code);
void add_lookup(CLI::App& root, int& exit_code);
void add_jobs(CLI::App& root, int& exit_code);
void add_recover(CLI::App& root, int& exit_code);
void add_router(CLI::App& root, int& exit_code);
void add_audit(CLI::App& root, int& exit_code);
void add_look(CLI::App& root, int& exit_code);
void add_user(CLI::App& root, int& exit_code);

// One line to standard error: `kintsugi: ...`, with detail and hint below when there are.
void complain(const Error& error);
// The same for programs, of which --json was asked: {"error": {"sqlstate": ..., "message": ...}}.
void complain_in_json(const Error& error);

}  // namespace kintsugi::app
