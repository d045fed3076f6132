#include "shardmap/map_change.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/sql_quote.h"
#include "shardmap/failpoint.h"
#include "shardmap/json.h"
#include "shardmap/local_map.h"
#include "shardmap/pg_session.h"
#include "shardmap/placing.h"
#include "shardmap/table_check.h"

namespace kintsugi::shardmap {
namespace {

using std::chrono::milliseconds;

constexpr const char* kSync = "sync";      // key: a shard's number; body: the epoch that it must reach
constexpr const char* kIntent = "intent";  // key: a shard's uuid; body: what is being done with its database
constexpr const char* kAdopt =
    "adopt";  // key: a shard's uuid; its database becomes this store's, and then follows
constexpr milliseconds kShardDeadline{5000};
constexpr milliseconds kRecoverDeadline{300000};  // a local map may have a million entries
constexpr int kAttempts = 20;

// What is to be done with a database that is becoming a shard, or no longer is one.
std::string intent_body(const char* action, const std::string& dsn, const std::string& shard) {
  Json json = Json::object();
  json["do"] = action;
  json["dsn"] = dsn;
  json["shard"] = shard;
  json["nonce"] = random_uuid();  // two intents are never the same note
  return json.dump();
}

Deadline shard_deadline(Deadline deadline) {
  return deadline.sooner(Deadline::in(kShardDeadline));
}

// What is enough for a local map of any size, at a millisecond an entry: of those that are there, and may have
// to go, and of those that are to be there.
Deadline time_for(LocalMap& local, const ShardMap& map, ShardId id, Deadline deadline) {
  std::size_t entries = 0;
  for (const Mapping* mapping : map.mappings()) {
    for (const auto& [shard, count] : mapping->shards()) {
      if (shard == id) entries += count;
    }
  }
  // None when its schema is lost; that is told by who reads it.
  const auto there = local.session().query("SELECT count(*) FROM kintsugi.owned", {}, shard_deadline(deadline));
  if (there) entries += std::stoull(there->at(0).at(0).value_or("0"));
  return deadline.sooner(Deadline::in(kShardDeadline + milliseconds(entries)));
}

Error unreachable(const std::string& shard, const Error& cause) {
  if (cause.sqlstate != sqlstate::kConnectionFailure) return cause;
  return {.sqlstate = std::string(sqlstate::kShardUnreachable),
          .message = "shard \"" + shard + "\" cannot be reached",
          .detail = cause.message};
}

struct Concerned {
  const ShardMap& before;
  const ShardMap& after;
  std::set<ShardId> shards;

