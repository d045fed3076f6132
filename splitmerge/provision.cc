#include "splitmerge/provision.h"

#include <algorithm>

#include "base/sql_quote.h"
#include "shardmap/failpoint.h"
#include "shardmap/local_map.h"
#include "shardmap/map_feed.h"
#include "shardmap/sequences.h"
#include "splitmerge/copy_pipe.h"
#include "splitmerge/fence.h"
#include "splitmerge/follow.h"
#include "splitmerge/preconditions.h"
#include "splitmerge/row_check.h"
#include "splitmerge/schema_dump.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::failpoint;
using shardmap::LocalMap;
using shardmap::MapEdit;
using shardmap::Shard;
using shardmap::ShardMap;
using shardmap::ShardState;
using shardmap::Table;
using shardmap::TableKind;
using std::chrono::milliseconds;
namespace edit = shardmap::edit;

constexpr const char* kSchemaMark = "schema";
constexpr std::size_t kDifferencesShown = 10;
constexpr int kAttemptsAtOnce = 10;
constexpr milliseconds kShardDeadline{15000};
constexpr milliseconds kSchemaDeadline{600000};

Deadline soon() {
  return Deadline::in(kShardDeadline);
}

std::string qualified(const Table& table) {
  return quote_identifier(table.schema) + "." + quote_identifier(table.name);
}

}  // namespace

Status Provision::connect() {
  KG_TRY(stored_, map_.newest(soon()));
  const std::string& wanted = lease_.record().info.request.shard;
  fresh_ = stored_.map->shard_named(wanted);
  if (fresh_ == nullptr) return fail(sqlstate::kUndefinedObject, "shard \"" + wanted + "\" does not exist");
  like_ = nullptr;
  for (const Shard* shard : stored_.map->shards()) {
    if (shard->id == fresh_->id || shard->state != ShardState::kOnline) continue;
    // The home shard has tables that the others have not: any other is better.
    if (like_ == nullptr || like_ == stored_.map->home_shard()) like_ = shard;
  }
  name_ = job_name(stored_.map->store_id(), lease_.id());
  if (!target_ || !target_->good()) {
    KG_TRY(target_, open_session(*fresh_, name_, lease_, soon()));
    KG_CHECK(end_predecessors(*target_, name_, soon()));
    KG_TRY(LocalMap local, LocalMap::connect(fresh_->dsn, soon()));
    KG_CHECK(local.claim(stored_.map->store_id(), fresh_->identity, fresh_->name, soon()));
  }
  if (like_ == nullptr) return {};
  if (!source_ || !source_->good()) {
    KG_TRY(source_, open_session(*like_, name_, lease_, soon()));
    KG_CHECK(end_predecessors(*source_, name_, soon()));
    KG_TRY(LocalMap local, LocalMap::connect(like_->dsn, soon()));
    KG_CHECK(local.claim(stored_.map->store_id(), like_->identity, like_->name, soon()));
  }
  replicated_.clear();
  for (const Table* table : stored_.map->tables()) {
    if (table->kind != TableKind::kReplicated) continue;
    KG_TRY(replicated_.emplace_back(), describe_whole(*source_, *table, soon()));
  }
  return {};
}

// Tables that are no other shard's: those at home.
Result<std::vector<std::string>> Provision::not_shared() {
  std::vector<std::string> names;
  if (like_ != stored_.map->home_shard()) return names;
  KG_TRY(const auto rows,
         source_->query(
             "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
             "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT IN ('kintsugi', "
             "'pg_catalog', 'information_schema') AND c.relpersistence <> 't'",
             {}, soon()));
  for (const auto& row : rows) {
    const Table* table = stored_.map->table(*row[0], *row[1]);
    if (table != nullptr && table->kind != TableKind::kHome) continue;
    names.push_back(quote_identifier(*row[0]) + "." + quote_identifier(*row[1]));
  }
  return names;
}

