#include "base/io/loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/invariant.h"

namespace kintsugi::io {
namespace {
thread_local Loop* current_loop = nullptr;
constexpr std::chrono::milliseconds kSoon(100);  // a deadline beyond it may be late by the time a round takes
}  // namespace

// ---- Watch ----

void Watch::attach(Loop& loop, int fd, EventTarget* target, Tells tells) {
  INVARIANT(loop_ == nullptr, "a watch is attached once");
  loop_ = &loop;
  fd_ = fd;
  target_ = target;
  tells_ = tells;
  wanted_ = 0;
  armed_ = tells == kEdges ? kReadable : 0;
  quiet_ = false;
  change(EPOLL_CTL_ADD);
}

void Watch::detach() {
  if (loop_ == nullptr) return;
  epoll_event event{};
  epoll_ctl(loop_->epoll_fd_, EPOLL_CTL_DEL, fd_, &event);
  // Events of this round that are still to be told must not find a watch that is gone.
  for (int i = loop_->event_next_; i < loop_->event_count_; ++i) {
    if (loop_->events_[i].data.ptr == this) loop_->events_[i].data.ptr = nullptr;
  }
  loop_ = nullptr;
  fd_ = -1;
}

void Watch::want(std::uint32_t events) {
  wanted_ = events;
  if ((events & ~armed_) == 0) return;  // what is armed too much is disarmed when it first fires
  armed_ |= events;
  quiet_ = false;
  change(EPOLL_CTL_MOD);
}

// A change makes the kernel look again.
void Watch::tell_again() {
  change(EPOLL_CTL_MOD);
}

void Watch::change(int operation) {
  epoll_event event{};
  event.events = armed_ | (tells_ == kEdges ? static_cast<std::uint32_t>(EPOLLET | EPOLLRDHUP) : 0U);
  event.data.ptr = this;
  INVARIANT(epoll_ctl(loop_->epoll_fd_, operation, fd_, &event) == 0, "an open descriptor can be watched");
}

// ---- Timer ----

void Timer::set(Loop& loop, Deadline deadline) {
  loop_ = &loop;
  deadline_ = deadline;
  if (deadline.is_never()) return;  // an entry that is queued finds out when it fires
  if (heap_index_ != 0) {
    if (queued_ <= deadline) return;
    queued_ = deadline;
    loop.heap_up(heap_index_);
    return;
  }
  queued_ = deadline;
  loop.heap_.push_back(this);
  heap_index_ = loop.heap_.size();
  loop.heap_up(heap_index_);
}

void Timer::cancel() {
  deadline_ = Deadline::never();
  if (heap_index_ != 0) loop_->heap_remove(*this);
}

// ---- Loop ----

Loop::Loop() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  INVARIANT(epoll_fd_ >= 0 && wake_fd_ >= 0, "the system gives an epoll and an eventfd");
  events_.resize(256);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = this;  // the loop itself: the wake-up
  INVARIANT(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event) == 0, "the wake-up can be watched");
  mailbox_->wake_fd_ = wake_fd_;
}

Loop::~Loop() {
  std::vector<std::function<void()>> dropped;
  {
    std::lock_guard lock(mailbox_->mutex_);
    mailbox_->wake_fd_ = -1;
    dropped.swap(mailbox_->work_);
  }
  close(wake_fd_);
  close(epoll_fd_);
}

Loop* Loop::current() {
  return current_loop;
}

void Loop::run() {
  current_loop = this;
  sends_ = SendBatch::make();
  now_ = Deadline::Clock::now();
  while (!stop_.load(std::memory_order_relaxed)) {
    poll();
    run_posted();
    fire_timers();
    run_ready();
  }
  flush_sends();
  sends_ = nullptr;
  current_loop = nullptr;
  stop_.store(false, std::memory_order_relaxed);
}

void Loop::stop() {
  stop_.store(true, std::memory_order_relaxed);
  post([] {});
}

void Mailbox::post(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (wake_fd_ < 0) return;
  work_.push_back(std::move(work));
  any_.store(true, std::memory_order_release);
  if (work_.size() > 1) return;
  // Under the lock: the loop must not close the descriptor meanwhile.
  std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wake_fd_, &one, sizeof one);
}

void Loop::poll() {
  flush_sends();
  event_next_ = 0;
  event_count_ = 0;
  int count = epoll_wait(epoll_fd_, events_.data(), static_cast<int>(events_.size()), timeout_ms());
  now_ = Deadline::Clock::now();
  if (count < 0) {
    INVARIANT(errno == EINTR, "epoll_wait fails only when interrupted");
    return;
  }
  event_count_ = count;
  while (event_next_ < event_count_) {
    const epoll_event event = events_[event_next_++];
    if (event.data.ptr == this) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] ssize_t got = read(wake_fd_, &ignored, sizeof ignored);
    } else if (event.data.ptr != nullptr) {
      dispatch(*static_cast<Watch*>(event.data.ptr), event.events);
      // Coroutines run here, between two events, so that each meets its socket while it is warm.
      if (!ready_.empty()) run_ready();
    }
  }
}