  void all() {
    for (const Shard* shard : after.shards()) shards.insert(shard->id);
  }
  void shardlet(const std::string& name) {
    for (const ShardMap* map : {&before, &after}) {
      if (const auto found = map->shardlet(name)) shards.insert(found->shard);
    }
  }
  void operator()(const edit::CreateShardlet& op) { shardlet(op.name); }
  void operator()(const edit::DropShardlet& op) { shardlet(op.name); }
  void operator()(const edit::AlterShardlet& op) {
    shardlet(op.name);
    if (op.new_name) shardlet(*op.new_name);
  }
  void operator()(const edit::CreateMap&) { all(); }
  void operator()(const edit::DropMap&) { all(); }
  void operator()(const edit::PutTable&) { all(); }
  void operator()(const edit::DropTable&) { all(); }
  void operator()(const edit::CreateShard& op) {
    if (const Shard* shard = after.shard_named(op.name)) shards.insert(shard->id);
  }
  void operator()(const edit::AlterShard& op) {
    const std::string& name = op.new_name ? *op.new_name : op.name;
    const Shard* shard = after.shard_named(name);
    if (shard != nullptr) shards.insert(shard->id);
  }
  void operator()(const edit::SetHome&) { all(); }
  // What nobody's epoch is above is told to all.
  void operator()(const edit::RaiseEpoch&) { all(); }
  // Its epoch tells a router in careful mode that its fan-outs there must leave something out, or no longer.
  void operator()(const edit::HideRange& op) {
    if (const Shard* shard = after.shard_named(op.shard)) shards.insert(shard->id);
  }
  void operator()(const edit::RevealRanges& op) {
    for (const Mapping* mapping : before.mappings()) {
      for (const HiddenRange& range : mapping->hidden()) {
        if (range.job == op.job) shards.insert(range.shard);
      }
    }
  }
  template <class Other>
  void operator()(const Other&) {}
};

// 2BP01 where a sharded table has rows on a shard that has no shardlets.
Status check_empty(const ShardMap& map, const Shard& shard, Deadline deadline) {
  auto session = PgSession::connect(shard.dsn, true, deadline);
  if (!session) {
    log::warning("a shard is dropped that nobody can look at",
                 {{"shard", shard.name}, {"reason", session.error().message}});
    return {};
  }
  std::string tables;
  for (const Mapping* mapping : map.mappings()) {
    for (const Table* table : map.tables_of(mapping->name())) {
      const std::string name = quote_identifier(table->schema) + "." + quote_identifier(table->name);
      KG_TRY(const auto there,
             (*session)->query("SELECT to_regclass($1) IS NOT NULL", {SqlValue::text(name)}, deadline));
      if (there.at(0).at(0) != "t") continue;
      KG_TRY(const auto rows, (*session)->query("SELECT EXISTS (SELECT FROM " + name + ")", {}, deadline));
      if (rows.at(0).at(0) == "t") tables += (tables.empty() ? "" : ", ") + table->display();
    }
  }
  if (tables.empty()) return {};
  return fail(Error{
      "2BP01", "shard \"" + shard.name + "\" has no shardlets and is not empty: there are rows in " + tables,
      "They were written past the routers, or their shardlet was dropped.",
      "Look at them there, and delete them or bring them where their keys belong.", 0});
}

}  // namespace

std::vector<ShardId> concerned_shards(const ShardMap& before, const ShardMap& after, const MapEdit& edit) {
  Concerned concerned{before, after, {}};
  for (const edit::Operation& op : edit.operations) std::visit(concerned, op);
  std::vector<ShardId> ids;
  for (const ShardId id : concerned.shards) {
    // A shard without an identity has no local map (yet).
    const Shard* shard = after.shard(id);
    if (shard != nullptr && !shard->identity.empty()) ids.push_back(id);
  }
  return ids;
}

Result<StoredMap> MapChange::newest(Deadline deadline) {
  if (known_.map && !known_.token.empty()) {
    KG_TRY(const auto edits, store_.edits_since(known_.map->epoch(), known_.token, deadline));
    bool good = edits.has_value();
    StoredMap next = known_;
    for (std::size_t i = 0; good && i < edits->size(); ++i) {
      auto map = apply(*next.map, (*edits)[i].edit);
      good = map && (*map)->epoch() == (*edits)[i].epoch;
      if (good) next = {*std::move(map), (*edits)[i].token};
    }
    if (good) return known_ = std::move(next);
  }
  KG_TRY(known_, store_.load(deadline));
  return known_;
}

Result<StoredMap> MapChange::commit(const Decide& decide, const std::vector<NoteChange>& notes,
                                    Deadline deadline) {
  Error last;
  for (int attempt = 0; attempt < kAttempts && !deadline.passed(); ++attempt) {
    KG_TRY(const StoredMap base, newest(deadline));
    KG_TRY(const MapEdit edit, decide(*base.map));
    KG_TRY(const MapPtr next, apply(*base.map, edit));
    std::vector<NoteChange> all = notes;
    for (const ShardId id : concerned_shards(*base.map, *next, edit))
      all.push_back({kSync, std::to_string(id), std::to_string(next->epoch()), {}});
    failpoint("before commit");
    auto done = store_.commit(base, edit, all, deadline);
    if (done) {
      failpoint("after commit");
      return known_ = *std::move(done);
    }
    last = done.error();
    // A note that we had expected is another: that is no race for the epoch, and trying again would not help.
    if (last.sqlstate != sqlstate::kSerializationFailure || last.message.starts_with("the note")) break;
  }
  if (last.message.empty()) return fail(sqlstate::kQueryCanceled, "the shard map was not changed in time");
  return fail(last);
}

Result<StoredMap> MapChange::commit_and_step(const Decide& decide, const std::vector<NoteChange>& notes,
                                             Deadline deadline) {
  std::vector<ShardId> shards;
  const Decide noted = [&](const ShardMap& map) -> Result<MapEdit> {
    KG_TRY(MapEdit edit, decide(map));
    KG_TRY(const MapPtr next, apply(map, edit));
    shards = concerned_shards(map, *next, edit);
    return edit;
  };
  KG_TRY(StoredMap done, commit(noted, notes, deadline));
  for (const ShardId id : shards) {
    const Status stepped = bring_into_step(done, id, std::to_string(done.map->epoch()), deadline);
    if (!stepped) {
      log::warning("a shard's local map will follow later",
                   {{"shard", done.map->shard(id)->name}, {"reason", stepped.error().message}});
    }
  }
  return done;
}

Status MapChange::bring_into_step(const StoredMap& stored, ShardId id, Deadline deadline) {
  KG_TRY(const auto notes, store_.notes(kSync, deadline));
  std::string note = std::to_string(stored.map->epoch());
  for (const Note& each : notes) {
    if (each.key == std::to_string(id) && std::stoull(each.body) <= stored.map->epoch()) note = each.body;
  }
  return bring_into_step(stored, id, note, deadline);
}

Status MapChange::bring_into_step(const StoredMap& stored, ShardId id, const std::string& note,
                                  Deadline deadline) {
  const Shard* shard = stored.map->shard(id);
  if (shard != nullptr && !shard->identity.empty()) {
    auto local = LocalMap::connect(shard->dsn, shard_deadline(deadline));
    if (!local) return fail(unreachable(shard->name, local.error()));
    KG_CHECK(local->bring_to(*stored.map, *shard, time_for(*local, *stored.map, id, deadline)));
    failpoint("after local map");
  }
  // A later note for this shard stays; that is no error here.
  const Status dropped = store_.put_notes({{kSync, std::to_string(id), {}, note}}, deadline);
  if (!dropped && dropped.error().sqlstate != sqlstate::kSerializationFailure) return dropped;
  return {};
}

Result<MapPtr> MapChange::edit(const Decide& decide, Deadline deadline) {
  KG_TRY(const StoredMap done, commit_and_step(decide, {}, deadline));
  return done.map;
}

Result<MapPtr> MapChange::edit(const MapEdit& edit, Deadline deadline) {
  return this->edit([&edit](const ShardMap&) { return Result<MapEdit>(edit); }, deadline);
}

Result<MapPtr> MapChange::create_shard(const NewShard& shard, Deadline deadline) {
  return create_shards(
      {shard}, [](const ShardMap&) { return Result<MapEdit>(MapEdit{}); }, deadline);
}

// A claim of our own that nobody is working on, and no shard in the map, is left over from a maker who slept
// while he was given up, and died when he woke: it may go. Any other says whose it is.
Status MapChange::make_free(const ShardMap& map, const NewShard& shard, const std::string& identity,
                            LocalMap& local, Deadline deadline) {
  KG_TRY(const auto found, local.identity(shard_deadline(deadline)));
  if (!found) return {};
  KG_TRY(const bool left_over, claim_is_left_over(map, *found, deadline));
  if (left_over) return local.release(found->store_id, found->shard_id, shard_deadline(deadline));
  return local.claim(map.store_id(), identity, shard.name, shard_deadline(deadline));
}

Result<MapPtr> MapChange::create_shards(const std::vector<NewShard>& shards, const Decide& rest,
                                        Deadline deadline) {
  KG_TRY(const StoredMap base, store_.load(deadline));
  MapEdit making;
  std::vector<NoteChange> begun, ended;
  for (const NewShard& shard : shards) {
    const std::string identity = random_uuid();
    const std::string intent = intent_body("create", shard.dsn, shard.name);
    making.operations.emplace_back(edit::CreateShard{shard.name, shard.dsn, identity, shard.state});
    begun.push_back({kIntent, identity, intent, ""});
    ended.push_back({kIntent, identity, {}, intent});
  }
  const Decide decide = [&making, &rest](const ShardMap& map) -> Result<MapEdit> {
    KG_TRY(MapEdit others, rest(map));
    MapEdit whole = making;
    std::move(others.operations.begin(), others.operations.end(), std::back_inserter(whole.operations));
    return whole;
  };
  KG_TRY(const MapEdit edit, decide(*base.map));
  KG_CHECK(apply(*base.map, edit));  // a name that is taken is told before anything is touched
  std::vector<LocalMap> locals;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto local = LocalMap::connect(shards[i].dsn, shard_deadline(deadline));
    if (!local) return fail(unreachable(shards[i].name, local.error()));
    KG_CHECK(make_free(*base.map, shards[i], begun[i].key, *local, deadline));
    locals.push_back(*std::move(local));
  }
  const auto undo = [&](const Error& why) {
    for (std::size_t i = 0; i < locals.size(); ++i) {
      (void)give_back(begun[i].key, *begun[i].body, deadline);
      (void)locals[i].release(base.map->store_id(), begun[i].key, shard_deadline(deadline));
    }
    return fail(why);
  };
  KG_CHECK(store_.put_notes(begun, deadline));
  failpoint("create shard: after intent");
  for (std::size_t i = 0; i < locals.size(); ++i) {
    const Status claimed =
        locals[i].claim(base.map->store_id(), begun[i].key, shards[i].name, shard_deadline(deadline));
    if (!claimed) return undo(unreachable(shards[i].name, claimed.error()));
    failpoint("create shard: after claim");
  }
  // Together: the shards are in the map and the intents are gone. If a recoverer took one to be abandoned, this
  // fails.
  auto done = commit_and_step(decide, ended, deadline);
  // Whether it was committed is known unless the store is away; then the notes stay and a recoverer will see.
  if (!done && done.error().sqlstate != sqlstate::kMapReadOnly) return undo(done.error());
  if (!done) return fail(done.error());
  return done->map;
}

