#include "shardmap/postgres_store.h"

#include <thread>

#include "shardmap/failpoint.h"
#include "shardmap/sql_scripts.h"
#include "shardmap/store_script.h"

namespace kintsugi::shardmap {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kEditsKept = 10000;
constexpr std::size_t kEntriesAFetch = 20000;
constexpr std::size_t kScriptBytes = 1UL << 18;
constexpr milliseconds kPollListening{1000};  // underneath the notifications
constexpr milliseconds kPollStandby{50};
constexpr milliseconds kLookForPrimaryEvery{1000};
constexpr const char* kChannel = "kintsugi_map";
constexpr const char* kListen = "LISTEN kintsugi_map";
constexpr std::chrono::seconds kLookDeadline{5};

Error cannot_change(const Error& cause) {
  return {.sqlstate = std::string(sqlstate::kMapReadOnly),
          .message = "the shard map cannot be changed now: its store cannot be reached",
          .detail = cause.message,
          .hint = "Routing goes on with the map as it is; try again when the store is back."};
}

// A lost store is a reason to refuse a change; every other error speaks for itself.
Error as_change_error(Error error) {
  if (error.sqlstate == sqlstate::kSerializationFailure && error.hint.empty()) error.hint = "Try again.";
  return error.sqlstate == sqlstate::kConnectionFailure || error.sqlstate == "25006" ? cannot_change(error)
                                                                                     : error;
}

std::uint64_t number(const std::optional<std::string>& text) {
  return std::stoull(text.value_or("0"));
}

}  // namespace

Status PostgresStore::take_session(bool primary, Deadline deadline) {
  session_.reset();
  KG_TRY(std::unique_ptr<PgSession> session, PgSession::connect(dsn_, primary, deadline));
  if (session->writable()) {
    KG_CHECK(
        migrate_schema(*session, "kintsugi_map", sql_scripts::store_postgres(), "the map store", deadline));
    KG_CHECK(session->run("SET search_path = kintsugi_map", {}, deadline));
    KG_CHECK(session->run(
        "INSERT INTO head (store_id, epoch, home, next_shard) VALUES ($1, 0, 0, 1) ON CONFLICT DO NOTHING",
        {SqlValue::text(random_uuid())}, deadline));
    if (hasty_) KG_CHECK(session->run("SET synchronous_commit = off", {}, deadline));
  } else {
    KG_CHECK(session->run("SET search_path = kintsugi_map", {}, deadline));
    KG_TRY(const auto version, session->query("SELECT max(version) FROM schema_version", {}, deadline));
    if (number(version.at(0).at(0)) != sql_scripts::store_postgres().size()) {
      return fail(sqlstate::kNotSupported,
                  "the standby of the map store has another version than this program");
    }
  }
  KG_CHECK(session->run(kEndIdleTransactions, {}, deadline));
  session_ = std::move(session);
  fresh_session_ = true;
  listening_ = false;
  return {};
}

Status PostgresStore::prepare(Deadline deadline) {
  return need_session(deadline);
}

Status PostgresStore::need_session(Deadline deadline) {
  if (session_ && session_->good()) return {};
  if (Status primary = take_session(true, deadline);
      primary || primary.error().sqlstate != sqlstate::kConnectionFailure) {
    return primary;
  }
  look_for_primary_ = Deadline::Clock::now() + kLookForPrimaryEvery;
  return take_session(false, deadline);
}

Status PostgresStore::need_writable(Deadline deadline) {
  if (writable()) return {};
  Status taken = take_session(true, deadline);
  if (taken && !session_->writable()) {
    return fail(cannot_change({.sqlstate = "25006", .message = "only a standby of it can be reached"}));
  }
  if (!taken) return fail(as_change_error(taken.error()));
  return {};
}

