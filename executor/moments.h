// A transaction over several shards becomes visible on one after the other, between its decision and its last
// COMMIT PREPARED; a statement over several shards takes its snapshots one after the other. For the statement
// to see the transaction entirely or not at all, neither may fall into the other where they have two shards in
// common. This is where they wait for each other: commits not for commits, looks not for looks (but
// for those that are to be alone), and nobody for
// who came later. What a commit has left unfinished on a shard keeps looks that include it waiting until a
// Settler has been there (docs/decisions/0052-one-moment.md).
//
// One object for all threads of the program; any thread may call it. A Pass belongs to the thread of its
// waiter.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/io/loop.h"
#include "shardmap/shard_map.h"

namespace kintsugi::executor {

using shardmap::ShardId;

class Moments {
 public:
  // A place in the queue, and then inside. Leaves when it is destroyed. The Moments and the waiter outlive it.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&&) noexcept = default;
    Pass& operator=(Pass&& other) noexcept;
    ~Pass() { leave(); }

    // The waiter is told when it is. A look may be overtaken: then it is outside for good.
    [[nodiscard]] bool inside() const;
    void leave();

   private:
    friend class Moments;
    struct Ticket;
    Pass(Moments* moments, std::shared_ptr<Ticket> ticket) : moments_(moments), ticket_(std::move(ticket)) {}
    Moments* moments_ = nullptr;
    std::shared_ptr<Ticket> ticket_;
  };

  // A statement is about to take snapshots on these shards. A commit that has waited for it overtakes it when
  // it has been inside for `patience`: a shard may wait for a table that this very commit has locked.
  // Looks that are to be alone do not fall into each other either.
  [[nodiscard]] Pass look(std::vector<ShardId> shards, io::Waiter* waiter, std::chrono::milliseconds patience,
                          bool alone = false);
  // A transaction is about to be prepared and committed on these; who waits calls overtake() now and then. To
  // be left when it is visible on all, or on none; what it leaves behind is put in doubt before.
  [[nodiscard]] Pass commit(std::vector<ShardId> shards, io::Waiter* waiter);

  void overtake();

  // For a look that would rather not wait, nor stop between snapshot and rows: nothing is in its way, and
  // nothing has been for a while. A number for undisturbed(), which says whether any commit has begun since.
  [[nodiscard]] std::optional<std::uint64_t> quiet(const std::vector<ShardId>& shards) const;
  [[nodiscard]] bool undisturbed(std::uint64_t since) const { return begun_.load() == since; }

  // A transaction may lie prepared there that is committed elsewhere.
  void doubt(const std::vector<ShardId>& shards);
  // A Settler notes the number before it sets out; a shard on which it finds nothing, or finishes what there
  // is, is beyond doubt that was raised until then.
  [[nodiscard]] std::uint64_t doubts() const;
  void clear(ShardId shard, std::uint64_t doubts);
  [[nodiscard]] bool in_doubt(const std::vector<ShardId>& shards) const;
  [[nodiscard]] bool any_doubt() const;

 private:
  using Ticket = Pass::Ticket;
  Pass enter(std::shared_ptr<Ticket> ticket, std::vector<ShardId> shards, io::Waiter* waiter);
  void left(Ticket* ticket);
  void admit();  // with the lock held
  [[nodiscard]] bool doubtful(const std::vector<ShardId>& shards) const;

  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Ticket>> tickets_;        // in the order in which they came
  std::atomic<std::uint64_t> begun_{0};               // commits
  std::atomic<int> commits_{0};                       // that wait or are inside
  std::atomic<std::int64_t> last_commit_{INT64_MIN};  // when the last one left, of the steady clock
  std::map<ShardId, std::uint64_t> doubts_;           // by the number of the doubt
  std::uint64_t last_doubt_ = 0;
};

}  // namespace kintsugi::executor
