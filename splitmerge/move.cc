#include "splitmerge/move.h"

#include <algorithm>
#include <atomic>
#include <future>

#include "base/log.h"
#include "base/sql_quote.h"
#include "shardmap/failpoint.h"
#include "shardmap/map_feed.h"
#include "splitmerge/copy_pipe.h"
#include "splitmerge/disk_space.h"
#include "splitmerge/missing_tables.h"
#include "splitmerge/preconditions.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::failpoint;
using shardmap::MapEdit;
using shardmap::PgSession;
using shardmap::RouterState;
using shardmap::Shard;
using shardmap::ShardletState;
using shardmap::ShardMap;
using shardmap::SqlValue;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
namespace edit = shardmap::edit;

constexpr milliseconds kShardDeadline{15000};
constexpr milliseconds kDumpDeadline{120000};
constexpr milliseconds kLook{10};
constexpr milliseconds kLong{1000};
constexpr int kWatchSlices = 30;  // of kLook
constexpr int kApplyErrorsMax = 3;
constexpr int kCountedRowsMax = 100000;
constexpr std::uint64_t kDiskFull = 4UL << 20;
constexpr std::string_view kNoSlotLeft = "53400";  // max_replication_slots

Deadline soon() {
  return Deadline::in(kShardDeadline);
}

std::vector<shardmap::Table> tables_of(const ShardMap& map, const std::string& mapping) {
  std::vector<shardmap::Table> tables;
  for (const shardmap::Table* table : map.tables_of(mapping)) tables.push_back(*table);
  return tables;
}

JobLease::Change to(JobState state) {
  return [state](JobRecord& record) {
    record.info.state = state;
    record.info.history.push_back({utc_now(), std::string(name_of(state))});
  };
}

}  // namespace

// A merge moves one part after the other, and nothing that is known of the first is true of the next.
void Move::forget() {
  source_.reset();
  target_.reset();
  flusher_.reset();
  source_swept_ = target_swept_ = false;
  tables_.clear();
  slot_.reset();
  verify_took_.clear();
  changes_.reset();
  copies_ = losses_ = drains_ = 0;
  left_ = left_there_ = {};
  fence_mark_.clear();
  marks_.clear();
}

Status Move::begin(const std::string& name, const std::string& target) {
  forget();
  KG_TRY(stored_, map_.newest(soon()));
  const ShardMap& map = *stored_.map;
  const auto shardlet = map.shardlet(name);
  if (!shardlet) return fail(sqlstate::kUndefinedObject, "shardlet \"" + name + "\" does not exist");
  const Shard* shard = map.shard_named(target);
  if (shard == nullptr) return fail(sqlstate::kUndefinedObject, "shard \"" + target + "\" does not exist");
  MoveWork work;
  work.shardlet = name;
  work.source = shardlet->shard;
  work.target = shard->id;
  work.ranges = ranges_of(*shardlet);
  work.prior = shardlet->state;
  work.tables = tables_of(map, shardlet->map);
  if (shardlet->state == ShardletState::kHeld)
    return fail(sqlstate::kObjectInUse, "another job works on shardlet \"" + name + "\"");
  return lease_.update([&](JobRecord& record) {
    to(JobState::kPreparing)(record);
    record.map = shardlet->map;
    record.work = std::move(work);
  });
}

// The map must not have been changed under the move in what the move rests on.
Status Move::check_unchanged(const ShardMap& map) const {
  const auto shardlet = map.shardlet(work().shardlet);
  const std::string name = "shardlet \"" + work().shardlet + "\"";
  if (!shardlet) return fail("55000", name + " is gone or has another name");
  if (shardlet->shard != work().source)
    return fail("55000", name + " is on another shard than when the move began");
  if (ranges_of(*shardlet) != work().ranges)
    return fail("55000", name + " has other keys than when the move began");
  if (tables_of(map, shardlet->map) != work().tables)
    return fail(kTablesChanged, "map \"" + shardlet->map + "\" has other tables than when the move began");
  // Routers write where the map says, and what is done to another server stops nobody.
  for (const auto& [id, dsn] : {std::pair(work().source, source_dsn_), std::pair(work().target, target_dsn_)}) {
    const Shard* shard = map.shard(id);
    if (shard == nullptr) return fail(sqlstate::kUndefinedObject, "a shard of the move is gone");
    if (!dsn.empty() && shard->dsn != dsn)
      return fail(kTablesChanged, "shard \"" + shard->name + "\" has another address than when the move began");
  }
  return {};
}

