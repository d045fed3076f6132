#include "executor/abandon.h"

namespace kintsugi::executor {
namespace {

constexpr std::chrono::seconds kMostTime{10};

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
  for (auto& branch : *branches) {
    branch->discard();
    branch->finish();
    if (cancel && !branch->settled() && !branch->ended() && !branch->sending()) cancel(branch->backend());
  }
  for (;;) {
    bool moved = false, all = true;
    for (auto& branch : *branches) {
      branch->flush();
      if (branch->backend().stream.readable()) moved |= branch->read(kBranchBudget);
      (void)branch->take_asides();
      all = all && branch->settled();
      branch->backend().stream.want(!branch->settled(), branch->sending());
    }
    if (all) break;
    if (moved) continue;
    if (!co_await waiter->wait(deadline)) {
      for (auto& branch : *branches) {
        if (!branch->settled()) branch->backend().broken = true;
      }
      break;
    }
  }
  auto outliving = outlive_cancels(branches, waiter);
  co_await std::move(outliving);
  for (auto& branch : *branches) branch->leave();
}

}  // namespace kintsugi::executor