Result<int> MapChange::take_over(const Decide& decide, const std::vector<ShardIdentity>& others,
                                 Deadline deadline) {
  std::vector<NoteChange> notes;
  for (const ShardIdentity& other : others) notes.push_back({kAdopt, other.shard_id, other.store_id, {}});
  KG_CHECK(commit(decide, notes, deadline));
  // Of shards that others are making, nothing: they are at work.
  return recover(milliseconds::max(), deadline);
}

// The shard of this note is in the map by the same commit. When it no longer is, nothing is to be done.
Status MapChange::adopt(const StoredMap& stored, const Note& note, Deadline deadline) {
  for (const Shard* shard : stored.map->shards()) {
    if (shard->identity != note.key) continue;
    auto local = LocalMap::connect(shard->dsn, deadline);
    if (!local) return fail(unreachable(shard->name, local.error()));
    KG_CHECK(local->adopt(stored.map->store_id(), note.key, shard->name, deadline));
    failpoint("adopt: after adoption");
  }
  return store_.put_notes({{kAdopt, note.key, {}, note.body}}, deadline);
}

Result<bool> MapChange::claim_is_left_over(const ShardMap& map, const ShardIdentity& found, Deadline deadline) {
  if (found.store_id != map.store_id()) return false;
  for (const Shard* shard : map.shards()) {
    if (shard->identity == found.shard_id) return false;
  }
  KG_TRY(const auto intents, store_.notes(kIntent, deadline));
  return std::none_of(intents.begin(), intents.end(),
                      [&found](const Note& note) { return note.key == found.shard_id; });
}

