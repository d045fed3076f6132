// One shardlet goes from one shard to another (docs/life_of_a_move.md). Each step says which state of the
// record it expects and which it leaves; it may be done again after a crash at any instruction, by another
// process. An error leaves the state as it is: the caller tries again, or calls undo(). One thread. Private to
// splitmerge/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shardmap/map_change.h"
#include "splitmerge/change_stream.h"
#include "splitmerge/fence.h"
#include "splitmerge/follow.h"
#include "splitmerge/job_lease.h"
#include "splitmerge/move_tuning.h"
#include "splitmerge/row_check.h"

namespace kintsugi::splitmerge {

struct CopyJob;

// Within the mover: the tables are not any more what was copied.
inline constexpr const char* kTablesChanged = "KG_ANEW";

// What follows the source is not there any more.
inline constexpr const char* kFollowingLost = "KG_LOST";

// And: the fence was up for longer than the target may take for its last changes.
inline constexpr const char* kTooSlow = "KG_SLOW";

// And: it let writes through before the commit.
inline constexpr const char* kFenceOpened = "KG_OPENED";

// Where it is neither copied anew nor tried again.
inline Status told_plainly(Status done) {
  if (done || !done.error().sqlstate.starts_with("KG_")) return done;
  return fail(done.error().sqlstate == kTooSlow ? sqlstate::kQueryCanceled : "55000", done.error().message);
}

class Move {
 public:
  Move(shardmap::MapStore& store, shardmap::MapChange& map, JobLease& lease, const MoveTuning& tuning)
      : store_(store), map_(map), lease_(lease), tuning_(tuning) {}

  // Any state before the copy, no move in the record -> preparing, with this move.
  Status begin(const std::string& shardlet, const std::string& target);
  // preparing -> copying (offline: fenced). Everything that speaks against the move is told here.
  Status prepare();
  // copying -> catching_up, or preparing when the snapshot is gone. Offline, under the fence: -> committed.
  Status copy();
  // catching_up -> fenced
  Status catch_up();
  // fenced -> committed; offline: -> copying. With an error the fence is down and the state catching_up.
  Status fence();
  // committed -> cleaning: writes run on the target.
  Status publish();
  // cleaning -> `last`, with that change of the record and the move out of it.
  Status clean(const JobLease::Change& last);

  // Any state before committed; leaves all as it was before begin(), the state untouched, the move out of the
  // record. The source first, so that writes go on even when the target is away.
  Status undo();

 private:
  [[nodiscard]] const MoveWork& work() const { return lease_.record().work; }
  [[nodiscard]] bool online() const { return lease_.record().info.request.mode == MoveMode::kOnline; }
  [[nodiscard]] std::string job_key() const { return std::to_string(lease_.id()); }

  static constexpr const char* kAltered = "the tables were emptied or altered";

  // ---- the two shards (move_shards.cc)
  Status look_at_map();
  Status connect_source();
  Status connect_target();
  Status connect();
  // Of a map that has been looked at. For undoing, where shard or map may be gone: then there is no session.
  Status open_source();
  Status open_target();
  [[nodiscard]] const shardmap::Mapping* mapping() const { return stored_.map->mapping(lease_.record().map); }
  Result<std::vector<NumberedTable>> number_tables(shardmap::PgSession& shard);
  Status delete_rows_on(shardmap::PgSession& shard, shardmap::ShardId id,
                        const std::vector<NumberedTable>& numbered);
  Status delete_what_arrived();
  Status upgrade_shards();
  Status step_shards(bool source, bool target);
  // With more patience each time; the lock's timeout is told to each attempt.
  using LockAttempt = std::function<Result<bool>(std::chrono::milliseconds lock_timeout)>;
  Status retry_locks(const LockAttempt& attempt, bool may_cancel);
  // While writers wait for nothing but this: without pauses, and with more and more patience.
  Status retry_locks_urgently(const LockAttempt& attempt);
  [[nodiscard]] std::chrono::milliseconds longer(std::chrono::milliseconds lock_timeout) const;
  // Tries for a while; false: transactions have the tables, and it is left for later.
  Result<bool> try_locks(const std::function<Result<bool>()>& attempt);
  // Both the fence and the guard; true: the triggers are gone.
  Result<bool> take_away_triggers(shardmap::PgSession& shard);
  Status take_away_fence();
  Status take_away_guard();
  Status restore_what_was();
  void leave_for_later(JobRecord& record) const;
  Status wait_for_leftovers();
  Status drop_following();
  Status send_away_the_dead(const std::string& since);

