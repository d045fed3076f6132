// The owner of spawned coroutines: every one is counted, close() refuses new ones and waits for those that run.
// Belongs to one loop's thread.
#pragma once

#include "base/io/loop.h"
#include "base/io/task.h"

namespace kintsugi::io {

class Gate {
 public:
  Gate() = default;
  ~Gate() { INVARIANT(running_ == 0, "a gate outlives what it spawned"); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Runs the task at once up to its first wait. An exception that leaves it is a broken promise of ours.
  void spawn(Task<> task) {
    INVARIANT(!closed_, "nothing is spawned through a closed gate");
    ++running_;
    run(*this, std::move(task));
  }

  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] std::size_t running() const { return running_; }

  // Waits until everything spawned has ended.
  Task<> close(Loop* loop) {
    closed_ = true;
    Waiter waiter(*loop);
    drained_ = &waiter;
    while (running_ > 0) (void)co_await waiter.wait(Deadline::never());
    drained_ = nullptr;
  }

 private:
  struct Detached {
    struct promise_type {
      Detached get_return_object() { return {}; }
      std::suspend_never initial_suspend() noexcept { return {}; }
      std::suspend_never final_suspend() noexcept { return {}; }
      void return_void() noexcept {}
      void unhandled_exception() noexcept { std::terminate(); }
    };
  };

  static Detached run(Gate& gate, Task<> task) {
    {
      Task<> owned = std::move(task);
      co_await std::move(owned);
    }
    --gate.running_;
    if (gate.running_ == 0 && gate.drained_ != nullptr) gate.drained_->notify();
  }

  std::size_t running_ = 0;
  bool closed_ = false;
  Waiter* drained_ = nullptr;
};

}  // namespace kintsugi::io
