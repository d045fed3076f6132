// Task<T>: a lazy coroutine. It starts when awaited, runs on the awaiter's thread, and gives its value (or its
// exception) to the one who awaits it. The Task object owns the frame.
//
// Rules of the house: no captures in coroutine lambdas, no reference parameters in spawned coroutines, every
// spawn owned by a Gate, every wait with a deadline.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "base/invariant.h"

namespace kintsugi::io {

template <class T>
class Task;

namespace detail {

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::exception_ptr exception;
  bool starting = false;  // its awaiter's await_suspend is still on the stack

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
      const PromiseBase& promise = self.promise();
      return promise.starting ? std::noop_coroutine() : promise.continuation;
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { exception = std::current_exception(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    if (exception) std::rethrow_exception(exception);
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() noexcept {}
  void take() {
    if (exception) std::rethrow_exception(exception);
  }
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() { destroy(); }

  struct Awaiter {
    Handle handle;
    bool await_ready() noexcept { return false; }
    // A task that ends without waiting gives its value without the awaiter having slept: a loop over such tasks
    // stays where it is on the stack. Handing over from coroutine to coroutine would need tail calls, and
    // compilers leave those out under a sanitizer and without optimisation.
    bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
      handle.promise().continuation = awaiting;
      handle.promise().starting = true;
      handle.resume();
      if (handle.done()) return false;
      handle.promise().starting = false;
      return true;
    }
    T await_resume() { return handle.promise().take(); }
  };
  Awaiter operator co_await() && noexcept {
    INVARIANT(handle_, "a moved-from task is not awaited");
    return Awaiter{handle_};
  }

 private:
  void destroy() {
    if (handle_) handle_.destroy();
    handle_ = nullptr;
  }
  Handle handle_;
};

namespace detail {
template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace detail

}  // namespace kintsugi::io