Status Provision::take_schema() {
  KG_TRY(const auto there,
         target_->query("SELECT FROM kintsugi.marker WHERE mark = " + quote_literal(kSchemaMark), {}, soon()));
  if (!there.empty()) return {};
  KG_TRY(const auto without, not_shared());
  const Deadline deadline = Deadline::in(kSchemaDeadline);
  KG_TRY(std::string sql, dump_schema(like_->dsn, without, deadline));
  // What a move has on the other shard's tables is no matter of this one.
  sql +=
      "\nDO $$ DECLARE t record; BEGIN FOR t IN SELECT tgname, tgrelid::regclass AS rel FROM pg_trigger WHERE "
      "tgparentid = 0 "
      "AND tgname LIKE 'kintsugi#_fence#_%' ESCAPE '#' LOOP EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, "
      "t.rel); END "
      "LOOP; END $$;\n";
  // With the schema, in the same transaction: that it is there.
  sql += "\n" + mark_statement(lease_.id(), kSchemaMark) + ";\n";
  KG_CHECK(lease_.renew());
  const Status applied = apply_schema(fresh_->dsn, sql, deadline);
  if (applied) return {};
  Error error = applied.error();
  error.detail = error.message;
  error.message = "shard \"" + fresh_->name + "\" cannot be given the tables of \"" + like_->name + "\"";
  error.hint = "Its database should hold nothing yet: drop what is in the way, then RESUME JOB.";
  return fail(std::move(error));
}

Status Provision::check_schema() {
  std::vector<std::string> reasons;
  for (const Table* table : stored_.map->tables()) {
    if (table->kind == TableKind::kHome) continue;
    KG_TRY(const auto here, shape_of(*source_, qualified(*table), soon()));
    KG_TRY(const auto there, shape_of(*target_, qualified(*table), soon()));
    if (here != there)
      reasons.push_back("table " + table->display() + " is not as on shard \"" + like_->name + "\"");
  }
  // Types, functions, views, sequences, rights and all else that pg_dump tells of.
  KG_TRY(const auto without, not_shared());
  const Deadline deadline = Deadline::in(kSchemaDeadline);
  KG_TRY(const std::string here, dump_schema(like_->dsn, without, deadline));
  KG_TRY(const std::string there, dump_schema(fresh_->dsn, without, deadline));
  for (std::string& line : differences_of(here, like_->name, there, fresh_->name)) {
    if (reasons.size() >= kDifferencesShown) break;
    reasons.push_back(std::move(line));
  }
  if (reasons.empty()) return {};
  Error error = refusal(reasons);
  error.message = "shard \"" + fresh_->name + "\" cannot be made like the others";
  return fail(error);
}

// What the columns of sharded tables make on one shard is nothing that another makes.
Status Provision::set_sequences_apart() {
  std::vector<std::pair<shardmap::ShardId, std::unique_ptr<shardmap::PgSession>>> others;
  for (const auto* shard : stored_.map->shards()) {
    if (shard->id == fresh_->id || shard->state == shardmap::ShardState::kPreparing) continue;
    KG_TRY(auto session, open_session(*shard, name_, lease_, soon()));
    others.emplace_back(shard->id, std::move(session));
  }
  for (const Table* table : stored_.map->tables()) {
    if (table->kind != TableKind::kSharded) continue;
    const std::string name = qualified(*table);
    std::int64_t last = 0;
    for (auto& [id, session] : others) {
      KG_TRY(const std::int64_t here, shardmap::last_of_sequences(*session, name, soon()));
      last = std::max(last, here);
    }
    for (auto& [id, session] : others) KG_CHECK(shardmap::count_apart(*session, id, name, last, soon()));
    KG_CHECK(shardmap::count_apart(*target_, fresh_->id, name, last, soon()));
  }
  return {};
}

// No write to a replicated table gets by that does not know the new shard.
Status Provision::fence() {
  const std::string prefix = "CREATE OR REPLACE TRIGGER kintsugi_fence_" + std::to_string(lease_.id());
  const std::string refuse =
      " EXECUTE FUNCTION kintsugi.refuse_moved(" + quote_literal(std::to_string(lease_.id())) + "); ";
  for (const MovedTable& table : replicated_) {
    const std::string script =
        "BEGIN; SET LOCAL lock_timeout = " + std::to_string(tuning_.fence_lock_timeout.count()) + "; " +
        prefix + "_in BEFORE INSERT OR UPDATE OR DELETE ON " + table.name + " FOR EACH ROW" + refuse + prefix +
        "_all BEFORE TRUNCATE ON " + table.name + " FOR EACH STATEMENT" + refuse + "COMMIT";
    const Deadline patience = Deadline::in(tuning_.fence_patience);
    for (;;) {
      const Status done = source_->script(script, soon());
      if (done) break;
      if (source_->good()) (void)source_->run("ROLLBACK", {}, soon());
      if (done.error().sqlstate != "55P03" || patience.passed()) return done;
      lease_.pause(tuning_.fence_retry_after);
      KG_CHECK(lease_.go_on(true));
    }
  }
  return {};
}

