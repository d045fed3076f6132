// A loop with one coroutine in it, for tests: run() ends when the coroutine has.
#pragma once

#include <sys/socket.h>

#include "base/io/gate.h"
#include "base/io/loop.h"
#include "base/io/socket.h"
#include "base/io/task.h"

namespace kintsugi::io {

class Scene {
 public:
  Loop loop;

  void run(Task<> task) {
    gate_.spawn(finish(this, std::move(task)));
    loop.run();
  }

 private:
  static Task<> finish(Scene* scene, Task<> task) {
    co_await std::move(task);
    scene->loop.stop();
  }
  Gate gate_;
};

struct Pair {
  UniqueFd here, there;
  Pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    here = UniqueFd(fds[0]);
    there = UniqueFd(fds[1]);
  }
};

}  // namespace kintsugi::io