Status Move::check_state(const ShardMap& map, ShardletState state) const {
  const auto shardlet = map.shardlet(work().shardlet);
  if (shardlet && shardlet->state == state) return {};
  return fail(sqlstate::kSerializationFailure,
              "somebody has changed the state of shardlet \"" + work().shardlet + "\" at this moment");
}

// A table may be made, dropped or renamed at any time: then it is the map's tables of now that move.
Status Move::take_tables_of_now() {
  std::vector<shardmap::Table> tables = tables_of(*stored_.map, lease_.record().map);
  if (tables == work().tables) return {};
  KG_CHECK(lease_.update([&tables](JobRecord& record) { record.work.tables = std::move(tables); }));
  source_.reset();  // and with it what was known of the tables
  return connect();
}

// A table of the map that the source does not have under its name: dropped, and its rows with it, or renamed,
// and the map does not know of it yet. Its number tells.
Status Move::check_missing() {
  for (const shardmap::Table& table : work().tables) {
    const auto same = [&table](const shardmap::Table& other) {
      return other.schema == table.schema && other.name == table.name;
    };
    if (std::ranges::any_of(tables_, [&](const MovedTable& moved) { return same(moved.table); })) continue;
    const auto known =
        std::ranges::find_if(work().here, [&](const NumberedTable& each) { return same(each.table); });
    if (known == work().here.end())
      return fail("42P01", "table " + table.display() + " does not exist on the source");
    KG_TRY(const auto rows, source_->query("SELECT relname FROM pg_class WHERE oid = $1::text::oid",
                                           {SqlValue::text(known->number)}, soon()));
    if (!rows.empty()) {
      return fail("55P03", "table " + table.display() + " is called " + *rows[0][0] +
                               " on the source, and the map does not know of it yet");
    }
  }
  return {};
}

void Move::mark(std::string what) {
  marks_.push_back({utc_now(), std::move(what)});
}

Status Move::hide() {
  const auto decide = [this](const ShardMap& map) -> Result<MapEdit> {
    KG_CHECK(check_unchanged(map));
    return MapEdit{edit::HideRange{work().shardlet, map.shard(work().target)->name, job_key()}};
  };
  if (!work().hidden) {
    KG_TRY(stored_, lease_.commit(
                        map_, decide, [](JobRecord& record) { record.work.hidden = true; }, false, soon()));
  }
  failpoint("move: hidden");
  KG_CHECK(step_shards(true, true));
  const auto began = Clock::now();
  KG_CHECK(wait_until_taken(store_, stored_.map->epoch(), Deadline::in(tuning_.routers_patience)));
  tell_if_long("until all routers had taken the epoch", Clock::now() - began);
  return {};
}

// What a step has waited for others stands in the history with it.
void Move::tell_if_long(const char* what, Clock::duration took) {
  const auto ms = std::chrono::duration_cast<milliseconds>(took);
  if (ms > kLong) mark(std::to_string(ms.count()) + " ms " + what);
}