void Loop::dispatch(Watch& watch, std::uint32_t events) {
  const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
  const std::uint32_t ready = broken ? (kReadable | kWritable) : events;
  if (watch.tells_ == Watch::kEdges) {
    watch.target_->on_event(watch, broken ? ready | kHungUp : ready);
    return;
  }
  if ((ready & watch.wanted_) != 0) {
    watch.target_->on_event(watch, ready & watch.wanted_);
    return;
  }
  // Nobody waits for it. A broken connection would be told for ever: edge-triggered until something is wanted
  // again.
  // Asking for that anew would bring the same event once more, and so on.
  if (broken && std::exchange(watch.quiet_, true)) return;
  watch.armed_ = broken ? 0 : watch.wanted_;
  epoll_event narrowed{};
  narrowed.events = broken ? static_cast<std::uint32_t>(EPOLLET) : watch.armed_;
  narrowed.data.ptr = &watch;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, watch.fd_, &narrowed);
}

void Loop::run_posted() {
  if (!mailbox_->any_.load(std::memory_order_acquire)) return;
  std::vector<std::function<void()>> work;
  {
    std::lock_guard lock(mailbox_->mutex_);
    work.swap(mailbox_->work_);
    mailbox_->any_.store(false, std::memory_order_relaxed);
  }
  for (auto& item : work) item();
}

void Loop::run_ready() {
  // One round only: what becomes ready meanwhile waits until the sockets have had their turn.
  running_.swap(ready_);
  for (std::size_t i = 0; i < running_.size(); ++i) running_[i].resume();
  running_.clear();
}

int Loop::timeout_ms() const {
  if (!ready_.empty()) return 0;
  if (heap_.empty()) return -1;
  auto left = heap_.front()->queued_.time() - now_;
  if (left < kSoon) left = heap_.front()->queued_.time() - Deadline::Clock::now();
  if (left.count() <= 0) return 0;
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<long long>(ms, 60'000));
}

void Loop::fire_timers() {
  while (!heap_.empty() && heap_.front()->queued_.time() <= now_) {
    Timer& timer = *heap_.front();
    if (timer.deadline_ <= Deadline::at(now_)) {
      heap_remove(timer);
      timer.deadline_ = Deadline::never();
      timer.on_fire();
    } else if (timer.deadline_.is_never()) {
      heap_remove(timer);
    } else {
      timer.queued_ = timer.deadline_;
      heap_down(timer.heap_index_);
    }
  }
}

void Loop::heap_place(std::size_t index, Timer* timer) {
  heap_[index - 1] = timer;
  timer->heap_index_ = index;
}

void Loop::heap_up(std::size_t index) {
  Timer* timer = heap_[index - 1];
  while (index > 1 && timer->queued_ < heap_[index / 2 - 1]->queued_) {
    heap_place(index, heap_[index / 2 - 1]);
    index /= 2;
  }
  heap_place(index, timer);
}

void Loop::heap_down(std::size_t index) {
  Timer* timer = heap_[index - 1];
  for (;;) {
    std::size_t child = index * 2;
    if (child > heap_.size()) break;
    if (child < heap_.size() && heap_[child]->queued_ < heap_[child - 1]->queued_) ++child;
    if (heap_[child - 1]->queued_ >= timer->queued_) break;
    heap_place(index, heap_[child - 1]);
    index = child;
  }
  heap_place(index, timer);
}

void Loop::heap_remove(Timer& timer) {
  std::size_t index = timer.heap_index_;
  timer.heap_index_ = 0;
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  heap_place(index, last);
  heap_up(index);
  heap_down(last->heap_index_);
}

// ---- Waiter ----

bool Waiter::sleep(std::coroutine_handle<> handle, Deadline deadline) {
  INVARIANT(!sleeper_, "one coroutine sleeps on a waiter");
  if (std::exchange(pending_, false)) return false;
  sleeper_ = handle;
  timer_.set(loop_, deadline);
  return true;
}

void Waiter::wake(bool by_deadline) {
  if (!sleeper_) {
    if (!by_deadline) pending_ = true;
    return;
  }
  timed_out_ = by_deadline;
  timer_.set(loop_, Deadline::never());
  loop_.resume_soon(std::exchange(sleeper_, nullptr));
}

}  // namespace kintsugi::io
