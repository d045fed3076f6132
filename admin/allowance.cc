#include "admin/allowance.h"

#include <algorithm>

namespace kintsugi::admin {
namespace {

constexpr std::size_t kAddressesMax = 4096;

}  // namespace

void Allowance::grow() {
  const auto now = std::chrono::steady_clock::now();
  left_ = std::min(at_once_, left_ + a_second_ * std::chrono::duration<double>(now - last_).count());
  last_ = now;
}

bool Allowance::take() {
  const std::lock_guard lock(mutex_);
  grow();
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

bool Allowance::whole() {
  const std::lock_guard lock(mutex_);
  grow();
  return left_ >= at_once_;
}

bool Allowances::take(const std::string& address) {
  const std::lock_guard lock(mutex_);
  auto found = each_.find(address);
  if (found == each_.end()) {
    for (auto one = each_.begin(); each_.size() >= kAddressesMax && one != each_.end();)
      one = one->second.whole() ? each_.erase(one) : std::next(one);
    if (each_.size() >= kAddressesMax) return rest_.take();
    found = each_.try_emplace(address, a_second_, at_once_).first;
  }
  return found->second.take();
}

bool Seats::take() {
  std::unique_lock lock(mutex_);
  if (free_ == 0) {
    if (waiting_ == 0) return false;
    --waiting_;
    const bool got = changed_.wait_for(lock, patience_, [this] { return free_ > 0; });
    ++waiting_;
    if (!got) return false;
  }
  --free_;
  return true;
}

void Seats::give_back() {
  {
    const std::lock_guard lock(mutex_);
    ++free_;
  }
  changed_.notify_one();
}

}  // namespace kintsugi::admin
