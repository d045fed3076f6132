// The move's dealings with its two shards: connections, local maps, locks that are asked for politely.
#include <algorithm>

#include "base/log.h"
#include "base/sql_quote.h"
#include "shardmap/local_map.h"
#include "splitmerge/move.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::LocalMap;
using shardmap::PgSession;
using shardmap::Shard;
using shardmap::SqlValue;
using std::chrono::milliseconds;

constexpr milliseconds kShardDeadline{15000};
constexpr int kBackOffMax = 10;

Deadline soon() {
  return Deadline::in(kShardDeadline);
}

Error of_shard(const Shard& shard, Error error) {
  if (error.sqlstate != sqlstate::kConnectionFailure) return error;
  return {std::string(sqlstate::kShardUnreachable), "shard \"" + shard.name + "\" cannot be reached",
          error.message, "", 0};
}

}  // namespace

Status Move::look_at_map() {
  KG_TRY(stored_, map_.newest(soon()));
  for (const shardmap::ShardId id : {work().source, work().target}) {
    if (stored_.map->shard(id) == nullptr)
      return fail(sqlstate::kUndefinedObject, "a shard of the move is gone");
  }
  if (stored_.map->mapping(lease_.record().map) == nullptr)
    return fail(sqlstate::kUndefinedObject, "the shard map of the move is gone");
  return {};
}

Status Move::connect_source() {
  KG_CHECK(look_at_map());
  if (source_ && source_->good()) return {};
  const Shard& shard = *stored_.map->shard(work().source);
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  auto session = open_session(shard.dsn, name, lease_, soon());
  if (!session) return fail(of_shard(shard, session.error()));
  if (!source_swept_) KG_CHECK(end_predecessors(**session, name, soon()));
  source_swept_ = true;
  source_ = *std::move(session);
  std::vector<MovedTable> named;
  for (const shardmap::Table& table : work().tables)
    named.emplace_back().name = quote_identifier(table.schema) + "." + quote_identifier(table.name);
  KG_TRY(version_, version_of(*source_, named, soon()));
  KG_TRY(tables_,
         describe(*source_, *stored_.map->mapping(lease_.record().map), work().tables, work().ranges, soon()));
  return {};
}

Status Move::connect_target() {
  KG_CHECK(look_at_map());
  if (target_ && target_->good()) return {};
  const Shard& shard = *stored_.map->shard(work().target);
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  auto session = open_session(shard.dsn, name, lease_, soon());
  if (!session) return fail(of_shard(shard, session.error()));
  if (!target_swept_) KG_CHECK(end_predecessors(**session, name, soon()));
  target_swept_ = true;
  target_ = *std::move(session);
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

Status Move::retry_locks(const std::function<Result<bool>()>& attempt, bool may_cancel) {
  const Deadline patience = Deadline::in(tuning_.fence_patience);
  for (int n = 1;; n = std::min(2 * n, kBackOffMax)) {
    KG_TRY(const bool done, attempt());
    if (done) return {};
    if (patience.passed()) return fail("55P03", "a lock on a table of the shardlet was not to be had");
    lease_.pause(tuning_.fence_retry_after * n);
    KG_CHECK(lease_.go_on(may_cancel));
  }
}

Status Move::drop_following() {
  if (!online()) return {};
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  slot_.reset();
  changes_.reset();
  if (target_ && target_->good()) KG_CHECK(drop_subscription(*target_, name, soon()));
  if (source_ && source_->good()) {
    KG_CHECK(drop_slot(*source_, name, soon()));
    KG_CHECK(drop_slot(*source_, check_slot_of(name), soon()));
    KG_CHECK(drop_publication(*source_, name, soon()));
    KG_CHECK(drop_marks(*source_, lease_.id(), soon()));
  }
  if (target_ && target_->good()) KG_CHECK(drop_marks(*target_, lease_.id(), soon()));
  return {};
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