  // ---- parts of the steps
  void forget();
  Status check_unchanged(const shardmap::ShardMap& map) const;
  Status check_state(const shardmap::ShardMap& map, shardmap::ShardletState state) const;
  Status prepare_tables();
  Status take_tables_of_now();
  Status check_missing();
  Status make_tables();
  Status hide();
  Status follow_from_here();
  Status estimate();
  Result<std::chrono::milliseconds> measure_lag(Deadline patience);
  Error cannot_apply();
  void tell_if_long(const char* what, std::chrono::steady_clock::duration took);
  // For the history, written down with the end of the step: nothing must be written while writes wait.
  void mark(std::string what);
  Status copy_watched(const CopyJob& copy);
  Status copy_and_subscribe();
  Status hold();
  Status release();
  Status guard();
  Status raise();
  // False: somebody has had a table for longer than `age` all the time.
  Result<bool> wait_for_quiet(shardmap::PgSession& shard, std::chrono::milliseconds age, Deadline deadline);
  [[nodiscard]] Deadline drain_deadline() const;
  Status drain();
  Status commit();
  Status lower_fence();
  Status cut_over();

  // ---- comparing (move_verify.cc)
  struct Round {
    std::chrono::milliseconds lag{};    // of a change, from the source to the target
    std::size_t left = 0;               // rows that have changed and are not compared yet
    std::chrono::microseconds takes{};  // to compare those
  };
  struct FencedSource {
    std::vector<RowKeys> keys;  // that are to be compared, for each table
    std::vector<std::vector<RowSum>> of_keys;
    std::vector<MovedTable> whole;  // that are to be compared altogether
    std::vector<RowSum> of_whole;
    std::vector<SequenceValue> sequences;
  };
  Status verify_copy(const std::string& snapshot);
  Status follow_changes();
  Result<Round> compare_changed();
  void choose_keys_at_once(std::size_t compared, std::chrono::steady_clock::duration took);
  Status compare_before_fence();
  void choose_verification();
  Result<bool> tables_have_changed();
  Result<bool> tables_have_changed_there(shardmap::PgSession& target);
  bool
  tables_are_others();  // on either side, as far as that can be told: what has failed may have failed for it
  Status copy_anew(const std::string& why = kAltered);
  // For either reason, where there is one: true.
  Result<bool> begun_anew();
  std::string what_is_lost();
  [[nodiscard]] Following following() const;
  Result<FencedSource> look_at_source();
  Status check_fence_stands();
  Status verify_fenced(const FencedSource& source);

  shardmap::MapStore& store_;
  shardmap::MapChange& map_;
  JobLease& lease_;
  const MoveTuning& tuning_;

  shardmap::StoredMap stored_;
  std::unique_ptr<shardmap::PgSession> source_;
  std::unique_ptr<shardmap::PgSession> target_;
  std::unique_ptr<shardmap::PgSession> flusher_;  // of the target, while it is compared under the fence
  std::string source_dsn_, target_dsn_;           // of these
  bool source_swept_ = false;                     // predecessors' connections are ended
  bool target_swept_ = false;
  std::vector<MovedTable> tables_;
  std::optional<SlotSnapshot> slot_;
  std::string version_;                                 // of the tables, when they were described
  std::vector<std::chrono::microseconds> verify_took_;  // of each table as a whole; empty: not known
  std::vector<std::size_t> whole_;                      // the tables that are compared so under the fence
  std::unique_ptr<ChangeStream> changes_;
  std::vector<RowKeys> pending_;  // for each table: told of, and not found equal since
  std::size_t keys_at_once_ = 2000;
  int copies_ = 0;
  int losses_ = 0;
  int drains_ = 0;  // that took too long
  std::string fence_mark_;
  Leftover left_;        // of this move, on the source
  Leftover left_there_;  // and on the target
  std::vector<JobEvent> marks_;
};

}  // namespace kintsugi::splitmerge
