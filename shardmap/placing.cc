#include "shardmap/placing.h"

#include <algorithm>
#include <map>
#include <thread>

#include "base/log.h"
#include "base/sql_quote.h"
#include "shardmap/failpoint.h"
#include "shardmap/json.h"
#include "shardmap/key_predicate.h"
#include "shardmap/local_map.h"
#include "shardmap/lock_attempt.h"
#include "shardmap/map_feed.h"
#include "shardmap/pg_session.h"
#include "shardmap/table_check.h"

namespace kintsugi::shardmap {
namespace {

using std::chrono::milliseconds;

constexpr const char* kPlacing = "placing";  // key: a table, quoted; body: whether the map has it by now
constexpr milliseconds kShardDeadline{5000};
constexpr milliseconds kLockFirst{50};  // writers queue behind us for so long
constexpr milliseconds kLockMost{1600};
constexpr milliseconds kLockPatience{20000};
constexpr milliseconds kLowerPatience{2000};
constexpr milliseconds kRoutersPatience{3000};
constexpr milliseconds kRecoverPatience{200};
constexpr std::size_t kRangesMost = 64;  // in a trigger's condition

using Ranges = std::vector<KeyRange>;
using RangesByShard = std::map<ShardId, Ranges>;

Deadline soon(Deadline deadline) {
  return deadline.sooner(Deadline::in(kShardDeadline));
}

std::string qualified(const Table& table) {
  return quote_identifier(table.schema) + "." + quote_identifier(table.name);
}

// What each shard has of the map that the table comes into; neighbours are one range.
RangesByShard ranges_of(const ShardMap& map, const Table& table) {
  RangesByShard ranges;
  const Mapping* mapping = map.mapping(table.map);
  if (mapping == nullptr) return ranges;
  for (const ShardletView entry : mapping->entries()) {
    Ranges& of_shard = ranges[entry.shard()];
    if (!of_shard.empty() && !entry.high().empty() && of_shard.back().high == entry.low())
      of_shard.back().high = entry.high();
    else
      of_shard.push_back({std::string(entry.low()), std::string(entry.high())});
  }
  return ranges;
}

Result<LocalMap> connect(const Shard& shard, Deadline deadline) {
  auto local = LocalMap::connect(shard.dsn, soon(deadline));
  if (local) return local;
  return fail(sqlstate::kShardUnreachable, "shard \"" + shard.name + "\" cannot be reached", "",
              local.error().message);
}

Result<bool> has_table(LocalMap& local, const std::string& name, Deadline deadline) {
  KG_TRY(const auto rows,
         local.session().query("SELECT to_regclass($1) IS NOT NULL", {SqlValue::text(name)}, soon(deadline)));
  return rows.at(0).at(0) == "t";
}

// A session that has it is at work on the table; it goes with the session.
Result<bool> lock_for_placing(LocalMap& local, const std::string& name, Deadline deadline) {
  // Should this machine vanish, the server is not to wait for it for hours.
  KG_CHECK(local.session().script(
      "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3",
      soon(deadline)));
  KG_TRY(const auto rows,
         local.session().query("SELECT pg_try_advisory_lock(hashtextextended('kintsugi placing ' || $1, 0))",
                               {SqlValue::text(name)}, soon(deadline)));
  return rows.at(0).at(0) == "t";
}

std::string body_of(const Table& table, bool placed, const std::string& lock) {
  Json json = Json::object();
  json["schema"] = table.schema;
  json["table"] = table.name;
  json["placed"] = placed;
  json["lock"] = lock;            // the identity of the shard on which its maker has the lock
  json["nonce"] = random_uuid();  // two of them are never the same note
  return json.dump();
}

// ---- the guard on one shard ----

Result<bool> attempts(PgSession& session, const std::string& script, Deadline end) {
  for (milliseconds lock_timeout = kLockFirst;; lock_timeout = std::min(2 * lock_timeout, kLockMost)) {
    KG_TRY(const bool done, attempt_with_locks(session, script, lock_timeout, Deadline::in(kShardDeadline)));
    if (done) return true;
    if (end.sooner(Deadline::in(2 * lock_timeout)) == end) return false;
    std::this_thread::sleep_for(lock_timeout);
  }
}

// It refuses every write, or with `let_through` those rows alone that this is not true of.
std::string guard_of(const std::string& name, const std::string& let_through) {
  const std::string rows = "CREATE OR REPLACE TRIGGER kintsugi_fence_placing_rows BEFORE INSERT OR UPDATE";
  const std::string refuse = " EXECUTE FUNCTION kintsugi.refuse_placing()";
  const std::string always = "; ALTER TABLE " + name + " ENABLE ALWAYS TRIGGER kintsugi_fence_placing_";
  const std::string lock = "LOCK TABLE " + name + " IN SHARE ROW EXCLUSIVE MODE; ";
  if (!let_through.empty()) {
    return lock + "DROP TRIGGER IF EXISTS kintsugi_fence_placing_all ON " + name + "; " + rows + " ON " + name +
           " FOR EACH ROW WHEN ((" + let_through + ") IS NOT TRUE)" + refuse + always + "rows";
  }
  return lock + rows + " OR DELETE ON " + name + " FOR EACH ROW" + refuse + always +
         "rows; CREATE OR REPLACE TRIGGER kintsugi_fence_placing_all BEFORE TRUNCATE ON " + name +
         " FOR EACH STATEMENT" + refuse + always + "all";
}

Result<bool> lower_guard(LocalMap& local, const std::string& name, milliseconds patience, Deadline deadline) {
  KG_TRY(const bool there, has_table(local, name, deadline));
  if (!there) return true;
  KG_TRY(const auto triggers,
         local.session().query("SELECT FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname LIKE "
                               "'kintsugi#_fence#_placing#_%' ESCAPE '#'",
                               {SqlValue::text(name)}, soon(deadline)));
  if (triggers.empty()) return true;
  return attempts(local.session(),
                  "DROP TRIGGER IF EXISTS kintsugi_fence_placing_rows ON " + name +
                      "; DROP TRIGGER IF EXISTS kintsugi_fence_placing_all ON " + name,
                  deadline.sooner(Deadline::in(patience)));
}

// ---- one placing ----

class Placing {
 public:
  Placing(MapStore& store, MapChange& change, const Table& table)
      : store_(store), change_(change), table_(table), name_(qualified(table)) {}

