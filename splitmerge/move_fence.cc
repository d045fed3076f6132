// The middle of a move, while writes wait: hold, fence, drain, verify, commit; and the way back.
#include <algorithm>
#include <future>

#include "base/log.h"
#include "base/sql_quote.h"
#include "shardmap/failpoint.h"
#include "shardmap/map_feed.h"
#include "splitmerge/move.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::failpoint;
using shardmap::MapEdit;
using shardmap::ShardletState;
using shardmap::ShardMap;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
namespace edit = shardmap::edit;

constexpr milliseconds kShardDeadline{15000};
constexpr milliseconds kQuietPatience{1000};
constexpr int kBackOffMax = 10;
constexpr int kDrainsMax = 8;

Deadline soon() {
  return Deadline::in(kShardDeadline);
}

// Who holds what the fence needs for longer than a fence would wait, prepared transactions among them.
std::string slow_holders(const std::vector<MovedTable>& tables, milliseconds age) {
  std::string names;
  for (const MovedTable& table : tables) {
    for (const Leaf& leaf : table.leaves)
      names += (names.empty() ? "" : ", ") + quote_literal(leaf.name) + "::regclass";
  }
  return "SELECT count(*) FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.granted AND "
         "l.database "
         "= (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.relation IN (" +
         names +
         ") AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') AND (l.pid IS NULL OR (l.pid <> "
         "pg_backend_pid() AND "
         "a.xact_start < clock_timestamp() - interval '" +
         std::to_string(age.count()) + " ms'))";
}

}  // namespace

// The shardlet is held: routers let no new write through.
Status Move::hold() {
  KG_TRY(stored_, map_.newest(soon()));
  const auto now = stored_.map->shardlet(work().shardlet);
  if (!now || now->state == ShardletState::kHeld) return {};
  // Somebody may have set it offline since the move began: so it is to be afterwards, too.
  const ShardletState prior = now->state;
  mark("holding");
  KG_TRY(stored_, lease_.commit(
                      map_,
                      [this, prior](const ShardMap& map) -> Result<MapEdit> {
                        KG_CHECK(check_unchanged(map));
                        KG_CHECK(check_state(map, prior));
                        return MapEdit{edit::AlterShardlet{work().shardlet, {}, {}, ShardletState::kHeld}};
                      },
                      [prior](JobRecord& record) { record.work.prior = prior; }, false, soon()));
  failpoint("move: held");
  // Nothing rests on this: a write that comes in spite of it meets the fence.
  (void)wait_until_seen(store_, stored_.map->epoch(), Deadline::in(tuning_.hold_seen_wait));
  return {};
}

Status Move::release() {
  KG_TRY(stored_, map_.newest(soon()));
  const auto now = stored_.map->shardlet(work().shardlet);
  if (!now || now->state != ShardletState::kHeld || now->shard != work().source) return {};
  KG_TRY(stored_, lease_.commit(
                      map_,
                      [this](const ShardMap& map) -> Result<MapEdit> {
                        const auto shardlet = map.shardlet(work().shardlet);
                        if (!shardlet || shardlet->state != ShardletState::kHeld) return MapEdit{};
                        return MapEdit{edit::AlterShardlet{work().shardlet, {}, {}, work().prior}};
                      },
                      [](JobRecord&) {}, false, soon()));
  return {};
}

// Waits while a transaction that would not let us in is at work; after a while we try all the same.
Result<bool> Move::wait_for_quiet(shardmap::PgSession& shard, milliseconds age, Deadline deadline) {
  if (tables_.empty()) return true;
  const std::string question = slow_holders(tables_, age);
  while (!deadline.passed()) {
    KG_TRY(const auto rows, shard.query(question, {}, soon()));
    if (rows[0][0] == "0") return true;
    lease_.pause(milliseconds(5));
    KG_CHECK(lease_.go_on(true));
  }
  return false;
}

