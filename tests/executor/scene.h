// For tests of connections to a shard: a coroutine on a loop of its own, with a deadline that only a failure
// meets.
#pragma once

#include <gtest/gtest.h>

#include "executor/backend.h"
#include "executor/connect_shard.h"
#include "tests/base/io/scene.h"
#include "tests/patience.h"

namespace kintsugi::executor {

inline Deadline patience() {
  return Deadline::in(std::chrono::seconds(20) * kPatience);
}

// Runs `story(waiter)`, a coroutine function without captures, to its end and gives its value back.
template <class T, class... Given>
T act(io::Task<T> (*story)(io::Waiter*, Given...), Given... given) {
  struct Stage {
    static io::Task<> play(io::Loop* loop, io::Task<T> (*story)(io::Waiter*, Given...), std::optional<T>* value,
                           Given... given) {
      io::Waiter waiter(*loop);
      auto playing = story(&waiter, given...);
      value->emplace(co_await std::move(playing));
    }
  };
  io::Scene scene;
  std::optional<T> value;
  scene.run(Stage::play(&scene.loop, story, &value, given...));
  return std::move(*value);
}

}  // namespace kintsugi::executor