  Result<MapPtr> run(const CheckRows& check, Deadline deadline) {
    KG_TRY(const StoredMap stored, change_.newest(deadline));
    KG_TRY([[maybe_unused]] const MapPtr then, apply(*stored.map, {edit::PutTable{table_}}));
    if (table_.kind == TableKind::kHome) return change_.edit({edit::PutTable{table_}}, deadline);
    KG_CHECK(check(*stored.map));
    KG_CHECK(connect_all(*stored.map, deadline));
    KG_TRY(const bool safe, nothing_can_go_wrong(*stored.map, deadline));
    if (safe) {
      return change_.edit(
          [&](const ShardMap& map) -> Result<MapEdit> {
            KG_CHECK(check_same(map));
            return MapEdit{edit::PutTable{table_}};
          },
          deadline);
    }
    KG_CHECK(announce(*stored.map, deadline));
    failpoint("place table: after note");
    const Result<StoredMap> placed = guarded(*stored.map, check, deadline);
    if (!placed) {
      // Whether it was committed is not known: then a recoverer will see.
      if (placed.error().sqlstate != sqlstate::kMapReadOnly) undo();
      return fail(placed.error());
    }
    failpoint("place table: after commit");
    finish(*placed, deadline);
    return placed->map;
  }

 private:
  struct There {
    const Shard shard;
    LocalMap local;
    bool has_table;
  };

  Status connect_all(const ShardMap& map, Deadline deadline) {
    ranges_ = ranges_of(map, table_);
    for (const Shard* shard : map.shards()) {
      KG_TRY(LocalMap local, connect(*shard, deadline));
      KG_TRY(const bool has, has_table(local, name_, deadline));
      there_.push_back({*shard, std::move(local), has});
    }
    return {};
  }

