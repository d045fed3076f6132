// What a session has to do with deadlocks over several shards (executor/deadlock.h).
#include "executor/deadlock.h"

#include "base/log.h"
#include "frontend/session.h"

namespace kintsugi::frontend {

using namespace std::chrono_literals;

namespace {

// As long as PostgreSQL waits before it looks for one, and no more than a second with the watch's own.
constexpr auto kPatience = 500ms;

}  // namespace

std::optional<executor::HeldUp> Session::held_up() const {
  const bool waits = blocked_ == Blocked::kOnErrand || (lease_ && !relay_.idle());
  if (!waits || away_.empty() || waiter_.loop().now() - measured_.arrived < kPatience) return std::nullopt;
  executor::HeldUp held{.session = key_.pid, .since = measured_.arrived.time_since_epoch().count()};
  const auto add = [&held](ShardId shard, const executor::Backend& backend) {
    if (!backend.broken) held.backends.emplace_back(shard, static_cast<std::int32_t>(backend.key.pid));
  };
  if (lease_ && (begun_ || lease_->status != wire::TransactionStatus::kIdle)) add(here_, *lease_);
  for (const Place& place : away_) {
    if (place.begun) add(place.shard, *place.lease);
  }
  if (held.backends.size() < 2) return std::nullopt;
  return held;
}

void Session::break_off(std::int64_t since) {
  const auto held = held_up();
  if (!held || held->since != since) return;
  worker_.shared().note_deadlock();
  log::info("a deadlock over several shards is ended: one of its transactions gets 40P01, or is run again",
            {{"user", user_.user}, {"shards", held->backends.size()}});
  if (lease_ && !relay_.idle()) {
    relay_.say_instead_of_canceled(executor::deadlock_detected());
    worker_.send_cancel(*pool_, *lease_, key_);
  } else {
    deadlocked_ = true;
    waiter_.notify();
  }
}

}  // namespace kintsugi::frontend
