#include <cstdio>
#include <exception>

#include "app/cli.h"

int main(int argc, char** argv) {
  try {
    return kintsugi::app::run_command_line({argv + 1, argv + argc});
  } catch (
      const std::exception& error) {  // a library's exception that no adapter caught: our mistake, said plainly
    std::fprintf(stderr, "kintsugi: internal error: %s\n", error.what());
    return 1;
  }
}