// Writes go on when it returns. False: readers have the tables, and the triggers, disabled, are left for later.
Result<bool> Provision::drop() {
  const Deadline patience = Deadline::in(tuning_.fence_patience);
  for (;;) {
    KG_TRY(const bool open, open_fence(*source_, lease_.id(), tuning_.fence_lock_timeout, soon()));
    if (open) break;
    if (patience.passed()) return fail("55P03", "a lock on a replicated table was not to be had");
    lease_.pause(tuning_.fence_retry_after);
    KG_CHECK(lease_.go_on(false));
  }
  for (int n = 0; n < kAttemptsAtOnce; ++n) {
    KG_TRY(const bool done, drop_fence(*source_, lease_.id(), tuning_.fence_lock_timeout, soon()));
    if (done) return true;
    lease_.pause(tuning_.fence_retry_after);
    KG_CHECK(lease_.go_on(false));
  }
  return false;
}

Status Provision::copy_replicated() {
  const Deadline never = Deadline::never();
  for (const MovedTable& table : replicated_) KG_CHECK(target_->run("DELETE FROM " + table.name, {}, never));
  const RawLink::GoOn go_on = [this] { return lease_.go_on(true); };
  KG_TRY(RawLink frozen, RawLink::open(*like_, name_, false, lease_, soon()));
  KG_TRY(const auto rows,
         frozen.run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SELECT pg_export_snapshot()", soon(),
                    go_on));
  const CopyJob copy{*like_,
                     *fresh_,
                     name_,
                     *rows.at(0).at(0),
                     &replicated_,
                     tuning_.tables_at_once,
                     lease_.record().info.request.max_rate};
  lease_.start_progress(0);
  KG_CHECK(copy_rows(copy, lease_, go_on));
  failpoint("provision: copied");
  KG_TRY(const BothSums sums, sums_of_both(*source_, *target_, replicated_, never));
  KG_CHECK(compare_sums(replicated_, sums, *source_, *target_, never));
  KG_TRY(const auto sequences, sequences_of(*source_, replicated_, soon()));
  return carry_sequences(*target_, sequences, soon());
}

Status Provision::fill() {
  KG_CHECK(connect());
  if (like_ != nullptr) {
    KG_CHECK(take_schema());
    failpoint("provision: schema");
    KG_CHECK(check_schema());
    KG_CHECK(set_sequences_apart());
    if (!replicated_.empty()) {
      KG_CHECK(fence());
      failpoint("provision: fenced");
      KG_CHECK(copy_replicated());
    }
  }
  const std::string name = fresh_->name;
  KG_TRY(stored_, lease_.commit(
                      map_,
                      [&name](const ShardMap& map) -> Result<MapEdit> {
                        if (map.shard_named(name) == nullptr)
                          return fail(sqlstate::kUndefinedObject, "shard \"" + name + "\" does not exist");
                        return MapEdit{edit::AlterShard{name, {}, {}, {}, ShardState::kOnline}};
                      },
                      [](JobRecord& record) {
                        record.info.state = JobState::kCleaning;
                        record.info.history.push_back({utc_now(), "cleaning"});
                      },
                      true, soon()));
  failpoint("provision: online");
  return {};
}

Status Provision::finish(const JobLease::Change& last) {
  KG_CHECK(connect());
  KG_CHECK(wait_until_taken(store_, stored_.map->epoch(), Deadline::in(tuning_.routers_patience)));
  std::vector<Leftover> left;
  for (const Shard* shard : stored_.map->shards()) {
    // Which shard it was made like is not in the record: the fence is on one of them.
    if (shard->id == fresh_->id) continue;
    KG_TRY(source_, open_session(*shard, name_, lease_, soon()));
    KG_TRY(const bool gone, drop());
    if (!gone) left.push_back({shard->id, true, {}});
  }
  KG_CHECK(drop_marks(*target_, lease_.id(), soon()));
  return lease_.update([&](JobRecord& record) {
    record.leftovers = left;
    last(record);
  });
}

Status Provision::undo() {
  KG_TRY(stored_, map_.newest(soon()));
  name_ = job_name(stored_.map->store_id(), lease_.id());
  std::vector<Leftover> left;
  for (const Shard* shard : stored_.map->shards()) {
    if (shard->name == lease_.record().info.request.shard) continue;
    KG_TRY(source_, open_session(*shard, name_, lease_, soon()));
    KG_CHECK(end_predecessors(*source_, name_, soon()));
    KG_TRY(const bool gone, drop());
    if (!gone) left.push_back({shard->id, true, {}});
  }
  return lease_.update([&left](JobRecord& record) { record.leftovers = left; });
}

}  // namespace kintsugi::splitmerge