Result<MapPtr> MapChange::drop_shard(const std::string& name, Deadline deadline) {
  KG_TRY(const StoredMap base, store_.load(deadline));
  const Shard* shard = base.map->shard_named(name);
  if (shard == nullptr) return fail(sqlstate::kUndefinedObject, "shard \"" + name + "\" does not exist");
  KG_TRY([[maybe_unused]] const MapPtr without, apply(*base.map, {edit::DropShard{name}}));
  // What is in a database that was never made ready has been there before, and is nobody's but its owner's.
  if (shard->state != ShardState::kPreparing)
    KG_CHECK(check_empty(*base.map, *shard, shard_deadline(deadline)));
  std::vector<NoteChange> notes;
  const std::string intent = intent_body("drop", shard->dsn, name);
  if (!shard->identity.empty()) notes.push_back({kIntent, shard->identity, intent, {}});
  notes.push_back({kSync, std::to_string(shard->id), {}, {}});
  const ShardId id = shard->id;
  KG_TRY(const StoredMap done, commit_and_step(
                                   [&name, id](const ShardMap& map) -> Result<MapEdit> {
                                     const Shard* now = map.shard_named(name);
                                     if (now == nullptr || now->id != id) {
                                       return fail(sqlstate::kUndefinedObject,
                                                   "shard \"" + name + "\" does not exist");
                                     }
                                     return MapEdit{edit::DropShard{name}};
                                   },
                                   notes, deadline));
  failpoint("drop shard: after commit");
  if (!shard->identity.empty()) {
    if (const Status given = give_back(shard->identity, intent, shard_deadline(deadline)); !given) {
      log::warning("a dropped shard's database will be given back later",
                   {{"shard", name}, {"reason", given.error().message}});
    }
  }
  return done.map;
}