// From here on nobody but the move changes the arriving rows; what somebody did before, comparing finds. A
// transaction that writes there for long is waited for as the slot has waited for those on the source.
Status Move::guard() {
  if (tables_.empty()) return {};
  const Deadline patience = Deadline::in(tuning_.slot_patience);
  const FenceSpec spec{
      lease_.id(), stored_.map->mapping(lease_.record().map), work().shardlet, work().ranges, &tables_, ""};
  for (milliseconds lock_timeout = tuning_.fence_lock_timeout;;) {
    KG_TRY(const bool quiet,
           wait_for_quiet(*target_, lock_timeout, Deadline::in(kQuietPatience).sooner(patience)));
    KG_TRY(const bool raised,
           raise_guard(*target_, spec, quiet ? lock_timeout : tuning_.fence_lock_timeout, soon()));
    if (raised) break;
    lock_timeout = longer(lock_timeout);
    if (patience.passed()) {
      return fail(sqlstate::kQueryCanceled, "transactions on the target's tables do not end",
                  "Look for long transactions on the target, prepared ones too.");
    }
    lease_.pause(tuning_.fence_retry_after);
    KG_CHECK(lease_.go_on(true));
  }
  failpoint("move: guarded");
  return {};
}

// A transaction that is older than the patience is waited for before anybody queues behind us; after a while
// the least patience is tried all the same. On a busy server all are older than that, and the patience grows.
Status Move::raise() {
  const Deadline patience = Deadline::in(tuning_.fence_patience);
  const FenceSpec spec{lease_.id(), stored_.map->mapping(lease_.record().map), work().shardlet, work().ranges,
                       &tables_};
  milliseconds lock_timeout = tuning_.fence_lock_timeout;
  for (int n = 1;; n = std::min(2 * n, kBackOffMax)) {
    KG_CHECK(lease_.go_on(true));
    KG_TRY(const bool quiet,
           wait_for_quiet(*source_, lock_timeout, Deadline::in(kQuietPatience).sooner(patience)));
    KG_CHECK(compare_before_fence());
    // What has been applied until now is on the target's disk before anybody waits for the rest.
    if (flusher_) KG_CHECK(flush(*flusher_, soon()));
    KG_CHECK(hold());
    mark("held");
    FenceSpec now = spec;
    now.mapping = mapping();
    fence_mark_ = shardmap::random_uuid();
    if (online() && !tables_.empty()) now.also = mark_statement(lease_.id(), fence_mark_);
    KG_TRY(const bool raised,
           raise_fence(*source_, now, quiet ? lock_timeout : tuning_.fence_lock_timeout, soon()));
    failpoint("move: fence raised");
    if (raised) {
      mark("fence raised");
      return {};
    }
    KG_CHECK(release());
    mark("the lock was not to be had");
    lock_timeout = longer(lock_timeout);
    if (patience.passed()) {
      return fail("55P03", "the fence could not be raised: transactions on the shardlet's tables do not end",
                  "Look for long transactions on the source, prepared ones too.");
    }
    lease_.pause(tuning_.fence_retry_after * n);
  }
}

// Writers wait meanwhile: first a short try, then longer ones.
Deadline Move::drain_deadline() const {
  return Deadline::in(std::min(tuning_.drain_patience, tuning_.drain_first * (1 << std::min(drains_, 10))));
}

