// One thread's event loop: epoll, deadlines, and work posted by other threads.
//
// Everything but post() and stop() belongs to the loop's own thread. Interest in a file descriptor is given up
// lazily, so that the ordinary ping-pong of requests and answers costs no epoll_ctl at all.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/io/send_batch.h"

namespace kintsugi::io {

class Loop;
class Watch;

inline constexpr std::uint32_t kReadable = EPOLLIN;
inline constexpr std::uint32_t kWritable = EPOLLOUT;
inline constexpr std::uint32_t kHungUp = EPOLLRDHUP;  // told by edges alone: nothing more will be received

// Whoever is told about events of a Watch.
class EventTarget {
 public:
  virtual void on_event(Watch& watch, std::uint32_t ready) = 0;

 protected:
  ~EventTarget() = default;
};

// A file descriptor in a loop. Says what is wanted; the loop tells the target when it is there. A hang-up or an
// error is told as both readable and writable: the next system call finds out what it is.
//
// kLevels: told in every round as long as it is there and wanted; an event that nobody wants disarms it.
// kEdges: told once when it comes to be there, wanted or not, and the target remembers it until a system call
// has found the opposite. The kernel then looks at each event once and not twice, which is a tenth of a relay's
// price.
class Watch {
 public:
  enum Tells : std::uint8_t { kLevels, kEdges };

  Watch() = default;
  ~Watch() { detach(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void attach(Loop& loop, int fd, EventTarget* target, Tells tells = kLevels);
  void detach();
  void set_target(EventTarget* target) { target_ = target; }
  void want(std::uint32_t events);  // replaces what was wanted before
  void tell_again();                // an edge that has been told and is still there
  [[nodiscard]] std::uint32_t wanted() const { return wanted_; }
  [[nodiscard]] bool attached() const { return loop_ != nullptr; }
  [[nodiscard]] Loop* loop() const { return loop_; }

 private:
  friend class Loop;
  void change(int operation);

  Loop* loop_ = nullptr;
  EventTarget* target_ = nullptr;
  int fd_ = -1;
  Tells tells_ = kLevels;
  std::uint32_t wanted_ = 0;
  std::uint32_t armed_ = 0;  // what epoll watches at this moment
  bool quiet_ = false;       // broken, told once, and nothing has been wanted since
};

// An entry of the loop's deadline heap. Lazy as well: moving a deadline later touches nothing, the entry finds
// out when it fires.
class Timer {
 public:
  Timer() = default;
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void set(Loop& loop, Deadline deadline);
  void cancel();
  [[nodiscard]] Deadline deadline() const { return deadline_; }

  std::function<void()> on_fire;

 private:
  friend class Loop;
  Loop* loop_ = nullptr;
  Deadline deadline_ = Deadline::never();
  Deadline queued_ = Deadline::never();  // where the heap has it
  std::size_t heap_index_ = 0;           // 1-based; 0: not queued
};

// Where other threads leave work for a loop. May be kept beyond the loop's life: then the work is dropped.
class Mailbox {
 public:
  void post(std::function<void()> work);  // any thread

 private:
  friend class Loop;
  std::mutex mutex_;
  std::vector<std::function<void()>> work_;
  std::atomic<bool> any_{false};  // asked in every round, without the lock
  int wake_fd_ = -1;              // of the loop; -1 once it is gone
};

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void run();   // until stop()
  void stop();  // any thread
  // Any thread, while the loop lives; runs on the loop's thread, in order.
  void post(std::function<void()> work) { mailbox_->post(std::move(work)); }
  // For who may outlive the loop.
  [[nodiscard]] const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  // The time at which the current round of events began: cheap, and exact enough for deadlines.
  [[nodiscard]] Deadline::Clock::time_point now() const { return now_; }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds duration) const { return Deadline::at(now_ + duration); }
  [[nodiscard]] Deadline in_or_never(std::chrono::nanoseconds duration) const {
    return duration.count() > 0 ? in(duration) : Deadline::never();
  }

  // Resumes the coroutine later in this round, from the loop and not from the caller's stack.
  void resume_soon(std::coroutine_handle<> handle) { ready_.push_back(handle); }

  static Loop* current();  // the loop that runs on this thread, or null

  // Small sends of this round may be put together; null where they may not, or where a round of one event would
  // gain nothing. What is in it goes out before the loop waits.
  [[nodiscard]] SendBatch* sends() const { return event_count_ > 1 ? sends_.get() : nullptr; }
  void flush_sends() {
    if (sends_ != nullptr) sends_->flush();
  }

 private:
  friend class Watch;
  friend class Timer;

  void poll();
  void dispatch(Watch& watch, std::uint32_t events);
  void run_posted();
  void run_ready();
  void fire_timers();
  [[nodiscard]] int timeout_ms() const;
  void heap_up(std::size_t index);
  void heap_down(std::size_t index);
  void heap_place(std::size_t index, Timer* timer);
  void heap_remove(Timer& timer);

  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  Deadline::Clock::time_point now_ = Deadline::Clock::now();
  std::vector<std::coroutine_handle<>> ready_, running_;
  std::vector<Timer*> heap_;
  std::vector<epoll_event> events_;
  int event_count_ = 0, event_next_ = 0;
  std::unique_ptr<SendBatch> sends_;  // while it runs
  std::atomic<bool> stop_{false};
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
};

// What a coroutine sleeps on: any of its watches, a notify() from the same thread, or a deadline. One coroutine
// at a time.
class Waiter final : public EventTarget {
 public:
  explicit Waiter(Loop& loop) : loop_(loop) {
    timer_.on_fire = [this] { wake(true); };
  }

  void notify() { wake(false); }
  void on_event(Watch&, std::uint32_t) override { wake(false); }
  [[nodiscard]] Loop& loop() const { return loop_; }

  struct Awaiter {
    Waiter& waiter;
    Deadline deadline;
    bool await_ready() noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> handle) { return waiter.sleep(handle, deadline); }
    bool await_resume() noexcept { return !std::exchange(waiter.timed_out_, false); }
  };
  // True: something happened (look at everything). False: the deadline passed.
  [[nodiscard]] Awaiter wait(Deadline deadline) { return Awaiter{*this, deadline}; }

 private:
  bool sleep(std::coroutine_handle<> handle, Deadline deadline);
  void wake(bool by_deadline);

  Loop& loop_;
  std::coroutine_handle<> sleeper_;
  bool pending_ = false;
  bool timed_out_ = false;
  Timer timer_;
};

}  // namespace kintsugi::io