Status Move::follow_from_here() {
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  auto identities = work().identities;
  for (const PriorIdentity& each : identities_to_change(tables_)) {
    const bool noted = std::any_of(identities.begin(), identities.end(), [&each](const PriorIdentity& other) {
      return other.number.empty() ? other.relation == each.relation : other.number == each.number;
    });
    if (!noted) identities.push_back(each);
  }
  if (identities != work().identities)
    KG_CHECK(lease_.update([&](JobRecord& record) { record.work.identities = identities; }));
  KG_CHECK(retry_locks(
      [&](milliseconds patience) { return set_identities_full(*source_, work().identities, patience, soon()); },
      true));
  failpoint("move: identities");
  KG_CHECK(make_publication(*source_, name, lease_.id(), tables_, soon()));
  failpoint("move: publication");
  const Shard& source = *stored_.map->shard(work().source);
  const auto began = Clock::now();
  KG_TRY(slot_,
         make_slot(
             source, name, lease_, [this] { return lease_.go_on(true); }, Deadline::in(tuning_.slot_patience)));
  tell_if_long("until transactions had ended that a replication slot waits for", Clock::now() - began);
  const Status copied = copy_slot(*source_, name, check_slot_of(name), soon());
  if (!copied && copied.error().sqlstate != kNoSlotLeft) {  // the first one may be given up already
    KG_TRY(const bool anew, begun_anew());
    if (anew) return fail(kTablesChanged, copied.error().message);
  }
  KG_CHECK(copied);
  failpoint("move: slot");
  return {};
}

// Before anything else is touched: what the target lacks, and a word about its disk.
Status Move::make_tables() {
  const TwoShards shards{*stored_.map->shard(work().source), *stored_.map->shard(work().target)};
  KG_TRY(const auto made,
         make_missing_tables(shards, *source_, *target_, tables_, Deadline::in(kDumpDeadline)));
  KG_TRY(const DiskSpace disk, look_at_disk(*source_, *target_, tables_, soon()));
  if (made.empty() && disk.unknown.empty()) return {};
  return lease_.update([&](JobRecord& record) {
    if (!made.empty()) record.info.history.push_back({utc_now(), "made on the target: " + list_of(made)});
    if (!disk.unknown.empty()) {
      record.info.history.push_back(
          {utc_now(), "the rows need about " + bytes_text(disk.needed) +
                          " on the target; how much is free is not known: " + disk.unknown});
    }
  });
}

Status Move::prepare() {
  const Status done = prepare_tables();
  if (done || !lease_.go_on(true)) return done;
  // Made, dropped or renamed in this very moment: once more, in the same state.
  if (done.error().sqlstate == kTablesChanged) return {};
  if (done.error().sqlstate != "42P01") return done;
  const std::string before = std::exchange(version_, "");
  source_.reset();
  return connect_source() && version_ != before ? Status() : done;
}

Status Move::prepare_tables() {
  KG_CHECK(connect());
  KG_CHECK(wait_for_leftovers());
  KG_CHECK(upgrade_shards());
  KG_CHECK(drop_following());
  if (work().arrived) {
    KG_CHECK(take_away_guard());  // COPY is slower into a table with such triggers, whether they fire or not
    KG_CHECK(delete_what_arrived());
    KG_CHECK(lease_.update([](JobRecord& record) { record.work.arrived = false; }));
  }
  KG_CHECK(take_tables_of_now());
  KG_CHECK(check_unchanged(*stored_.map));
  KG_CHECK(check_missing());
  const MoveMode mode = lease_.record().info.request.mode;
  KG_CHECK(make_tables());
  KG_TRY(const auto reasons, reasons_against(*source_, *target_, tables_, mode, false, soon()));
  if (!reasons.empty()) return fail(refusal(reasons));
  KG_CHECK(hide());
  KG_TRY(auto here, number_tables(*source_));
  // What has been dropped is to be known as such also the next time.
  for (const NumberedTable& gone : work().here) {
    const auto same = [&gone](const auto& each) { return each == gone.table; };
    if (std::ranges::any_of(work().tables, same) && std::ranges::none_of(here, same, &NumberedTable::table))
      here.push_back(gone);
  }
  KG_TRY(auto there, number_tables(*target_));
  KG_TRY(const std::string version_there, version_of(*target_, tables_, soon()));
  const auto known = [&](JobRecord& record) {
    record.info.history.insert(record.info.history.end() - 1, marks_.begin(), marks_.end());
    record.work.version = version_;
    record.work.version_there = version_there;
    record.work.here = std::move(here);
    record.work.there = std::move(there);
  };
  if (!online()) {
    KG_CHECK(lease_.update([&known](JobRecord& record) {
      to(JobState::kFenced)(record);
      record.work.fenced = true;
      known(record);
    }));
    marks_.clear();
    return {};
  }
  if (!tables_.empty()) KG_CHECK(follow_from_here());
  KG_CHECK(lease_.update([&known](JobRecord& record) {
    to(JobState::kCopying)(record);
    record.work.arrived = true;
    known(record);
  }));
  marks_.clear();
  failpoint("move: prepared");
  return {};
}

