#include "app/signals.h"

#include <csignal>
#include <thread>

#include "base/invariant.h"
#include "base/log.h"

namespace kintsugi::app {
namespace {

// The shutdown thread says with it that it has finished; nobody else sends it.
constexpr int kShutdownDone = SIGUSR1;

sigset_t awaited() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, kShutdownDone}) sigaddset(&set, signal);
  return set;
}

int next_signal() {
  sigset_t set = awaited();
  int signal = 0;
  int code = sigwait(&set, &signal);
  INVARIANT(code == 0, "sigwait is given a valid set");
  return signal;
}

}  // namespace

void block_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set = awaited();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

bool end_was_asked() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

Ended wait_for_the_end(const Running& running) {
  int signal = next_signal();
  while (signal != SIGTERM && signal != SIGINT) {
    if (signal == SIGHUP) running.reload();
    signal = next_signal();
  }
  log::info("shutting down", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  pthread_t main_thread = pthread_self();
  // Its own copy: after a second signal it goes on when `running` is gone.
  std::thread shutdown([work = running.shutdown, main_thread] {
    work();
    pthread_kill(main_thread, kShutdownDone);
  });
  do signal = next_signal();
  while (signal == SIGHUP);
  if (signal != kShutdownDone) {
    log::warning("a second signal: ending at once");
    shutdown.detach();
    return Ended::kAtOnce;
  }
  shutdown.join();
  return Ended::kInGoodOrder;
}

}  // namespace kintsugi::app