namespace {

bool owns_the_same(const LocalContents& one, const LocalContents& other) {
  return std::equal(
      one.mappings.begin(), one.mappings.end(), other.mappings.begin(), other.mappings.end(),
      [](const LocalMapping& a, const LocalMapping& b) { return a.name == b.name && a.owned == b.owned; });
}

// A backup that is older than the map has rows that have gone elsewhere since: statements over all shards would
// count them twice.
Status has_nothing_of_others(LocalMap& local, const ShardMap& map, const Shard& shard, Deadline deadline) {
  KG_TRY(const LocalContents contents, local.read(deadline));
  if (owns_the_same(contents, contents_of(map, shard))) return {};
  KG_TRY(const std::string row, row_of_others(local, map, shard, deadline));
  if (row.empty()) return {};
  return fail(Error{
      .sqlstate = "55000",
      .message = "the database has rows of other shards: " + row,
      .detail = "It is older than the shard map, and statements over all shards would see such rows twice.",
      .hint = "Delete them in that database, in each sharded table whatever is not of shard \"" + shard.name +
              "\" now (SHOW SHARDLETS), then attach it."});
}

}  // namespace

Result<MapPtr> MapChange::reattach_shard(const std::string& name, const std::string& dsn, Deadline deadline) {
  KG_TRY(const StoredMap base, store_.load(deadline));
  const Shard* shard = base.map->shard_named(name);
  if (shard == nullptr) return fail(sqlstate::kUndefinedObject, "shard \"" + name + "\" does not exist");
  auto local = LocalMap::connect(dsn, shard_deadline(deadline));
  if (!local) return fail(unreachable(name, local.error()));
  KG_TRY(const auto found, local->identity(shard_deadline(deadline)));
  if (!found) {
    return fail(
        "55000", "the database there is no shard: it has no schema kintsugi, or nothing in it says whose it is",
        "A copy of a shard needs that schema too (pg_basebackup, or pg_dump of all of the shard's database).");
  }
  if (found->store_id != base.map->store_id() || found->shard_id != shard->identity) {
    return fail("55000", "the database is shard \"" + found->shard_name + "\" (identity " + found->shard_id +
                             "), not shard \"" + name + "\" (identity " + shard->identity + ")");
  }
  KG_CHECK(has_nothing_of_others(*local, *base.map, *shard, deadline));
  return edit({edit::AlterShard{name, {}, dsn, {}, {}}}, deadline);
}