Status Move::drain() {
  if (!online() || tables_.empty()) return {};
  const Deadline patience = drain_deadline();
  for (;;) {
    KG_TRY(const bool arrived, has_arrived(*target_, lease_.id(), fence_mark_, soon()));
    if (arrived) break;
    KG_CHECK(lease_.go_on(true));
    if (patience.passed()) return fail(kTooSlow, "the target did not catch up under the fence");
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  mark("drained");
  return {};
}

Status Move::commit() {
  const auto decide = [this](const ShardMap& map) -> Result<MapEdit> {
    KG_CHECK(check_unchanged(map));
    KG_CHECK(check_state(map, ShardletState::kHeld));
    const std::string& target = map.shard(work().target)->name;
    const std::string& source = map.shard(work().source)->name;
    return MapEdit{edit::RevealRanges{job_key()},
                   edit::AlterShardlet{work().shardlet, {}, target, ShardletState::kHeld},
                   edit::HideRange{work().shardlet, source, job_key()}};
  };
  failpoint("move: before commit");
  KG_TRY(stored_, lease_.commit(
                      map_, decide,
                      [](JobRecord& record) {
                        record.info.state = JobState::kCommitted;
                        record.info.history.push_back({utc_now(), "committed"});
                        record.work.verified = true;
                      },
                      true, soon()));
  failpoint("move: after commit");
  return {};
}

// DISABLE TRIGGER ALL opens it. What has come through since is on its way to the target, behind the last change
// that was waited for.
Status Move::check_fence_stands() {
  KG_TRY(const std::string opened, opened_by_others(*source_, lease_.id(), tables_, soon()));
  if (opened.empty()) return {};
  return fail(kFenceOpened,
              "somebody has disabled or enabled the triggers of " + opened + ", and the fence with them");
}

// From the fence to the commit, writes waiting.
Status Move::cut_over() {
  auto source = std::async(std::launch::async, [this] { return look_at_source(); });
  const Status drained = drain();
  const auto looked = source.get();
  KG_CHECK(drained);
  if (!looked) return fail(looked.error());
  failpoint("move: drained");
  // What has arrived comes to the target's disk while it is compared.
  auto flushed = std::async(std::launch::async, [this]() -> Status {
    if (!flusher_) return {};
    KG_TRY(const bool changed, tables_have_changed_there(*flusher_));
    if (changed) return fail(kTablesChanged, "the tables on the target were emptied or altered");
    return flush(*flusher_, soon());
  });
  const Status verified = verify_fenced(*looked);
  KG_CHECK(flushed.get());
  if (verified || verified.error().sqlstate == kRowsDiffer) KG_CHECK(check_fence_stands());
  KG_CHECK(verified);
  KG_CHECK(carry_sequences(*target_, looked->sequences, soon()));
  failpoint("move: verified");
  mark("verified");
  return commit();
}

// Writes go on, on the source. The triggers stay, disabled: to drop them is to wait for every transaction that
// has read the table. Who holds the locks that are wanted here may wait for the map in turn, then it goes
// first: who comes too early meets the fence, and waits without locks or is refused.
Status Move::lower_fence() {
  KG_TRY(stored_, map_.newest(soon()));
  KG_CHECK(open_source());
  const auto open = [&](milliseconds patience) { return open_fence(*source_, lease_.id(), patience, soon()); };
  if (source_) {
    KG_TRY(const bool opened, try_locks([&] { return open(tuning_.fence_lock_timeout_max); }));
    if (!opened) {
      KG_CHECK(release());
      KG_CHECK(retry_locks_urgently(open));
    }
  }
  return release();
}

Status Move::fence() {
  KG_CHECK(connect());
  choose_verification();
  if (online() && !tables_.empty() && !(flusher_ && flusher_->good())) {
    const std::string name = job_name(stored_.map->store_id(), lease_.id());
    KG_TRY(flusher_, open_session(*stored_.map->shard(work().target), name, lease_, soon()));
  }
  Status done = raise();
  if (done && !online()) {
    done = lease_.update([](JobRecord& record) {
      record.info.state = JobState::kCopying;
      record.info.history.push_back({utc_now(), "copying"});
    });
    if (done) return {};
  }
  if (done) done = cut_over();
  if (done || lease_.lost() || !lease_.go_on(false)) return done;
  // Nothing is decided; let writers through before anything else.
  const Status down = lower_fence();
  if (down && online() && done.error().sqlstate == kTablesChanged) return copy_anew(done.error().message);
  if (down && online()) {
    KG_TRY(const bool anew, begun_anew());
    if (anew) return {};
  }
  const std::string& why_lowered = done.error().sqlstate;
  const bool may_pass = why_lowered == kTooSlow || why_lowered == kFenceOpened || why_lowered == kFollowingLost;
  const bool once_more = down && online() && may_pass && ++drains_ < kDrainsMax;
  if (down && online()) {
    const std::string why = once_more ? ": " + done.error().message : "";
    const Status noted = lease_.update([&why](JobRecord& record) {
      record.info.state = JobState::kCatchingUp;
      record.info.history.push_back({utc_now(), "the fence was lowered again" + why});
      record.work.fenced = false;
    });
    if (noted && once_more) return {};
  }
  return told_plainly(done);
}

}  // namespace kintsugi::splitmerge
