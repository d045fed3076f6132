// The commit of a transaction that is open on several shards, all or nothing. Why it is right, and what a
// killed router leaves behind: docs/decisions/0050-fan-out-and-two-phase.md. What is left behind is settled by
// executor/settler.h.
//
// Belongs to one coroutine and its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/io/task.h"
#include "executor/backend.h"
#include "shardmap/shard_map.h"

namespace kintsugi::executor {

struct TransactionBranch {
  Backend* backend = nullptr;
  shardmap::ShardId shard = 0;
  bool wrote =
      false;  // or took row locks, or called something that may have; false: its COMMIT decides nothing
  // It cannot be prepared (it has touched a temporary table), so it has to be the one that decides. At most
  // one. A Gathering says so itself, by Backend::has_temporaries.
  bool must_decide = false;
};

struct CommitOutcome {
  enum Kind : std::uint8_t {
    kCommitted,
    kRolledBack,  // everywhere; with an error, unless the transaction had failed before (COMMIT says ROLLBACK
                  // then)
    kUnknown,  // the deciding connection was lost while it committed: one or the other, and it will be settled
  };
  Kind kind = kCommitted;
  std::string error;     // a whole ErrorResponse for the client; empty when committed or failed before
  std::string sqlstate;  // of it
  std::string asides;    // notices and notifications that came meanwhile, whole messages for the client
  std::string gid;       // empty: it was one shard's own commit
  // Shards where a prepared transaction was left for a Settler: wake it.
  std::vector<std::string> unsettled;
};

// COMMIT. Backends that are not in a transaction are left alone; the others come back idle, or broken. One that
// wrote commits plainly; of several, all but one PREPARE, the last commits together with its decision row, and
// the rest COMMIT PREPARED. `store_id` is the map's. With `several_routers` others are kept from looking
// meanwhile (executor/lookout.h).
io::Task<CommitOutcome> commit_on_all(std::vector<TransactionBranch> branches, std::string store_id,
                                      bool several_routers, io::Waiter* waiter, Deadline deadline);

// ROLLBACK wherever a transaction is open. A backend that does not answer in time is broken.
io::Task<void> roll_back_on_all(std::vector<Backend*> backends, io::Waiter* waiter, Deadline deadline);

// The name of a transaction over several shards: whose store, which router, which transaction, who decides.
struct TransactionName {
  std::string store_id;
  std::string router;  // made up by each process when it starts
  std::uint64_t number = 0;
  shardmap::ShardId decider = 0;

  static TransactionName next(std::string store_id, shardmap::ShardId decider);  // any thread
  // The decision's: "kintsugi:<store>:<router>:<number>:<decider>".
  [[nodiscard]] std::string to_string() const;
  // The one that branch `index` prepares under: databases of one server share their names.
  [[nodiscard]] std::string of_branch(std::size_t index) const;
  // Of a decision's name or a branch's.
  static std::optional<TransactionName> parse(std::string_view gid);
  friend bool operator==(const TransactionName&, const TransactionName&) = default;
};

}  // namespace kintsugi::executor
