// The move's dealings with its two shards: connections, local maps, locks that are asked for politely.
#include <algorithm>

#include "base/log.h"
#include "base/sql_quote.h"
#include "shardmap/local_map.h"
#include "splitmerge/move.h"
#include "splitmerge/row_delete.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::LocalMap;
using shardmap::PgSession;
using shardmap::Shard;
using shardmap::SqlValue;
using std::chrono::milliseconds;

constexpr milliseconds kShardDeadline{15000};
constexpr int kBackOffMax = 10;
constexpr int kAttemptsAtOnce = 4;
constexpr milliseconds kUrgentLockMax{1000};
constexpr milliseconds kUrgentPause{5};

Deadline soon() {
  return Deadline::in(kShardDeadline);
}

}  // namespace

Status Move::look_at_map() {
  KG_TRY(stored_, map_.newest(soon()));
  for (const shardmap::ShardId id : {work().source, work().target}) {
    if (stored_.map->shard(id) == nullptr)
      return fail(sqlstate::kUndefinedObject, "a shard of the move is gone");
  }
  if (mapping() == nullptr) return fail(sqlstate::kUndefinedObject, "the shard map of the move is gone");
  return {};
}

Status Move::connect_source() {
  KG_CHECK(look_at_map());
  return open_source();
}

Status Move::open_source() {
  const Shard* found = stored_.map->shard(work().source);
  if (found == nullptr) {
    source_.reset();
    return {};
  }
  const Shard& shard = *found;
  if (shard.dsn != source_dsn_) {
    // What we know of it, and had there, is of another server.
    source_.reset();
    changes_.reset();
    slot_.reset();
    source_swept_ = false;
  }
  if (source_ && source_->good()) return {};
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  KG_TRY(auto session, open_session(shard, name, lease_, soon()));
  if (!source_swept_) KG_CHECK(end_predecessors(*session, name, soon()));
  source_swept_ = true;
  source_ = std::move(session);
  source_dsn_ = shard.dsn;
  std::vector<MovedTable> named;
  std::vector<shardmap::Table> there;
  for (const shardmap::Table& table : work().tables) {
    const std::string quoted = quote_identifier(table.schema) + "." + quote_identifier(table.name);
    KG_TRY(const auto exists,
           source_->query("SELECT to_regclass($1) IS NOT NULL", {SqlValue::text(quoted)}, soon()));
    if (exists.at(0).at(0) != "t") continue;  // dropped since, and its rows with it
    named.emplace_back().name = quoted;
    there.push_back(table);
  }
  KG_TRY(version_, version_of(*source_, named, soon()));
  tables_.clear();
  if (mapping() == nullptr) return {};
  KG_TRY(tables_, describe(*source_, *mapping(), there, work().ranges, soon()));
  return {};
}

Result<std::vector<NumberedTable>> Move::number_tables(PgSession& shard) {
  std::vector<NumberedTable> numbered;
  for (const MovedTable& table : tables_) {
    KG_TRY(const auto rows, shard.query("SELECT to_regclass($1)::oid", {SqlValue::text(table.name)}, soon()));
    if (rows.at(0).at(0)) numbered.push_back({table.table, *rows[0][0]});
  }
  return numbered;
}

// The rows of the range in the tables that the move has worked with, whatever they are called by now. A name
// that goes while they are deleted is an error, and whoever tries again finds the new one.
Status Move::delete_rows_on(PgSession& shard, shardmap::ShardId id,
                            const std::vector<NumberedTable>& numbered) {
  std::vector<shardmap::Table> tables;
  for (const NumberedTable& each : numbered) {
    KG_TRY(const auto rows, shard.query("SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON "
                                        "n.oid = c.relnamespace WHERE c.oid = $1::text::oid",
                                        {SqlValue::text(each.number)}, soon()));
    if (rows.empty()) continue;  // dropped since, and its rows with it
    shardmap::Table& table = tables.emplace_back(each.table);
    table.schema = *rows[0][0];
    table.name = *rows[0][1];
    const shardmap::Table* now = stored_.map->table(table.schema, table.name);
    if (now != nullptr && now->map == table.map) table.key = now->key;
  }
  if (mapping() == nullptr) return {};  // dropped, when none of its tables was sharded any more
  KG_TRY(const auto described, numbered.empty() ? Result<std::vector<MovedTable>>(tables_)
                                                : describe(shard, *mapping(), tables, work().ranges, soon()));
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  KG_CHECK(delete_rows(*stored_.map->shard(id), name, described, tuning_, lease_));
  return {};
}

