// A point in time by which something must have happened. Passed down as a parameter, never kept in a global.
#pragma once

#include <chrono>

namespace kintsugi {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(Clock::time_point::max()); }
  static Deadline in(std::chrono::nanoseconds duration) { return Deadline(Clock::now() + duration); }
  static Deadline at(Clock::time_point time) { return Deadline(time); }
  // Zero means "no limit" in the configuration, as in PostgreSQL.
  static Deadline in_or_never(std::chrono::nanoseconds duration) {
    return duration.count() > 0 ? in(duration) : never();
  }

  [[nodiscard]] bool is_never() const { return time_ == Clock::time_point::max(); }
  [[nodiscard]] bool passed() const { return !is_never() && Clock::now() >= time_; }
  [[nodiscard]] Clock::time_point time() const { return time_; }
  [[nodiscard]] Deadline sooner(Deadline other) const { return other.time_ < time_ ? other : *this; }

  friend auto operator<=>(const Deadline&, const Deadline&) = default;

 private:
  explicit Deadline(Clock::time_point time) : time_(time) {}
  Clock::time_point time_;
};

}  // namespace kintsugi
