#include "shardmap/sqlite_store.h"

#include <chrono>
#include <map>
#include <thread>

#include "shardmap/map_file.h"
#include "shardmap/sql_scripts.h"

namespace kintsugi::shardmap {
namespace {

constexpr std::chrono::milliseconds kWaitStep{5};
// So many epochs are kept for others to replay; who is further behind loads the whole map.
constexpr std::uint64_t kEditsKept = 10000;

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path, SqliteSync sync) {
  KG_TRY(std::unique_ptr<SqliteDb> db, SqliteDb::open(path, sync));
  KG_CHECK(db->migrate(sql_scripts::store_sqlite()));
  KG_CHECK(
      db->run("INSERT INTO head (one, store_id, epoch, home, next_shard) VALUES (1, $1, 0, 0, 1) ON CONFLICT "
              "DO NOTHING",
              {SqlValue::text(random_uuid())}));
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(db)));
}

Result<std::uint64_t> SqliteStore::epoch() {
  std::uint64_t epoch = 0;
  KG_CHECK(db_->run("SELECT epoch FROM head", {}, [&epoch](const SqliteRow& row) -> Status {
    epoch = static_cast<std::uint64_t>(row.integer(0));
    return {};
  }));
  return epoch;
}

Result<std::string> SqliteStore::token_of(std::uint64_t epoch) {
  std::string token;
  KG_CHECK(db_->run("SELECT token FROM edit WHERE epoch = $1", {SqlValue::integer(epoch)},
                    [&token](const SqliteRow& row) -> Status {
                      token = row.text(0);
                      return {};
                    }));
  return token;
}

Result<StoredMap> SqliteStore::load(Deadline) {
  StoredMap stored;
  // One read transaction: all statements see one state of the file.
  KG_CHECK(db_->run("BEGIN"));
  const Status read = [&]() -> Status {
    std::unique_ptr<ShardMapLoader> loader;
    std::uint64_t at = 0;
    KG_CHECK(
        db_->run("SELECT store_id, epoch, home, next_shard FROM head", {}, [&](const SqliteRow& row) -> Status {
          at = static_cast<std::uint64_t>(row.integer(1));
          loader = std::make_unique<ShardMapLoader>(row.text(0), at);
          loader->set_home(static_cast<ShardId>(row.integer(2)), static_cast<ShardId>(row.integer(3)));
          return {};
        }));
    if (!loader) return fail("XX001", "the map file has no head");
    KG_CHECK(db_->run("SELECT id, name, dsn, identity, state FROM shard", {}, [&](const SqliteRow& row) {
      return load_shard_row(*loader, static_cast<ShardId>(row.integer(0)), row.text(1), row.text(2),
                            row.text(3), row.text(4));
    }));
    std::vector<std::array<std::string, 3>> maps;
    KG_CHECK(db_->run("SELECT name, kind, key_types FROM map ORDER BY name", {},
                      [&](const SqliteRow& row) -> Status {
                        maps.push_back({row.text(0), row.text(1), row.text(2)});
                        return {};
                      }));
    for (const auto& [name, kind, types] : maps) {
      KG_CHECK(load_map_row(*loader, name, kind, types));
      KG_CHECK(db_->run("SELECT low, high, name, shard, state FROM entry WHERE map = $1 ORDER BY low",
                        {SqlValue::text(name)}, [&](const SqliteRow& row) {
                          return load_entry_row(*loader, row.bytes(0), row.bytes(1), row.bytes(2),
                                                static_cast<ShardId>(row.integer(3)), row.integer(4));
                        }));
      KG_CHECK(db_->run("SELECT shard, low, high, job FROM hidden WHERE map = $1 ORDER BY rowid",
                        {SqlValue::text(name)}, [&](const SqliteRow& row) {
                          return loader->add_hidden(
                              {static_cast<ShardId>(row.integer(0)), row.text(1), row.text(2), row.text(3)});
                        }));
    }
    KG_CHECK(db_->run(
        "SELECT schema_name, name, kind, map, key_columns FROM placed_table", {}, [&](const SqliteRow& row) {
          return load_table_row(*loader, row.text(0), row.text(1), row.text(2), row.text(3), row.text(4));
        }));
    KG_TRY(stored.token, token_of(at));
    KG_TRY(stored.map, loader->finish());
    return {};
  }();
  KG_CHECK(db_->run("COMMIT"));
  if (!read) return fail(read.error());
  return stored;
}

Result<std::optional<std::vector<LoggedEdit>>> SqliteStore::edits_since(std::uint64_t since,
                                                                        const std::string& token, Deadline) {
  using Answer = std::optional<std::vector<LoggedEdit>>;
  KG_TRY(const std::string ours, token_of(since));
  KG_TRY(const std::uint64_t now, epoch());
  if (ours != token || (token.empty() && now > since && since != 0)) return Answer();
  std::vector<LoggedEdit> edits;
  KG_CHECK(
      db_->run("SELECT epoch, token, edit FROM edit WHERE epoch > $1 ORDER BY epoch",
               {SqlValue::integer(since)}, [&edits](const SqliteRow& row) -> Status {
                 KG_TRY(MapEdit edit, map_edit_from_json(row.bytes(2)));
                 edits.push_back({static_cast<std::uint64_t>(row.integer(0)), row.text(1), std::move(edit)});
                 return {};
               }));
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].epoch != since + i + 1) return Answer();
  }
  if (edits.empty() && now != since) return Answer();
  return Answer(std::move(edits));
}