Status Move::delete_what_arrived() {
  return delete_rows_on(*target_, work().target, work().there);
}

Status Move::connect_target() {
  KG_CHECK(look_at_map());
  return open_target();
}

Status Move::open_target() {
  const Shard* found = stored_.map->shard(work().target);
  if (found == nullptr) {
    target_.reset();
    return {};
  }
  const Shard& shard = *found;
  if (shard.dsn != target_dsn_) {
    target_.reset();
    flusher_.reset();
    target_swept_ = false;
  }
  if (target_ && target_->good()) return {};
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  KG_TRY(auto session, open_session(shard, name, lease_, soon()));
  if (!target_swept_) KG_CHECK(end_predecessors(*session, name, soon()));
  target_swept_ = true;
  target_ = std::move(session);
  target_dsn_ = shard.dsn;
  return {};
}

Status Move::connect() {
  KG_CHECK(connect_source());
  return connect_target();
}

// Brings schema `kintsugi` on both up to what this program needs.
Status Move::upgrade_shards() {
  for (const shardmap::ShardId id : {work().source, work().target}) {
    const Shard& shard = *stored_.map->shard(id);
    auto local = LocalMap::connect(shard.dsn, soon());
    if (!local) return fail(of_shard(shard, local.error()));
    KG_CHECK(local->claim(stored_.map->store_id(), shard.identity, shard.name, soon()));
  }
  return {};
}

Status Move::step_shards(bool source, bool target) {
  KG_CHECK(look_at_map());
  if (source) KG_CHECK(map_.bring_into_step(stored_, work().source, soon()));
  if (target) KG_CHECK(map_.bring_into_step(stored_, work().target, soon()));
  return {};
}

milliseconds Move::longer(milliseconds lock_timeout) const {
  return std::max(lock_timeout, std::min(2 * lock_timeout, tuning_.fence_lock_timeout_max));
}

Status Move::retry_locks(const LockAttempt& attempt, bool may_cancel) {
  const Deadline patience = Deadline::in(tuning_.fence_patience);
  milliseconds lock_timeout = tuning_.fence_lock_timeout;
  for (int n = 1;; n = std::min(2 * n, kBackOffMax)) {
    KG_TRY(const bool done, attempt(lock_timeout));
    if (done) return {};
    lock_timeout = longer(lock_timeout);
    if (patience.passed()) return fail("55P03", "a lock on a table of the shardlet was not to be had");
    lease_.pause(tuning_.fence_retry_after * n);
    KG_CHECK(lease_.go_on(may_cancel));
  }
}

Status Move::retry_locks_urgently(const LockAttempt& attempt) {
  const Deadline patience = Deadline::in(tuning_.fence_patience);
  for (milliseconds lock_timeout = tuning_.fence_lock_timeout;;
       lock_timeout = std::max(lock_timeout, std::min(2 * lock_timeout, kUrgentLockMax))) {
    KG_TRY(const bool done, attempt(lock_timeout));
    if (done) return {};
    if (patience.passed()) return fail("55P03", "a lock on a table of the shardlet was not to be had");
    lease_.pause(kUrgentPause);
    KG_CHECK(lease_.go_on(false));
  }
}

Result<bool> Move::try_locks(const std::function<Result<bool>()>& attempt) {
  for (int n = 1; n <= kAttemptsAtOnce; ++n) {
    KG_TRY(const bool done, attempt());
    if (done) return true;
    lease_.pause(tuning_.fence_retry_after);
    KG_CHECK(lease_.go_on(false));
  }
  return false;
}