  // One shard has it all, and every row that there can be belongs there.
  Result<bool> nothing_can_go_wrong(const ShardMap& map, Deadline deadline) {
    if (there_.empty()) return true;
    if (table_.kind == TableKind::kReplicated) return there_.size() == 1;
    if (map.table(table_.schema, table_.name) != nullptr) return false;
    const auto home = std::find_if(there_.begin(), there_.end(), [&map](const There& each) {
      return map.home_shard() != nullptr && each.shard.id == map.home_shard()->id;
    });
    if (home == there_.end() || !home->has_table || !owns_every_key(*map.mapping(table_.map), home->shard))
      return false;
    std::string keys;
    for (const std::string& column : table_.key) keys += (keys.empty() ? "" : ", ") + quote_literal(column);
    KG_TRY(const auto rows,
           home->local.session().query("SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND "
                                       "NOT attnotnull AND attname IN (" +
                                           keys + ")",
                                       {SqlValue::text(name_)}, soon(deadline)));
    return rows.empty();
  }

  Status check_same(const ShardMap& map) const {
    const auto shards = map.shards();
    const bool same = shards.size() == there_.size() && ranges_of(map, table_) == ranges_ &&
                      std::all_of(there_.begin(), there_.end(), [&map](const There& each) {
                        const Shard* now = map.shard(each.shard.id);
                        return now != nullptr && now->dsn == each.shard.dsn;
                      });
    if (same) return {};
    return fail(sqlstate::kSerializationFailure,
                "the shard map was changed while the rows of table " + table_.display() + " were checked",
                "Repeat the statement.");
  }

  // Whoever has the lock may take over what stands under the table's name.
  Status announce(const ShardMap& map, Deadline deadline) {
    KG_TRY(const bool mine, lock_for_placing(there_.front().local, name_, deadline));
    if (!mine) {
      return fail("55006", "table " + table_.display() + " is just being placed by somebody else",
                  "Repeat the statement when that has ended.");
    }
    KG_TRY(const auto notes, store_.notes(kPlacing, deadline));
    std::string before;
    for (const Note& note : notes)
      if (note.key == name_) before = note.body;
    note_ = body_of(table_, map.table(table_.schema, table_.name) != nullptr, there_.front().shard.identity);
    return store_.put_notes({{kPlacing, name_, note_, before}}, deadline);
  }

  Result<StoredMap> guarded(const ShardMap& map, const CheckRows& check, Deadline deadline) {
    for (There& each : there_) {
      if (!each.has_table) continue;
      KG_CHECK(upgrade_local_map(each.local.session(), soon(deadline)));
      // Where the table's rows are written until now, those that stay there may go on.
      const bool goes_on = map.table(table_.schema, table_.name) == nullptr && map.home_shard() != nullptr &&
                           each.shard.id == map.home_shard()->id;
      KG_TRY(const std::string let, goes_on ? rows_of(map, each) : Result<std::string>(""));
      KG_TRY(const bool raised, attempts(each.local.session(), guard_of(name_, let),
                                         deadline.sooner(Deadline::in(kLockPatience))));
      if (!raised) {
        return fail("55P03",
                    "transactions that write to table " + table_.display() + " on shard \"" + each.shard.name +
                        "\" do not end",
                    "Look for long transactions there, prepared ones too; then repeat the statement.");
      }
      failpoint("place table: guarded");
    }
    KG_CHECK(check(map));
    const std::string placed = body_of(table_, true, there_.front().shard.identity);
    KG_TRY(StoredMap done, change_.commit(
                               [this](const ShardMap& now) -> Result<MapEdit> {
                                 KG_CHECK(check_same(now));
                                 return MapEdit{edit::PutTable{table_}};
                               },
                               {{kPlacing, name_, placed, note_}}, deadline));
    note_ = placed;
    return done;
  }

  // A condition that the rows meet that belong on this shard; none when it would be too long, or there is none.
  Result<std::string> rows_of(const ShardMap& map, const There& each) const {
    if (table_.kind != TableKind::kSharded) return std::string();
    const auto found = ranges_.find(each.shard.id);
    const Ranges ranges = found == ranges_.end() ? Ranges() : found->second;
    if (ranges.size() > kRangesMost) return std::string();
    std::vector<std::string> columns;
    for (const std::string& column : table_.key) columns.push_back("NEW." + quote_identifier(column));
    return inside_ranges(*map.mapping(table_.map), columns, ranges);
  }

  // Nobody writes a row where it does not belong once all new statements go by this map; what is older than
  // that may still.
  void finish(const StoredMap& stored, Deadline deadline) {
    const Status done = lower(stored, deadline);
    if (done) return;
    log::warning("the guard of a table that was placed will be taken away later",
                 {{"table", table_.display()}, {"reason", done.error().message}});
  }

