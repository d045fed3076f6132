#include "executor/abandon.h"

namespace kintsugi::executor {
namespace {

constexpr std::chrono::seconds kMostTime{10};
// One that arrives before its statement has begun does nothing.
constexpr std::chrono::milliseconds kBetweenCancels{250};

}  // namespace

io::Task<void> outlive_cancels(Branches* branches, io::Waiter* waiter) {
  const Deadline deadline = Deadline::in(kMostTime);
  for (auto& branch : *branches) {
    Backend& backend = branch->backend();
    while (backend.cancels->under_way > 0 && !backend.broken) {
      const bool in_time = co_await waiter->wait(deadline);
      if (!in_time) backend.broken = true;
    }
    if (backend.cancels->lost) backend.broken = true;
  }
}

io::Task<void> abandon(Branches* branches, std::function<void(Backend&)> cancel, io::Waiter* waiter) {
  const Deadline deadline = Deadline::in(kMostTime);
  Deadline next_cancel = Deadline::in(std::chrono::seconds(0));
  for (auto& branch : *branches) {
    branch->discard();
    branch->finish();
  }
  for (;;) {
    bool moved = false, all = true;
    const bool again = next_cancel.passed();
    if (again) next_cancel = Deadline::in(kBetweenCancels);
    for (auto& branch : *branches) {
      branch->flush();
      if (branch->backend().stream.readable()) moved |= branch->read(kBranchBudget);
      (void)branch->take_asides();
      all = all && branch->settled();
      branch->backend().stream.want(!branch->settled(), branch->sending());
      const bool runs = (branch->executing() || !branch->described()) && !branch->ended() && !branch->sending();
      if (again && cancel && runs && branch->backend().cancels->under_way == 0) cancel(branch->backend());
    }
    if (all || deadline.passed()) break;
    if (!moved) (void)co_await waiter->wait(next_cancel.sooner(deadline));
  }
  for (auto& branch : *branches) {
    if (!branch->settled()) branch->backend().broken = true;
  }
  auto outliving = outlive_cancels(branches, waiter);
  co_await std::move(outliving);
  for (auto& branch : *branches) branch->leave();
}

}  // namespace kintsugi::executor
