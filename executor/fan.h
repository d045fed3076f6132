// One statement running on several connections at once, its rows merged into one answer that the caller pulls.
//
// The statement goes to all branches before any answer is awaited, always by the extended protocol: a simple
// query is one without parameters whose results are text. Rows are read under back-pressure: a branch is read
// no further ahead than kBranchBudget, and nothing is merged while the client's outbox is full.
//
// Whatever the step says, no backend is left in between: after kComplete and kFailed each one has answered its
// Sync (its `status` is true) or is marked `broken`. After kSuspended each has answered all that was sent, its
// portal is open, and it may be used for other statements of the same transaction until the next advance().
//
// Belongs to one coroutine and its thread. The caller keeps backends, outbox, stream and waiter alive as long
// as the Fan, and does not use them while advance() or stop() runs. The waiter is made the target of every
// backend. A Fan that is given up before kComplete or kFailed has to be stop()ped.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/io/task.h"
#include "executor/backend.h"
#include "planner/plan.h"
#include "wire/client_messages.h"
#include "wire/server_messages.h"

namespace kintsugi::executor {

// Unread bytes of one branch; a single row may be longer, up to max_message.
inline constexpr std::size_t kBranchBudget = 256 * 1024;

struct FanBranch {
  Backend* backend = nullptr;
  std::string text;
  // Statements of our own that run before it in the same round trip: BEGIN first, when they are not inside a
  // transaction already. Without parameters; their answers are swallowed. When one fails the branch's statement
  // does not run, and the step fails with its error.
  std::vector<std::string> before;
};

// How the snapshots of all branches come to be of one moment (executor/moments.h).
struct FanLook {
  // Asked when every shard has taken its snapshot and before anything is told. False: the step is torn.
  // Nothing: that is not known yet; the step's waiter is notified, and it is asked again.
  std::function<std::optional<bool>()> one_moment;
  bool in_steps = false;  // nothing is executed before it has been asked
};

struct FanRequest {
  std::vector<FanBranch> branches;  // at least one; merge.placement counts them in this order
  planner::Merge merge;
  std::optional<FanLook> look;  // of a query
  // A write that is executed on this branch, and on the others when it is complete there: who is second waits
  // there, and no two wait for each other on different shards. Not when it is read in chunks.
  std::optional<std::size_t> lead;

  std::vector<std::uint32_t> parameter_types;  // OIDs for Parse; fewer or none: PostgreSQL infers them
  // The client's Bind: values and result formats (of the visible columns, as in a Bind). The views are used in
  // the constructor only.
  wire::BindValues bind;

  // Whether a RowDescription goes out before the rows. kPortal also says NoData for a statement without rows.
  enum class Describe : std::uint8_t { kNo, kQuery, kPortal };
  Describe describe = Describe::kNo;
  bool suspendable =
      false;  // advance() will be called with a row limit: the shards' portals are read in chunks

  Outbox* client = nullptr;             // rows are appended here and flushed to
  io::Stream* client_stream = nullptr;  // this stream. Null: all rows stay in `client`,
  std::size_t most_kept = SIZE_MAX;     // and when they are more bytes than these, the step is cut short
  io::Waiter* waiter = nullptr;
  Deadline deadline = Deadline::never();
  // Asked at every wake-up. An error stops the branches that run (see `cancel`) and fails the step: with the
  // first error that a shard then gives, "canceling statement due to user request" of its own as a rule, or
  // with this one when none does.
  std::function<Status()> still_wanted;
  // Sends a cancel request for what the backend runs, without waiting for it; counts itself in
  // backend.cancels->under_way until it has arrived, and wakes the waiter then. Called again for a backend when
  // the last one has arrived and nothing has come of it. Without it the branches that are not needed any more
  // are read to their end, for ten seconds after an error and then given up as broken.
  std::function<void(Backend&)> cancel;
  // The step fails when the client takes nothing for so long; zero: it may take its time.
  std::chrono::nanoseconds slow_client_timeout{0};
  std::uint64_t max_message = std::uint64_t{256} << 20;  // the longest row, limits.max_message
};

struct FanStep {
  enum Kind : std::uint8_t {
    kComplete,
    kSuspended,  // max_rows have gone out, and there may be more
    kFailed,
  };
  Kind kind = kComplete;
  std::uint64_t rows = 0;  // that went out in this step
  // kComplete: what CommandComplete says. A query's counts the rows of this step, as PostgreSQL's does; empty
  // for an empty query (answer EmptyQueryResponse).
  std::string tag;
  // kFailed: a whole ErrorResponse, not yet sent to anybody, with "shard NAME" in its context when it is a
  // shard's.
  std::string error;
  std::string sqlstate;           // of that error
  std::size_t branch = SIZE_MAX;  // whose error it is; SIZE_MAX: our own
  bool cut = false;               // kComplete: there would have been more, see most_kept
  bool torn = false;  // kFailed, without an error: the snapshots are not of one moment; nothing has been told
  // Something of this statement (description or row) has gone to the client: it cannot be run again unnoticed.
  bool told = false;
};

class Fan {
 public:
  explicit Fan(FanRequest request);
  ~Fan();
  Fan(const Fan&) = delete;
  Fan& operator=(const Fan&) = delete;

  // Rows to the client until all is done or `max_rows` (0: no limit) have gone out. Neither CommandComplete nor
  // ErrorResponse is sent: the step holds them. Bytes may be left in the outbox. Not to be called again after
  // kComplete or kFailed.
  io::Task<FanStep> advance(std::uint64_t max_rows = 0);

  // Gives up what is left: portals are closed, running statements are read to their end (small rests) or
  // cancelled, every backend is ready or broken. Nothing more goes to the client. May be called at any time.
  io::Task<> stop();

  // The body of the first branch's RowDescription without the hidden columns; empty for a statement without
  // rows. Known after the first step.
  [[nodiscard]] const std::string& description() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The body of a RowDescription without its last `hidden` columns: for Describe of a statement, which one shard
// answers. 08P01 when it is none, XX000 when it has fewer.
Result<std::string> visible_description(std::string_view body, int hidden);

}  // namespace kintsugi::executor