  Status lower(const StoredMap& stored, Deadline deadline) {
    for (const There& each : there_) KG_CHECK(change_.bring_into_step(stored, each.shard.id, deadline));
    const std::uint64_t epoch = stored.map->epoch();
    const auto within = [deadline](milliseconds patience) { return deadline.sooner(Deadline::in(patience)); };
    KG_CHECK(wait_until_seen(store_, epoch, within(kRoutersPatience)));
    if (!wait_until_taken(store_, epoch, within(kRecoverPatience))) {
      for (There& each : there_) {
        KG_TRY(const std::string let, rows_of(*stored.map, each));
        if (each.has_table && !let.empty())
          KG_CHECK(attempts(each.local.session(), guard_of(name_, let), within(kLowerPatience)));
      }
      failpoint("place table: relaxed");
      KG_CHECK(wait_until_taken(store_, epoch, within(kRoutersPatience)));
    }
    return lower_all(deadline);
  }

  Status lower_all(Deadline deadline) {
    for (There& each : there_) {
      KG_TRY(const bool gone, lower_guard(each.local, name_, kLowerPatience, deadline));
      if (!gone) return fail("55P03", "transactions on shard \"" + each.shard.name + "\" have the table");
      failpoint("place table: lowered");
    }
    return store_.put_notes({{kPlacing, name_, {}, note_}}, deadline);
  }

  void undo() {
    if (const Status done = lower_all(Deadline::in(kShardDeadline)); !done) {
      log::warning("the guard of a table that was not placed will be taken away later",
                   {{"table", table_.display()}, {"reason", done.error().message}});
    }
  }

  MapStore& store_;
  MapChange& change_;
  const Table& table_;
  const std::string name_;
  std::vector<There> there_;
  RangesByShard ranges_;
  std::string note_;
};

// ---- what others have left ----

// Whoever placed it cannot commit any more, should he still be there.
Result<std::string> take_over(MapStore& store, const Note& note, const Json& json, Deadline deadline) {
  if (json.value("placed", false)) return note.body;
  const Table table{json.value("schema", ""), json.value("table", ""), TableKind::kHome, "", {}};
  std::string mine = body_of(table, false, json.value("lock", ""));
  KG_CHECK(store.put_notes({{kPlacing, note.key, mine, note.body}}, deadline));
  failpoint("clear placing: taken over");
  return mine;
}

Status clear_placing(MapStore& store, MapChange& change, const Note& note, Deadline deadline) {
  KG_TRY(const Json json, parse_json(note.body));
  KG_TRY(const StoredMap stored, change.newest(deadline));
  std::vector<LocalMap> locals;
  bool free = true;
  for (const Shard* shard : stored.map->shards()) {
    KG_TRY(LocalMap local, connect(*shard, deadline));
    if (shard->identity == json.value("lock", "")) {
      KG_TRY(free, lock_for_placing(local, note.key, deadline));
    }
    locals.push_back(std::move(local));
  }
  if (!free) return fail("55006", "its maker is at work");
  KG_TRY(const std::string mine, take_over(store, note, json, deadline));
  if (json.value("placed", false)) {
    for (const Shard* shard : stored.map->shards())
      KG_CHECK(change.bring_into_step(stored, shard->id, deadline));
    KG_CHECK(wait_until_taken(store, stored.map->epoch(), deadline.sooner(Deadline::in(kRecoverPatience))));
  }
  for (LocalMap& local : locals) {
    KG_TRY(const bool gone, lower_guard(local, note.key, kRecoverPatience, deadline));
    if (!gone) return fail("55P03", "transactions have the table");
  }
  failpoint("clear placing: lowered");
  return store.put_notes({{kPlacing, note.key, {}, mine}}, deadline);
}

}  // namespace

Result<MapPtr> place_table(MapStore& store, MapChange& change, const Table& table, const CheckRows& check,
                           Deadline deadline) {
  return Placing(store, change, table).run(check, deadline);
}

Result<int> clear_placings(MapStore& store, MapChange& change, Deadline deadline) {
  KG_TRY(const auto notes, store.notes(kPlacing, deadline));
  int remaining = 0;
  for (const Note& note : notes) {
    if (!clear_placing(store, change, note, soon(deadline))) ++remaining;
  }
  return remaining;
}

}  // namespace kintsugi::shardmap
