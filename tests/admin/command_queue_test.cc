#include "admin/commands/command_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "admin/commands/surroundings.h"

namespace kintsugi::admin {
namespace {

using namespace std::chrono_literals;

// A job that is waited for may never end: whoever ends the router does not wait with it.
TEST(CommandQueue, WhatRunsIsCanceledWhenTheQueueEnds) {
  std::promise<void> begun;
  bool canceled = false, told = false;
  {
    CommandQueue queue(std::make_shared<Surroundings>());
    queue.submit(
        [&](CommandLayer&, const CommandRun& run) -> Result<CommandResult> {
          begun.set_value();
          for (const Deadline end = Deadline::in(30s); !*run.canceled && !end.passed();)
            std::this_thread::sleep_for(1ms);
          canceled = *run.canceled;
          return fail(sqlstate::kQueryCanceled, "nobody waits any more");
        },
        Deadline::never(), [&](const Result<CommandResult>& result) { told = !result; });
    begun.get_future().wait();
  }
  EXPECT_TRUE(canceled);
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace kintsugi::admin
