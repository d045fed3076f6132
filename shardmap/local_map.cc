#include "shardmap/local_map.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "shardmap/key_json.h"
#include "shardmap/pg_session.h"
#include "shardmap/row_change.h"
#include "shardmap/sql_scripts.h"

namespace kintsugi::shardmap {
namespace {

constexpr std::string_view kNoShard =
    "the database is no shard: it has no schema kintsugi, or nothing in it says whose it is";

// A row of kintsugi.owned.
struct OwnedRow {
  std::string map, low, high, name;
  std::uint64_t state = 0;
  friend auto operator<=>(const OwnedRow&, const OwnedRow&) = default;
};

std::set<OwnedRow> rows_of(const LocalContents& contents) {
  std::set<OwnedRow> rows;
  for (const LocalMapping& mapping : contents.mappings) {
    for (const Shardlet& shardlet : mapping.owned) {
      const auto state = static_cast<std::uint64_t>(shardlet.state);
      if (mapping.kind != MapKind::kList)
        rows.insert({mapping.name, shardlet.low, shardlet.high, shardlet.name, state});
      for (const std::string& value : shardlet.values)
        rows.insert({mapping.name, value, "", shardlet.name, state});
    }
  }
  return rows;
}

std::string hex_of(std::string_view bytes) {
  return bytea_text(bytes).substr(2);  // without its \x
}

// The statement once for many rows: a map may come with a million of them.
Status in_batches(PgSession& session, const std::vector<OwnedRow>& rows, const std::string& sql,
                  Deadline deadline) {
  constexpr std::size_t kRows = 10000;
  for (std::size_t at = 0; at < rows.size(); at += kRows) {
    Json json = Json::array();
    for (std::size_t i = at; i < std::min(at + kRows, rows.size()); ++i) {
      const OwnedRow& row = rows[i];
      json.push_back({{"map", row.map},
                      {"low", hex_of(row.low)},
                      {"high", hex_of(row.high)},
                      {"name", row.name},
                      {"state", row.state}});
    }
    KG_CHECK(session.run(sql, {SqlValue::text(json.dump())}, deadline));
  }
  return {};
}

tl::unexpected<Error> damaged(const std::string& what) {
  return fail("XX001", "its local map is damaged: " + what);
}

Result<std::size_t> schema_version(PgSession& session, Deadline deadline) {
  KG_TRY(const auto rows, session.query("SELECT max(version) FROM kintsugi.schema_version", {}, deadline));
  return std::stoul(rows.at(0).at(0).value_or("0"));
}

// One that is newer than this program is refused.
Status migrate(PgSession& session, Deadline deadline) {
  return migrate_schema(session, "kintsugi", sql_scripts::shard(), "the schema kintsugi of the shard",
                        deadline);
}

Error another_shard(const ShardIdentity& found) {
  return {.sqlstate = "55000",
          .message = "the database is already shard \"" + found.shard_name + "\" of map store " +
                     found.store_id + " (identity " + found.shard_id + ")",
          .hint =
              "One database is one shard of one map store. If that store is lost, kintsugi recover rebuild "
              "makes this one "
              "anew from its shards; if the database is no longer used there, drop its schema kintsugi."};
}

}  // namespace

LocalMap::LocalMap(std::unique_ptr<PgSession> session) : session_(std::move(session)) {}
LocalMap::~LocalMap() = default;
LocalMap::LocalMap(LocalMap&&) noexcept = default;
LocalMap& LocalMap::operator=(LocalMap&&) noexcept = default;

Result<LocalMap> LocalMap::connect(const std::string& dsn, Deadline deadline) {
  KG_TRY(std::unique_ptr<PgSession> session, PgSession::connect(dsn, true, deadline));
  // A shard that is read only for the application has a local map all the same.
  KG_CHECK(session->script(std::string(kEndIdleTransactions) +
                               "SET client_min_messages = warning; SET default_transaction_read_only = off",
                           deadline));
  return LocalMap(std::move(session));
}

Result<std::optional<ShardIdentity>> LocalMap::identity(Deadline deadline) {
  using Answer = std::optional<ShardIdentity>;
  KG_TRY(const auto there,
         session_->query("SELECT to_regclass('kintsugi.identity') IS NOT NULL", {}, deadline));
  if (there.at(0).at(0) != "t") return Answer();
  KG_TRY(const auto rows,
         session_->query("SELECT store_id, shard_id, shard_name, epoch, to_jsonb(i) ->> 'home', "
                         "to_jsonb(i) ->> 'state' FROM kintsugi.identity i",
                         {}, deadline));
  if (rows.empty()) return Answer();
  const PgRow& row = rows[0];
  const auto epoch = static_cast<std::uint64_t>(std::max<std::int64_t>(std::stoll(*row[3]), 0));
  ShardIdentity found{*row[0], *row[1], *row[2], epoch, {}, {}};
  if (row[4]) found.home = *row[4] == "true";
  if (row[5]) found.state = shard_state_named(*row[5]);
  return Answer(std::move(found));
}

Status LocalMap::need_identity(const std::string& store_id, const std::string& shard_id, Deadline deadline) {
  KG_TRY(const auto found, identity(deadline));
  if (!found) {
    return fail("55000", std::string(kNoShard),
                "Look whether the DSN leads to the right database; if it does, kintsugi recover resolve --from "
                "store makes its local map anew.");
  }
  if (found->store_id != store_id || found->shard_id != shard_id) return fail(another_shard(*found));
  return {};
}

Status LocalMap::bring_up_to_date(Deadline deadline) {
  KG_TRY(const std::size_t version, schema_version(*session_, deadline));
  return version == sql_scripts::shard().size() ? Status{} : migrate(*session_, deadline);
}

Status upgrade_local_map(PgSession& session, Deadline deadline) {
  KG_TRY(const auto there,
         session.query("SELECT to_regclass('kintsugi.schema_version') IS NOT NULL", {}, deadline));
  if (there.at(0).at(0) != "t") return {};
  KG_TRY(const std::size_t version, schema_version(session, deadline));
  return version >= sql_scripts::shard().size() ? Status{} : migrate(session, deadline);
}

Status LocalMap::adopt(const std::string& store_id, const std::string& shard_id, const std::string& shard_name,
                       Deadline deadline) {
  KG_TRY(const auto found, identity(deadline));
  if (!found) return claim(store_id, shard_id, shard_name, deadline);
  KG_CHECK(need_identity(found->store_id, shard_id, deadline));
  return session_->run("UPDATE kintsugi.identity SET store_id = $1 WHERE shard_id = $2",
                       {SqlValue::text(store_id), SqlValue::text(shard_id)}, deadline);
}

Status LocalMap::claim(const std::string& store_id, const std::string& shard_id, const std::string& shard_name,
                       Deadline deadline) {
  KG_CHECK(migrate(*session_, deadline));
  KG_CHECK(session_->run(
      "INSERT INTO kintsugi.identity (store_id, shard_id, shard_name, epoch) VALUES ($1, $2, $3, 0) "
      "ON CONFLICT DO NOTHING",
      {SqlValue::text(store_id), SqlValue::text(shard_id), SqlValue::text(shard_name)}, deadline));
  return need_identity(store_id, shard_id, deadline);
}

Status LocalMap::release(const std::string& store_id, const std::string& shard_id, Deadline deadline) {
  Status released = session_->transaction(
      [&]() -> Status {
        KG_TRY(const auto found, identity(deadline));
        if (!found || found->store_id != store_id || found->shard_id != shard_id) return {};
        return session_->run("DROP SCHEMA kintsugi CASCADE", {}, deadline);
      },
      deadline);
  if (released || !session_->good()) return released;
  // Another router may have dropped it between our look and our hand on it: then it is done as well.
  const auto left = identity(deadline);
  return left && !*left ? Status{} : released;
}

LocalContents contents_of(const ShardMap& map, const Shard& shard) {
  LocalContents contents;
  contents.identity = {map.store_id(),
                       shard.identity,
                       shard.name,
                       map.epoch(),
                       map.home_shard() != nullptr && map.home_shard()->id == shard.id,
                       shard.state};
  for (const Mapping* mapping : map.mappings()) {
    LocalMapping local{mapping->name(), mapping->kind(), mapping->key_types(), {}};
    const bool has_some = std::any_of(mapping->shards().begin(), mapping->shards().end(),
                                      [&shard](const auto& counted) { return counted.first == shard.id; });
    if (has_some) {
      for (Shardlet& shardlet : map.shardlets_of(*mapping)) {
        if (shardlet.shard != shard.id) continue;
        shardlet.shard = 0;
        local.owned.push_back(std::move(shardlet));
      }
    }
    contents.mappings.push_back(std::move(local));
  }
  for (const Table* table : map.tables()) contents.tables.push_back(*table);
  return contents;
}

Status LocalMap::bring_to(const ShardMap& map, const Shard& shard, Deadline deadline) {
  KG_CHECK(need_identity(map.store_id(), shard.identity, deadline));
  KG_CHECK(bring_up_to_date(deadline));
  return session_->transaction(
      [&]() -> Status {
        KG_CHECK(need_identity(map.store_id(), shard.identity, deadline));
        KG_TRY(const auto now, session_->query("SELECT epoch FROM kintsugi.identity FOR UPDATE", {}, deadline));
        if (std::stoll(*now.at(0).at(0)) >= static_cast<std::int64_t>(map.epoch())) return {};
        auto have = read(deadline);
        if (!have && have.error().sqlstate != "XX001") return fail(have.error());
        if (!have) {  // somebody has changed it by hand: nothing of it is believed
          KG_CHECK(session_->run("DELETE FROM kintsugi.owned", {}, deadline));
          have = LocalContents{};
        }
        const LocalContents want = contents_of(map, shard);
        const std::set<OwnedRow> old_rows = rows_of(*have);
        const std::set<OwnedRow> new_rows = rows_of(want);
        std::vector<OwnedRow> gone, come;
        std::set_difference(old_rows.begin(), old_rows.end(), new_rows.begin(), new_rows.end(),
                            std::back_inserter(gone));
        std::set_difference(new_rows.begin(), new_rows.end(), old_rows.begin(), old_rows.end(),
                            std::back_inserter(come));
        KG_CHECK(in_batches(
            *session_, gone,
            "DELETE FROM kintsugi.owned o USING json_to_recordset($1::text::json) AS r (map text, low text) "
            "WHERE o.map = r.map AND o.low = decode(r.low, 'hex')",
            deadline));
        KG_CHECK(in_batches(
            *session_, come,
            "INSERT INTO kintsugi.owned (map, low, high, name, state) SELECT map, decode(low, 'hex'), "
            "decode(high, 'hex'), name, state FROM json_to_recordset($1::text::json) AS r (map text, low "
            "text, high text, name text, state int)",
            deadline));
        KG_CHECK(session_->run("DELETE FROM kintsugi.map", {}, deadline));
        for (const LocalMapping& mapping : want.mappings) {
          KG_CHECK(
              session_->run("INSERT INTO kintsugi.map (name, kind, key_types) VALUES ($1, $2, $3)",
                            {SqlValue::text(mapping.name), SqlValue::text(std::string(name_of(mapping.kind))),
                             SqlValue::text(key_types_json(mapping.key_types))},
                            deadline));
        }
        KG_CHECK(session_->run("DELETE FROM kintsugi.placed_table", {}, deadline));
        for (const Table& table : want.tables) {
          KG_CHECK(
              session_->run("INSERT INTO kintsugi.placed_table (schema_name, name, kind, map, key_columns) "
                            "VALUES ($1, $2, $3, $4, $5)",
                            {SqlValue::text(table.schema), SqlValue::text(table.name),
                             SqlValue::text(std::string(name_of(table.kind))), SqlValue::text(table.map),
                             SqlValue::text(columns_json(table.key))},
                            deadline));
        }
        return session_->run(
            "UPDATE kintsugi.identity SET epoch = $1, shard_name = $2, home = $3::text::boolean, state = $4",
            {SqlValue::integer(map.epoch()), SqlValue::text(shard.name),
             SqlValue::text(*want.identity.home ? "true" : "false"),
             SqlValue::text(std::string(name_of(shard.state)))},
            deadline);
      },
      deadline);
}

Result<LocalContents> LocalMap::read(Deadline deadline) {
  LocalContents contents;
  KG_TRY(auto found, identity(deadline));
  if (!found) return fail("55000", std::string(kNoShard));
  contents.identity = *std::move(found);
  KG_TRY(const auto maps,
         session_->query("SELECT name, kind, key_types FROM kintsugi.map ORDER BY name COLLATE \"C\"", {},
                         deadline));
  for (const PgRow& row : maps) {
    const auto kind = map_kind_named(*row[1]);
    if (!kind) return damaged("map " + *row[0] + " is of the unknown kind " + *row[1]);
    const auto json = parse_json(*row[2]);
    auto types = json ? types_from_json(*json) : fail(json.error());
    if (!types) return damaged("map " + *row[0] + " has key types that cannot be read: " + *row[2]);
    contents.mappings.push_back({*row[0], *kind, *std::move(types), {}});
  }
  KG_TRY(
      const auto owned,
      session_->query("SELECT map, low, high, name, state FROM kintsugi.owned ORDER BY map COLLATE \"C\", low",
                      {}, deadline));
  std::map<std::pair<std::string, std::string>, std::size_t> list_places;  // of a map's shardlet among `owned`
  for (const PgRow& row : owned) {
    const auto mapping = std::find_if(contents.mappings.begin(), contents.mappings.end(),
                                      [&row](const LocalMapping& each) { return each.name == *row[0]; });
    if (mapping == contents.mappings.end())
      return damaged("it owns shardlet " + *row[3] + " of map " + *row[0] + ", which it does not know");
    const long state_number = std::stol(*row[4]);
    if (state_number < 0 || state_number > static_cast<long>(ShardletState::kHeld))
      return damaged("shardlet " + *row[3] + " is in the unknown state " + *row[4]);
    const auto state = static_cast<ShardletState>(state_number);
    if (mapping->kind != MapKind::kList) {
      mapping->owned.push_back(
          {*row[3], *row[0], bytes_of_bytea(*row[1]), bytes_of_bytea(*row[2]), {}, 0, state});
      continue;
    }
    const auto [same, first] = list_places.try_emplace({*row[0], *row[3]}, mapping->owned.size());
    if (first) mapping->owned.push_back({*row[3], *row[0], {}, {}, {}, 0, state});
    mapping->owned[same->second].values.push_back(bytes_of_bytea(*row[1]));
  }
  KG_TRY(const auto tables,
         session_->query("SELECT schema_name, name, kind, map, key_columns FROM kintsugi.placed_table "
                         "ORDER BY schema_name COLLATE \"C\", name COLLATE \"C\"",
                         {}, deadline));
  for (const PgRow& row : tables) {
    const auto kind = table_kind_named(*row[2]);
    if (!kind) return damaged("table " + *row[0] + "." + *row[1] + " is of the unknown kind " + *row[2]);
    const auto json = parse_json(*row[4]);
    auto key = json ? texts_from_json(*json) : fail(json.error());
    if (!key) return damaged("table " + *row[0] + "." + *row[1] + " has key columns that cannot be read");
    contents.tables.push_back({*row[0], *row[1], *kind, *row[3], *std::move(key)});
  }
  return contents;
}

}  // namespace kintsugi::shardmap
