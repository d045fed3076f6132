// Runs another program to its end. Blocks the calling thread; any thread may call.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace kintsugi::app {

struct Program {
  std::vector<std::string> arguments;  // the first is the program, with its path
  std::string input = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  // on top of ours, less every PG* variable
  std::chrono::milliseconds patience{60000};                          // then it is killed, and that is an error
};

struct Outcome {
  int exit_code = 0;   // 128 + signal when one ended it
  std::string output;  // both streams
};

// The program starts in `/`, in a process group of its own (Ctrl-C on the terminal is ours to handle), with no
// signal blocked or ignored and no open file of ours. The error is only for a program that could not be run to
// its end.
[[nodiscard]] Result<Outcome> run_program(const Program& program);

}  // namespace kintsugi::app
