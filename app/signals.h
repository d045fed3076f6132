// The signals of the running program: SIGTERM and SIGINT end it in good order, a second one at once; SIGHUP
// reads certificates again; SIGPIPE is nobody's. All of it on the main thread.
#pragma once

#include <functional>

namespace kintsugi::app {

// Before any thread starts: threads inherit the mask, so that only wait_for_the_end() takes these signals.
void block_signals();

// Whether SIGTERM or SIGINT came and has not been taken yet: long preparations stop when it did.
[[nodiscard]] bool end_was_asked();

enum class Ended {
  kInGoodOrder,  // the shutdown has returned
  kAtOnce,       // a second signal came; the shutdown may still be running: end the process without destructors
};

struct Running {
  std::function<void()> reload;    // SIGHUP
  std::function<void()> shutdown;  // the first SIGTERM or SIGINT; on a thread of its own, may take its time
};

[[nodiscard]] Ended wait_for_the_end(const Running& running);

}  // namespace kintsugi::app
