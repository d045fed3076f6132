// The times and sizes of a move. The defaults are what was measured to be right; tests take others.
#pragma once

#include <chrono>
#include <cstdint>

namespace kintsugi::splitmerge {

struct MoveTuning {
  // ---- the fence
  // How long writers may queue behind one attempt. The next may take twofold, up to the second, as long as no
  // transaction that is older than that is in the way: on a busy server short ones take longer, too.
  std::chrono::milliseconds fence_lock_timeout{10};
  std::chrono::milliseconds fence_lock_timeout_max{80};
  std::chrono::milliseconds fence_retry_after{100};  // grows twofold to ten times this
  std::chrono::milliseconds fence_patience{60000};   // then the job fails: a transaction never ends
  std::chrono::milliseconds hold_seen_wait{5};       // how long a fence waits for routers that hold statements
  // How long the target may take for its last changes, while writers wait; then the fence is lowered and tried
  // again, with twofold patience each time.
  std::chrono::milliseconds drain_first{500};
  std::chrono::milliseconds drain_patience{5000};
  // ---- copy and catch-up
  int tables_at_once = 2;
  // A fence is tried when a change takes no longer than this from the source to the target. After each ten
  // seconds of waiting for that, once more as long is good enough.
  std::chrono::milliseconds lag_max{30};
  std::chrono::milliseconds catch_up_patience{6L * 3600 * 1000};
  std::chrono::milliseconds slot_patience{600000};  // making a slot waits for running transactions
  // And when no more rows than these have changed and are not compared yet; it grows in the same way.
  int rows_left_max = 2000;
  // Nor than can be compared in this time; likewise.
  std::chrono::milliseconds compare_max{100};
  // Tables are compared as a whole under the fence, the small ones first, as long as that takes no longer.
  std::chrono::milliseconds verify_in_fence{4};
  // ---- routers
  std::chrono::milliseconds routers_patience{60000};
  // ---- cleaning
  int clean_batch_rows = 5000;
  std::chrono::milliseconds clean_pause{2};
  // ---- errors that may pass (a connection lost): how long before the commit they are tried again
  std::chrono::milliseconds retry_patience{30000};
};

}  // namespace kintsugi::splitmerge