// The database of an intent is given back, unless its shard is in the map after all.
Status MapChange::give_back(const std::string& key, const std::string& body, Deadline deadline) {
  KG_TRY(const Json json, parse_json(body));
  std::string now = body;
  if (json.value("do", "") == "create") {
    // From here on the one who makes the shard, should he still be there, cannot commit.
    now = intent_body("undo", json.value("dsn", ""), json.value("shard", ""));
    KG_CHECK(store_.put_notes({{kIntent, key, now, body}}, deadline));
    failpoint("give back: after taking over");
  }
  KG_TRY(const StoredMap stored, store_.load(deadline));
  const auto shards = stored.map->shards();
  const bool wanted =
      std::any_of(shards.begin(), shards.end(), [&key](const Shard* shard) { return shard->identity == key; });
  if (!wanted) {
    auto local = LocalMap::connect(json.value("dsn", ""), shard_deadline(deadline));
    if (!local) return fail(unreachable(json.value("shard", ""), local.error()));
    KG_CHECK(local->release(stored.map->store_id(), key, shard_deadline(deadline)));
    failpoint("give back: after release");
  }
  const Status dropped = store_.put_notes({{kIntent, key, {}, now}}, deadline);
  if (!dropped && dropped.error().sqlstate != sqlstate::kSerializationFailure) return dropped;
  return {};
}

Result<int> MapChange::recover(milliseconds patience, Deadline deadline) {
  int remaining = 0;
  KG_TRY(const auto adoptions, store_.notes(kAdopt, deadline));
  KG_TRY(const auto syncs, store_.notes(kSync, deadline));
  KG_TRY(const auto intents, store_.notes(kIntent, deadline));
  if (!syncs.empty() || !adoptions.empty()) {
    KG_TRY(const StoredMap stored, store_.load(deadline));
    for (const Note& note : adoptions) (void)adopt(stored, note, shard_deadline(deadline));
    for (const Note& note : syncs) {
      // Notes that are newer than the map that we have just read are for the next time.
      if (std::stoull(note.body) > stored.map->epoch() ||
          !bring_into_step(stored, static_cast<ShardId>(std::stoul(note.key)), note.body, deadline)) {
        ++remaining;
      }
    }
  }
  for (const Note& note : intents) {
    const auto json = parse_json(note.body);
    const bool making = json && json->value("do", "") == "create";
    if ((making && note.age_ms < patience.count()) || !give_back(note.key, note.body, deadline)) ++remaining;
  }
  KG_TRY(const int placings, clear_placings(store_, *this, deadline));
  return remaining + placings;
}

Recoverer::Recoverer(std::string store, std::string directory, milliseconds every, milliseconds patience)
    : store_(std::move(store)),
      directory_(std::move(directory)),
      every_(every),
      patience_(patience),
      thread_([this] { run(); }) {}

Recoverer::~Recoverer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Recoverer::run() {
  std::unique_ptr<MapStore> store;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    if (!store) {
      if (auto opened = open_store(store_, directory_, Deadline::in(milliseconds(5000))))
        store = *std::move(opened);
    }
    if (store) (void)MapChange(*store).recover(patience_, Deadline::in(kRecoverDeadline));
    lock.lock();
    changed_.wait_for(lock, every_, [this] { return stop_; });
  }
}

}  // namespace kintsugi::shardmap