// How many rows there are to copy: counted, or as the planner thinks where counting would take long.
Status Move::estimate() {
  double rows = 0;
  for (const MovedTable& table : tables_) {
    KG_TRY(const auto plan,
           source_->query("EXPLAIN SELECT FROM " + table.name + " WHERE " + table.inside, {}, soon()));
    const std::string& line = *plan.at(0).at(0);
    const auto at = line.find("rows=");
    const double expected = at == std::string::npos ? 0 : std::atof(line.c_str() + at + 5);
    rows += expected;
    if (expected > kCountedRowsMax) continue;
    // The planner may know nothing of the table yet.
    KG_TRY(const auto counted,
           source_->query("SELECT count(*) FROM (SELECT FROM " + table.name + " WHERE " + table.inside +
                              " LIMIT " + std::to_string(2 * kCountedRowsMax) + ") counted",
                          {}, soon()));
    rows += std::stod(*counted.at(0).at(0)) - expected;
  }
  lease_.start_progress(static_cast<std::uint64_t>(rows));
  return {};
}

// Tables that become others are noticed at once and not when all of it is copied in vain. A partition that is
// attached meanwhile is published with its table, and where it has no key nobody can update it before it is
// followed by all its columns.
Status Move::copy_watched(const CopyJob& copy) {
  std::atomic<bool> over{false};
  std::atomic<bool> others{false};
  auto watch = std::async(std::launch::async, [&] {
    while (online() && !over && !others) {
      const auto changed = tables_have_changed();
      if (!changed) return;  // the copy itself will meet it
      others = *changed;
      for (int n = 0; n < kWatchSlices && !over && !others; ++n) lease_.pause(kLook);
    }
  });
  const Status done = copy_rows(copy, lease_, [this, &others]() -> Status {
    if (others) return fail(kTablesChanged, kAltered);
    return lease_.go_on(true);
  });
  over = true;
  watch.wait();
  return done;
}

Status Move::copy() {
  const Status done = copy_and_subscribe();
  if (done) return done;
  // The snapshot may be gone: whoever tries again begins with a new one.
  slot_.reset();
  if (done.error().sqlstate == kTablesChanged) return copy_anew();
  return online() && lease_.go_on(true) && tables_are_others() ? copy_anew() : done;
}

Status Move::copy_and_subscribe() {
  KG_CHECK(connect());
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  const Shard& source = *stored_.map->shard(work().source);
  const Shard& target = *stored_.map->shard(work().target);
  if (online() && !tables_.empty() && !slot_) return lease_.update(to(JobState::kPreparing));
  std::optional<RawLink> frozen;
  std::string snapshot = slot_ ? slot_->snapshot : "";
  const RawLink::GoOn go_on = [this] { return lease_.go_on(true); };
  if (!online()) {
    if (work().arrived) KG_CHECK(delete_what_arrived());
    KG_CHECK(lease_.update([](JobRecord& record) { record.work.arrived = true; }));
    KG_TRY(frozen, RawLink::open(source, name, false, lease_, soon()));
    KG_TRY(const auto rows,
           frozen->run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SELECT pg_export_snapshot()", soon(),
                       go_on));
    snapshot = *rows.at(0).at(0);
  }
  KG_CHECK(estimate());
  const CopyJob copy{
      source, target, name, snapshot, &tables_, tuning_.tables_at_once, lease_.record().info.request.max_rate};
  if (!tables_.empty()) {
    KG_CHECK(copy_watched(copy));
    lease_.finish_progress();
    failpoint("move: copied");
    KG_CHECK(lease_.update([](JobRecord& record) {
      record.info.history.push_back(
          {utc_now(), "copied " + std::to_string(record.info.progress.rows) + " rows"});
    }));
    KG_CHECK(guard());
    KG_CHECK(verify_copy(snapshot));
  }
  KG_CHECK(lease_.go_on(true));
  if (!online()) {
    KG_CHECK(lease_.update([](JobRecord& record) { record.work.verified = true; }));
    return told_plainly(cut_over());
  }
  slot_.reset();
  if (!tables_.empty()) KG_CHECK(make_subscription(*target_, name, source.dsn, soon()));
  failpoint("move: subscribed");
  return lease_.update(to(JobState::kCatchingUp));
}