// They let everybody through when this returns; they may have to be dropped later, because that waits for every
// transaction that has read the table.
Result<bool> Move::take_away_triggers(PgSession& shard) {
  const auto drop = [&] { return drop_fence(shard, lease_.id(), tuning_.fence_lock_timeout, soon()); };
  KG_TRY(const bool dropped, drop());
  if (dropped) return true;
  KG_CHECK(retry_locks([&](milliseconds patience) { return open_fence(shard, lease_.id(), patience, soon()); },
                       false));
  return try_locks(drop);
}

Status Move::take_away_fence() {
  KG_TRY(const bool gone, take_away_triggers(*source_));
  left_.triggers = !gone;
  return {};
}

Status Move::take_away_guard() {
  KG_CHECK(open_guard(*target_, lease_.id(), soon()));
  KG_TRY(const bool gone, take_away_triggers(*target_));
  left_there_.triggers = !gone;
  return {};
}

Status Move::restore_what_was() {
  left_.identities.clear();
  for (const PriorIdentity& identity : work().identities) {
    KG_TRY(const bool restored, try_locks([&] {
             return restore_identities(*source_, {identity}, tuning_.fence_lock_timeout, soon());
           }));
    if (!restored) left_.identities.push_back(identity);
  }
  return {};
}

void Move::leave_for_later(JobRecord& record) const {
  if (left_there_.triggers) {
    record.leftovers.push_back(left_there_);
    record.leftovers.back().shard = record.work.target;
    record.info.history.push_back(
        {utc_now(), "left behind while transactions have the tables: the guard's triggers, disabled"});
  }
  if (!left_.triggers && left_.identities.empty()) return;
  record.leftovers.push_back(left_);
  record.leftovers.back().shard = record.work.source;
  std::string what = left_.triggers ? "the fence's triggers, disabled" : "";
  if (!left_.identities.empty()) what += (what.empty() ? "" : ", and ") + std::string("replica identity FULL");
  record.info.history.push_back({utc_now(), "left behind while transactions have the tables: " + what});
}

// A table whose replica identity another job has still to restore looks as if it had always been FULL, and
// would cease to be so while it is followed.
Status Move::wait_for_leftovers() {
  bool waited = false;
  const auto gone = [&](milliseconds) -> Result<bool> {
    KG_TRY(const auto jobs, JobNotes(store_).running(soon()));
    for (const StoredJob& job : jobs) {
      for (const Leftover& left : job.record.leftovers) {
        const bool here = left.shard == work().source && job.record.info.id != lease_.id();
        if (here && !left.identities.empty()) {
          waited = true;
          return false;
        }
      }
    }
    return true;
  };
  KG_CHECK(retry_locks(gone, true));
  if (!waited) return {};
  source_.reset();  // and with it what was known of the tables
  return connect();
}

Status Move::drop_following() {
  if (!online()) return {};
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  slot_.reset();
  changes_.reset();
  Status there;
  if (target_ && target_->good()) there = drop_subscription(*target_, name, soon());
  // Also when the target takes no writes: the slots keep the source's log until its disk is full.
  if (source_ && source_->good()) {
    KG_CHECK(drop_slot(*source_, name, soon()));
    KG_CHECK(drop_slot(*source_, check_slot_of(name), soon()));
    KG_CHECK(drop_publication(*source_, name, soon()));
    KG_CHECK(drop_marks(*source_, lease_.id(), soon()));
  }
  if (there && target_ && target_->good()) there = drop_marks(*target_, lease_.id(), soon());
  return there;
}

// A router that died or froze may still have connections here that know nothing of the fence's meaning. They
// have been silent since before the move was published; those of living routers that are as old lose nothing by
// it.
Status Move::send_away_the_dead(const std::string& since) {
  KG_TRY(
      const auto sent,
      source_->query("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = "
                     "current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND "
                     "application_name NOT LIKE 'kintsugi\\_%' AND greatest(state_change, query_start, "
                     "backend_start) < $1::text::timestamptz",
                     {SqlValue::text(since)}, soon()));
  if (!sent.empty()) {
    log::warning("connections that were silent since before a move were ended, because a router did not answer",
                 {{"job", lease_.id()}, {"connections", sent.size()}});
  }
  return {};
}

}  // namespace kintsugi::splitmerge
