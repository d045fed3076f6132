// Giving up branches that still run. Private to executor/.
#pragma once

#include <functional>

#include "base/io/loop.h"
#include "base/io/task.h"
#include "executor/fan.h"
#include "executor/row_merge.h"

namespace kintsugi::executor {

// Asks the shards that still run something to cancel it (when there is a `cancel`; again while nothing comes of
// it), throws their rows away and waits until each has answered its Sync. Whoever takes longer than ten seconds
// is marked broken. The branches have left their backends.
io::Task<void> abandon(Branches* branches, std::function<void(Backend&)> cancel, io::Waiter* waiter);

// Until no cancel request is under way to any of them: one that arrives late would hit what runs next. Where
// one is lost, or takes longer than ten seconds, the backend is broken.
io::Task<void> outlive_cancels(Branches* branches, io::Waiter* waiter);

}  // namespace kintsugi::executor