Status SqliteStore::write_edit(const ShardMap& before, const ShardMap& after, const MapEdit& edit,
                               const std::string& token) {
  for (const RowChange& change : row_changes(before, after, edit))
    KG_CHECK(db_->run(change.sql, change.values));
  KG_CHECK(db_->run("INSERT INTO edit (epoch, token, edit) VALUES ($1, $2, $3)",
                    {SqlValue::integer(after.epoch()), SqlValue::text(token), SqlValue::text(to_json(edit))}));
  if (after.epoch() > kEditsKept) {
    KG_CHECK(db_->run("DELETE FROM edit WHERE epoch <= $1", {SqlValue::integer(after.epoch() - kEditsKept)}));
  }
  return {};
}

Status SqliteStore::write_notes(const std::vector<NoteChange>& changes) {
  for (const NoteChange& change : changes) {
    const std::vector<SqlValue> key{SqlValue::text(change.kind), SqlValue::text(change.key)};
    if (change.expected) {
      std::string now;
      KG_CHECK(db_->run("SELECT body FROM note WHERE kind = $1 AND key = $2", key,
                        [&now](const SqliteRow& row) -> Status {
                          now = row.text(0);
                          return {};
                        }));
      if (now != *change.expected) {
        return fail(sqlstate::kSerializationFailure,
                    "the note " + change.kind + " " + change.key + " was changed by somebody else",
                    "Try again.");
      }
    }
    KG_CHECK(db_->run("DELETE FROM note WHERE kind = $1 AND key = $2", key));
    if (!change.body) continue;
    KG_CHECK(db_->run("INSERT INTO note (kind, key, body) VALUES ($1, $2, $3)",
                      {key[0], key[1], SqlValue::text(*change.body)}));
  }
  return {};
}

Result<StoredMap> SqliteStore::commit(const StoredMap& base, const MapEdit& edit,
                                      const std::vector<NoteChange>& notes, Deadline) {
  KG_TRY(MapPtr next, apply(*base.map, edit));
  std::string token = random_uuid();
  const Status done = db_->transaction([&]() -> Status {
    KG_TRY(const std::uint64_t now, epoch());
    KG_TRY(const std::string now_token, token_of(now));
    if (now != base.map->epoch() || now_token != base.token) {
      return fail(sqlstate::kSerializationFailure,
                  "the shard map was changed by somebody else (it is at epoch " + std::to_string(now) +
                      ", this change was made for epoch " + std::to_string(base.map->epoch()) + ")",
                  "Try again.");
    }
    KG_CHECK(write_edit(*base.map, *next, edit, token));
    return write_notes(notes);
  });
  if (!done) return fail(done.error());
  return StoredMap{std::move(next), std::move(token)};
}

Result<bool> SqliteStore::wait(std::uint64_t since, Deadline deadline) {
  for (;;) {
    KG_TRY(const std::uint64_t now, epoch());
    if (now != since) return true;
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(kWaitStep);
  }
}

Result<std::vector<Note>> SqliteStore::notes(const std::string& kind, Deadline) {
  std::vector<Note> all;
  KG_CHECK(
      db_->run("SELECT key, body, ((julianday('now') - 2440587.5) * 86400.0 - updated) * 1000 FROM note "
               "WHERE kind = $1 ORDER BY key",
               {SqlValue::text(kind)}, [&](const SqliteRow& row) -> Status {
                 all.push_back({kind, row.text(0), row.text(1), static_cast<std::int64_t>(row.real(2))});
                 return {};
               }));
  return all;
}

Status SqliteStore::put_notes(const std::vector<NoteChange>& changes, Deadline) {
  return db_->transaction([&] { return write_notes(changes); });
}

Status SqliteStore::follow(const ShardMap& before, const LoggedEdit& edit, const ShardMap& after) {
  return db_->transaction([&] { return write_edit(before, after, edit.edit, edit.token); });
}

Status SqliteStore::become(const StoredMap& stored) {
  return db_->transaction([&]() -> Status {
    for (const char* table : {"shard", "map", "entry", "hidden", "placed_table", "edit"}) {
      KG_CHECK(db_->run(std::string("DELETE FROM ") + table));
    }
    const MapPtr nothing = ShardMap::empty(stored.map->store_id());
    KG_TRY(const MapEdit edit, edit_that_makes(*stored.map));
    KG_CHECK(db_->run("UPDATE head SET store_id = $1", {SqlValue::text(stored.map->store_id())}));
    for (const RowChange& change : row_changes(*nothing, *stored.map, edit))
      KG_CHECK(db_->run(change.sql, change.values));
    return db_->run("INSERT INTO edit (epoch, token, edit) VALUES ($1, $2, '[]')",
                    {SqlValue::integer(stored.map->epoch()), SqlValue::text(stored.token)});
  });
}

}  // namespace kintsugi::shardmap