// The target's log says which and why; what is most likely can be seen from here.
Error Move::cannot_apply() {
  const std::string name = stored_.map->shard(work().target)->name;
  Error error{"55000", "shard \"" + name + "\" cannot apply the source's changes", "",
              "The log of its server says which and why. RESUME JOB when that is mended.", 0};
  const auto disk = look_at_disk(*source_, *target_, tables_, soon());
  if (disk && disk->free && *disk->free < kDiskFull) {
    error.sqlstate = "53100";
    error.message = "there is no room left on the disk of shard \"" + name + "\"";
    error.detail = bytes_text(*disk->free) + " are free in " + disk->where;
    error.hint = kMakeRoom;
  }
  return error;
}

// How long a change takes to the target now.
Result<milliseconds> Move::measure_lag(Deadline patience) {
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  const std::string mark = shardmap::random_uuid();
  const auto began = Clock::now();
  KG_CHECK(source_->run(mark_statement(lease_.id(), mark), {}, soon()));
  for (int n = 0;; ++n) {
    KG_TRY(const bool arrived, has_arrived(*target_, lease_.id(), mark, soon()));
    if (arrived) return std::chrono::duration_cast<milliseconds>(Clock::now() - began);
    KG_CHECK(lease_.go_on(true));
    if (n % 50 == 49) {
      KG_TRY(const auto errors, target_->query("SELECT coalesce(max(apply_error_count), 0) FROM "
                                               "pg_stat_subscription_stats WHERE subname = $1",
                                               {SqlValue::text(name)}, soon()));
      KG_TRY(const std::string lost, lost_of(*source_, *target_, following(), soon()));
      if (!lost.empty()) return fail(kFollowingLost, lost);
      if (std::stol(*errors[0][0]) >= kApplyErrorsMax) return fail(cannot_apply());
    }
    if (patience.passed())
      return fail(sqlstate::kQueryCanceled, "the target does not catch up with the source");
    lease_.pause(n < 20 ? milliseconds(2) : kLook);
  }
}

Status Move::catch_up() {
  KG_CHECK(connect());
  const auto began = Clock::now();
  while (!tables_.empty()) {
    if (tables_are_others()) return copy_anew();
    auto round = compare_changed();
    if (!round) {
      KG_TRY(const bool anew, begun_anew());
      // What was lost and is there again is no reason to give up.
      return anew || round.error().sqlstate == kFollowingLost ? Status() : fail(round.error());
    }
    const auto turns = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began).count() / 10;
    if (round->lag <= tuning_.lag_max * (1 + turns) &&
        round->left <= static_cast<std::size_t>(tuning_.rows_left_max * (1 + turns)) &&
        round->takes <= tuning_.compare_max * (1 + turns))
      break;
    lease_.pause(kLook);
  }
  KG_CHECK(lease_.update([](JobRecord& record) {
    to(JobState::kFenced)(record);
    record.work.fenced = true;
  }));
  failpoint("move: caught up");
  return {};
}

