// What metrics tell of the map store: its routers and jobs. A thread asks for them, so that nobody who scrapes
// waits for a store that hangs: look() has what is new when it comes within `patience`, else what was last
// known. One question at a time, however many look. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "admin/metrics.h"

namespace kintsugi::admin {

class StoreGlance {
 public:
  // `ask` ends by a deadline of its own: the end of the glance waits for it.
  StoreGlance(std::function<OfTheStore()> ask, std::chrono::milliseconds patience);
  ~StoreGlance();
  StoreGlance(const StoreGlance&) = delete;
  StoreGlance& operator=(const StoreGlance&) = delete;

  [[nodiscard]] OfTheStore look();

 private:
  void run();

  const std::function<OfTheStore()> ask_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  OfTheStore known_;
  std::uint64_t answers_ = 0;
  bool wanted_ = false, ending_ = false;
  std::thread asker_;
};

}  // namespace kintsugi::admin
