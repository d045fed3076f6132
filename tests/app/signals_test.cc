#include "app/signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <thread>

namespace kintsugi::app {
namespace {

// The signals wait in the mask until wait_for_the_end takes them; two equal ones pending would be one, so each
// case sends the second from the callback that the first one runs.
TEST(Signals, TheFirstEndsInGoodOrder) {
  block_signals();
  int reloads = 0, shutdowns = 0;
  EXPECT_FALSE(end_was_asked());
  raise(SIGHUP);
  EXPECT_FALSE(end_was_asked());
  Running running{.reload =
                      [&] {
                        ++reloads;
                        raise(SIGTERM);
                        EXPECT_TRUE(end_was_asked());
                      },
                  .shutdown = [&] { ++shutdowns; }};
  EXPECT_EQ(wait_for_the_end(running), Ended::kInGoodOrder);
  EXPECT_EQ(reloads, 1);
  EXPECT_EQ(shutdowns, 1);
  EXPECT_FALSE(end_was_asked());
}

TEST(Signals, ASecondOneEndsAtOnce) {
  block_signals();
  pthread_t self = pthread_self();
  static std::promise<void> let_go;
  std::atomic<bool> started = false;
  Running running{.reload = [] {},
                  .shutdown =
                      [self, &started] {
                        started = true;
                        pthread_kill(self, SIGHUP);  // of no interest any more
                        // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread): it waits for this signal
                        pthread_kill(self, SIGTERM);
                        let_go.get_future().wait();
                      }};
  raise(SIGINT);
  EXPECT_EQ(wait_for_the_end(running), Ended::kAtOnce);
  EXPECT_TRUE(started);
  let_go.set_value();
  // The detached thread says that it is done; nobody waits for that, so take it before the test ends.
  sigset_t done;
  sigemptyset(&done);
  sigaddset(&done, SIGUSR1);
  int signal = 0;
  sigwait(&done, &signal);
}

TEST(Signals, AWriteToAClosedPipeIsAnErrorAndNotTheEnd) {
  block_signals();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

}  // namespace
}  // namespace kintsugi::app
