#include "admin/store_glance.h"

#include <utility>

namespace kintsugi::admin {

StoreGlance::StoreGlance(std::function<OfTheStore()> ask, std::chrono::milliseconds patience)
    : ask_(std::move(ask)), patience_(patience), asker_([this] { run(); }) {}

StoreGlance::~StoreGlance() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  asker_.join();
}

OfTheStore StoreGlance::look() {
  std::unique_lock lock(mutex_);
  const std::uint64_t before = answers_;
  wanted_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, patience_, [&] { return answers_ != before || ending_; });
  return known_;
}

void StoreGlance::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return wanted_ || ending_; });
    if (ending_) return;
    wanted_ = false;
    lock.unlock();
    OfTheStore found = ask_();
    lock.lock();
    known_ = std::move(found);
    ++answers_;
    changed_.notify_all();
  }
}

}  // namespace kintsugi::admin