Result<StoredMap> PostgresStore::load(Deadline deadline) {
  KG_CHECK(need_session(deadline));
  KG_CHECK(session_->run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", {}, deadline));
  Result<StoredMap> stored = read_map(deadline);
  if (session_->good()) (void)session_->run("ROLLBACK", {}, deadline);
  return stored;
}

Result<StoredMap> PostgresStore::read_map(Deadline deadline) {
  KG_TRY(const auto head, session_->query("SELECT store_id, epoch, home, next_shard FROM head", {}, deadline));
  if (head.empty()) return fail("XX001", "the map store has no head");
  StoredMap stored;
  const std::uint64_t epoch = number(head[0][1]);
  ShardMapLoader loader(head[0][0].value_or(""), epoch);
  loader.set_home(static_cast<ShardId>(number(head[0][2])), static_cast<ShardId>(number(head[0][3])));
  KG_TRY(const auto shards, session_->query("SELECT id, name, dsn, identity, state FROM shard", {}, deadline));
  for (const PgRow& row : shards) {
    KG_CHECK(load_shard_row(loader, static_cast<ShardId>(number(row[0])), *row[1], *row[2], *row[3], *row[4]));
  }
  KG_TRY(const auto maps, session_->query("SELECT name, kind, key_types FROM map ORDER BY name", {}, deadline));
  for (const PgRow& row : maps) {
    KG_CHECK(load_map_row(loader, *row[0], *row[1], *row[2]));
    KG_CHECK(read_entries(loader, *row[0], deadline));
    KG_TRY(const auto hidden,
           session_->query("SELECT shard, low, high, job FROM hidden WHERE map = $1 ORDER BY ctid",
                           {SqlValue::text(*row[0])}, deadline));
    for (const PgRow& range : hidden) {
      KG_CHECK(loader.add_hidden({static_cast<ShardId>(number(range[0])), bytes_of_bytea(*range[1]),
                                  bytes_of_bytea(*range[2]), *range[3]}));
    }
  }
  KG_TRY(const auto tables,
         session_->query("SELECT schema_name, name, kind, map, key_columns FROM placed_table", {}, deadline));
  for (const PgRow& row : tables) KG_CHECK(load_table_row(loader, *row[0], *row[1], *row[2], *row[3], *row[4]));
  KG_TRY(const auto token,
         session_->query("SELECT token FROM edit WHERE epoch = $1", {SqlValue::integer(epoch)}, deadline));
  if (!token.empty()) stored.token = *token[0][0];
  KG_TRY(stored.map, loader.finish());
  return stored;
}

Status PostgresStore::read_entries(ShardMapLoader& loader, const std::string& map, Deadline deadline) {
  std::string after;  // the last low that was read
  for (;;) {
    KG_TRY(
        const auto rows,
        session_->query(
            "SELECT low, high, name, shard, state FROM entry WHERE map = $1 AND low > $2 ORDER BY low LIMIT " +
                std::to_string(kEntriesAFetch),
            {SqlValue::text(map), SqlValue::bytes(after)}, deadline));
    for (const PgRow& row : rows) {
      after = bytes_of_bytea(*row[0]);
      KG_CHECK(load_entry_row(loader, after, bytes_of_bytea(*row[1]), *row[2],
                              static_cast<ShardId>(number(row[3])), static_cast<std::int64_t>(number(row[4]))));
    }
    if (rows.size() < kEntriesAFetch) return {};
  }
}

Result<std::optional<std::vector<LoggedEdit>>> PostgresStore::edits_since(std::uint64_t since,
                                                                          const std::string& token,
                                                                          Deadline deadline) {
  using Answer = std::optional<std::vector<LoggedEdit>>;
  KG_CHECK(need_session(deadline));
  // One statement, one snapshot: the head, our own epoch's token, and what came after.
  KG_TRY(
      const auto rows,
      session_->query("SELECT e.epoch, e.token, e.edit, h.epoch FROM head h LEFT JOIN edit e ON e.epoch >= $1 "
                      "ORDER BY e.epoch",
                      {SqlValue::integer(since)}, deadline));
  if (rows.empty()) return Answer();
  const std::uint64_t now = number(rows[0][3]);
  std::vector<LoggedEdit> edits;
  bool ours = since == 0 && token.empty();
  for (const PgRow& row : rows) {
    if (!row[0]) continue;
    const std::uint64_t epoch = number(row[0]);
    if (epoch == since) {
      ours = row[1] == token;
      continue;
    }
    if (epoch != since + edits.size() + 1) return Answer();
    KG_TRY(MapEdit edit, map_edit_from_json(*row[2]));
    edits.push_back({epoch, *row[1], std::move(edit)});
  }
  if (!ours || now != since + edits.size()) return Answer();
  return Answer(std::move(edits));
}

// All but the COMMIT. A large edit comes in parts.
Status PostgresStore::write_commit(const StoredMap& base, const ShardMap& next, const MapEdit& edit,
                                   const std::string& token, const std::vector<NoteChange>& notes,
                                   Deadline deadline) {
  std::string script = "BEGIN; " + check_of_head(base) + "; ";
  std::vector<RowChange> changes = row_changes(*base.map, next, edit);
  changes.push_back({"INSERT INTO edit (epoch, token, edit) VALUES ($1, $2, $3)",
                     {SqlValue::integer(next.epoch()), SqlValue::text(token), SqlValue::text(to_json(edit))}});
  if (next.epoch() > kEditsKept)
    changes.push_back({"DELETE FROM edit WHERE epoch <= $1", {SqlValue::integer(next.epoch() - kEditsKept)}});
  for (const RowChange& change : changes) {
    script += with_values(change) + "; ";
    if (script.size() < kScriptBytes) continue;
    KG_CHECK(session_->script(script, deadline));
    script.clear();
  }
  if (!notes.empty()) script += changes_of_notes(notes) + "; ";
  script += with_values(
      {"SELECT pg_notify($1, $2)", {SqlValue::text(kChannel), SqlValue::text(std::to_string(next.epoch()))}});
  KG_CHECK(session_->script(script, deadline));
  failpoint("store: in the midst of a commit");
  return {};
}

Result<StoredMap> PostgresStore::commit(const StoredMap& base, const MapEdit& edit,
                                        const std::vector<NoteChange>& notes, Deadline deadline) {
  KG_TRY(MapPtr next, apply(*base.map, edit));
  KG_CHECK(need_writable(deadline));
  std::string token = random_uuid();
  Status done = write_commit(base, *next, edit, token, notes, deadline);
  if (done) {
    done = session_->run("COMMIT", {}, deadline);
    if (!done && !session_->good()) done = settle_doubt(next->epoch(), token, deadline);
  } else if (session_->good()) {
    (void)session_->run("ROLLBACK", {}, deadline);
  }
  if (!done) return fail(as_change_error(done.error()));
  return StoredMap{std::move(next), std::move(token)};
}

Status PostgresStore::settle_doubt(std::uint64_t epoch, const std::string& token, Deadline deadline) {
  while (!deadline.passed()) {
    Status looked = need_writable(deadline);
    std::string found;
    if (looked) {
      looked = session_->transaction(
          [&]() -> Status {
            // Behind this lock our own commit has either ended or never will.
            KG_CHECK(session_->run("SELECT 1 FROM head FOR UPDATE", {}, deadline));
            KG_TRY(const auto rows, session_->query("SELECT token FROM edit WHERE epoch = $1",
                                                    {SqlValue::integer(epoch)}, deadline));
            if (!rows.empty()) found = *rows[0][0];
            return {};
          },
          deadline);
    }
    if (looked && found == token) return {};
    if (looked) {
      return fail(sqlstate::kSerializationFailure, "the change of the shard map was lost with its connection",
                  "Nothing was changed; try again.");
    }
    std::this_thread::sleep_for(milliseconds(100));
  }
  Error error = cannot_change({.sqlstate = "08006", .message = ""});
  error.detail = "The connection was lost while the change was committed: it is not known whether it was made.";
  return fail(std::move(error));
}

Result<bool> PostgresStore::wait(std::uint64_t epoch, Deadline deadline) {
  for (;;) {
    const auto now_time = Deadline::Clock::now();
    if (session_ && session_->good() && !session_->writable() && now_time >= look_for_primary_) {
      look_for_primary_ = now_time + kLookForPrimaryEvery;
      // A try beside the session that works: keep it when there is no primary.
      auto standby = std::move(session_);
      if (!take_session(true, Deadline::in(kLookForPrimaryEvery))) session_ = std::move(standby);
    }
    KG_CHECK(need_session(deadline));
    // Those who do not wait are not woken: each commit would run all of them, at the moment when writers wait.
    if (!listening_ && session_->writable() && !deadline.passed()) {
      KG_CHECK(session_->run(kListen, {}, Deadline::in(kLookDeadline)));
      listening_ = true;
    }
    if (std::exchange(fresh_session_, false)) return true;
    KG_TRY(const auto rows, session_->query("SELECT epoch FROM head", {}, Deadline::in(kLookDeadline)));
    if (rows.empty() || number(rows[0][0]) != epoch) return true;
    if (deadline.passed()) return false;
    if (session_->writable()) {
      KG_TRY(const bool told, session_->wait_notification(deadline.sooner(Deadline::in(kPollListening))));
      if (told) return true;  // of which epoch the caller finds out soonest by himself
    } else {
      std::this_thread::sleep_for(kPollStandby);
    }
  }
}

Result<std::vector<Note>> PostgresStore::notes(const std::string& kind, Deadline deadline) {
  KG_CHECK(need_session(deadline));
  KG_TRY(const auto rows,
         session_->query(
             "SELECT key, body, greatest(0, extract(epoch FROM clock_timestamp() - updated) * 1000)::bigint "
             "FROM note WHERE kind = $1 ORDER BY key COLLATE \"C\"",
             {SqlValue::text(kind)}, deadline));
  std::vector<Note> all;
  for (const PgRow& row : rows)
    all.push_back({kind, *row[0], *row[1], static_cast<std::int64_t>(number(row[2]))});
  return all;
}

Status PostgresStore::put_notes(const std::vector<NoteChange>& changes, Deadline deadline) {
  KG_CHECK(need_writable(deadline));
  if (changes.empty()) return {};
  // One statement, which is a transaction by itself.
  const Status done = session_->script(changes_of_notes(changes), deadline);
  if (!done) return fail(as_change_error(done.error()));
  return {};
}

}  // namespace kintsugi::shardmap