Status Move::publish() {
  KG_CHECK(look_at_map());
  failpoint("move: committed");
  if (!work().published) {
    if (!target_ || !target_->good()) KG_CHECK(connect_target());
    auto opened = std::async(std::launch::async, [this] { return open_guard(*target_, lease_.id(), soon()); });
    // Nobody reads on the source any more who could miss what is written from now on.
    const auto seen = wait_until_seen(store_, stored_.map->epoch(), Deadline::in(tuning_.routers_patience));
    KG_CHECK(opened.get());
    if (!seen) return fail(seen.error());
    mark("seen by all routers");
    const auto decide = [this](const ShardMap& map) -> Result<MapEdit> {
      const auto shardlet = map.shardlet(work().shardlet);
      if (!shardlet || shardlet->state != ShardletState::kHeld) return MapEdit{};
      return MapEdit{edit::AlterShardlet{work().shardlet, {}, {}, work().prior}};
    };
    KG_TRY(stored_, lease_.commit(
                        map_, decide, [](JobRecord& record) { record.work.published = true; }, false, soon()));
  }
  mark("online");
  failpoint("move: online");
  KG_CHECK(connect());
  KG_TRY(const auto now, source_->query("SELECT clock_timestamp()", {}, soon()));
  KG_CHECK(step_shards(true, true));
  KG_CHECK(settle_fence(*source_, lease_.id(), soon()));
  failpoint("move: settled");
  const std::string at = *now[0][0];
  return lease_.update([&](JobRecord& record) {
    // Among what has been written meanwhile, "committed" say, in the order of time.
    auto& history = record.info.history;
    const auto marks = history.insert(history.end(), marks_.begin(), marks_.end());
    std::inplace_merge(history.begin(), marks, history.end(),
                       [](const JobEvent& a, const JobEvent& b) { return a.at < b.at; });
    to(JobState::kCleaning)(record);
    record.work.committed_at = at;
  });
}

Status Move::clean(const JobLease::Change& last) {
  KG_CHECK(connect());
  failpoint("move: cleaning");
  // What follows the source goes first: it keeps the source's log from being recycled.
  KG_CHECK(drop_following());
  KG_CHECK(take_away_guard());
  KG_CHECK(restore_what_was());
  failpoint("move: following dropped");
  KG_TRY(const auto dead,
         wait_until_taken(store_, stored_.map->epoch(), Deadline::in(tuning_.routers_patience)));
  if (!dead.empty()) KG_CHECK(send_away_the_dead(work().committed_at));
  KG_CHECK(delete_rows_on(*source_, work().source, work().here));
  failpoint("move: cleaned");
  KG_CHECK(take_away_fence());
  failpoint("move: fence dropped");
  const shardmap::ShardId source = work().source;
  KG_TRY(stored_,
         lease_.commit(
             map_, [this](const ShardMap&) { return Result<MapEdit>(MapEdit{edit::RevealRanges{job_key()}}); },
             [this, &last](JobRecord& record) {
               leave_for_later(record);
               record.work = {};
               last(record);
             },
             false, soon()));
  // A recoverer does it when we cannot.
  (void)map_.bring_into_step(stored_, source, soon());
  return {};
}

Status Move::undo() {
  if (work().shardlet.empty()) return {};
  // What has been dropped meanwhile, shard or map, has nothing of ours any more.
  KG_TRY(stored_, map_.newest(soon()));
  if (work().hidden || work().fenced || work().arrived) {
    KG_CHECK(open_source());
    if (work().fenced) KG_CHECK(lower_fence());
    failpoint("undo: fence down");
    if (source_) KG_CHECK(take_away_fence());
    const Status target = open_target();
    KG_CHECK(drop_following());
    if (source_) KG_CHECK(restore_what_was());
    failpoint("undo: source as it was");
    KG_CHECK(target);
    if (target_ && work().arrived) KG_CHECK(delete_what_arrived());
    if (target_) KG_CHECK(take_away_guard());
    failpoint("undo: target as it was");
  }
  const shardmap::ShardId target = work().target;
  KG_TRY(stored_,
         lease_.commit(
             map_, [this](const ShardMap&) { return Result<MapEdit>(MapEdit{edit::RevealRanges{job_key()}}); },
             [this](JobRecord& record) {
               leave_for_later(record);
               record.work = {};
             },
             false, soon()));
  (void)map_.bring_into_step(stored_, target, soon());
  return {};
}

}  // namespace kintsugi::splitmerge
