// How much may be asked of something that all share. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <unordered_map>

namespace kintsugi::admin {

// So many a second, and some more at once.
class Allowance {
 public:
  Allowance(double a_second, double at_once) : a_second_(a_second), at_once_(at_once), left_(at_once) {}

  bool take();
  [[nodiscard]] bool whole();  // as if nobody had ever taken

 private:
  void grow();
  std::mutex mutex_;
  double a_second_, at_once_, left_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// One for each address that asks, so that none of them uses up what the others have.
class Allowances {
 public:
  Allowances(double a_second, double at_once)
      : a_second_(a_second), at_once_(at_once), rest_(a_second, at_once) {}

  bool take(const std::string& address);

 private:
  double a_second_, at_once_;
  std::mutex mutex_;
  std::unordered_map<std::string, Allowance> each_;
  Allowance rest_;  // of all for whom there is no room in the table
};

// So many at the same time; some more wait a while.
class Seats {
 public:
  Seats(int seats, int waiting, std::chrono::milliseconds patience)
      : free_(seats), waiting_(waiting), patience_(patience) {}

  // One of them, while this lives; false when none became free.
  class Taken {
   public:
    explicit Taken(Seats& seats) : seats_(seats), good_(seats.take()) {}
    ~Taken() {
      if (good_) seats_.give_back();
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    explicit operator bool() const { return good_; }

   private:
    Seats& seats_;
    bool good_;
  };

 private:
  bool take();
  void give_back();

  std::mutex mutex_;
  std::condition_variable changed_;
  int free_, waiting_;
  std::chrono::milliseconds patience_;
};

}  // namespace kintsugi::admin
