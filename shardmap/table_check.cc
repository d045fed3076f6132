#include "shardmap/table_check.h"

#include <algorithm>

#include "base/sql_quote.h"
#include "base/suggest.h"
#include "shardmap/key_encoding.h"
#include "shardmap/pg_hash.h"
#include "shardmap/pg_session.h"

namespace kintsugi::shardmap {
namespace {

constexpr const char* kFetch = "FETCH 10000 FROM kintsugi_keys";

bool integer(KeyType type) {
  return type == KeyType::kSmallint || type == KeyType::kInt || type == KeyType::kBigint;
}

std::string qualified(const Table& table) {
  return quote_identifier(table.schema) + "." + quote_identifier(table.name);
}

// "Did you mean ...?", of the names in the first column of the query's rows; nothing when it fails.
std::string meant(PgSession& session, std::string_view name, const std::string& names,
                  const std::vector<SqlValue>& values, Deadline deadline) {
  const auto rows = session.query(names, values, deadline);
  if (!rows) return {};
  std::vector<std::string> known;
  for (const PgRow& row : *rows) known.push_back(*row[0]);
  const std::string near = nearest(name, known);
  return near.empty() ? "" : "Did you mean \"" + near + "\"?";
}

Error no_table(PgSession& session, const Table& table, Deadline deadline) {
  const std::string tables =
      "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
      "WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'kintsugi') "
      "AND n.nspname NOT LIKE 'pg\\_t%' LIMIT 20000";
  return {.sqlstate = "42P01",
          .message = "table " + table.display() + " does not exist",
          .hint = meant(session, table.schema + "." + table.name, tables, {}, deadline)};
}

bool is_hidden(const Mapping& mapping, const Shard& shard, const std::string& key) {
  std::string bound = key;
  if (mapping.kind() == MapKind::kHash) {
    bound.clear();
    append_bigint(hash_of_key(mapping.key_types(), key), bound);
  }
  return std::any_of(mapping.hidden().begin(), mapping.hidden().end(), [&](const HiddenRange& range) {
    return range.shard == shard.id &&
           (range.high.empty() ? bound == range.low : range.low <= bound && bound < range.high);
  });
}

}  // namespace

bool owns_every_key(const Mapping& mapping, const Shard& shard) {
  if (mapping.kind() == MapKind::kList || mapping.entry_count() != 1) return false;
  const ShardletView only = *mapping.entries().begin();
  const std::string low(mapping.bound_types().size(), key_tag::kMin);
  const std::string high(mapping.bound_types().size(), key_tag::kMax);
  return only.shard() == shard.id && only.low() == low && only.high() == high;
}

Status check_key_columns(LocalMap& shard, const Mapping& mapping, const Table& table, Deadline deadline) {
  PgSession& session = shard.session();
  KG_TRY(const auto there,
         session.query(
             "SELECT c.oid, pg_encoding_to_char(d.encoding), EXISTS (SELECT 1 FROM pg_inherits i JOIN pg_class "
             "k ON "
             "k.oid = i.inhrelid WHERE c.oid IN (i.inhparent, i.inhrelid) AND NOT k.relispartition), "
             "(SELECT i.inhparent::regclass::text FROM pg_inherits i WHERE i.inhrelid = c.oid AND "
             "c.relispartition) FROM "
             "pg_class c JOIN pg_namespace n ON n.oid = "
             "c.relnamespace JOIN pg_database d ON d.datname = current_database() WHERE n.nspname = $1 AND "
             "c.relname = $2 AND c.relkind IN ('r', 'p')",
             {SqlValue::text(table.schema), SqlValue::text(table.name)}, deadline));
  if (there.empty()) return fail(no_table(session, table, deadline));
  if (*there[0][1] != "UTF8") {
    return fail(sqlstate::kNotSupported,
                "the database has the encoding " + *there[0][1] + "; a shard must have UTF8");
  }
  if (there[0][3]) {
    return fail(
        "55000", "table " + table.display() + " is a partition of " + *there[0][3],
        "A partition is where its table is: ALTER TABLE " + *there[0][3] + " SHARD BY ... takes all of them.");
  }
  if (*there[0][2] == "t") {
    return fail(
        sqlstate::kNotSupported, "table " + table.display() + " inherits from another, or another from it",
        "Use partitions (PARTITION BY, PARTITION OF), or separate tables and a view of their UNION ALL.");
  }
  for (std::size_t i = 0; i < table.key.size(); ++i) {
    const std::string name = table.display() + "." + table.key[i];
    KG_TRY(
        const auto rows,
        session.query(
            "SELECT format_type(a.atttypid, NULL), a.atttypmod, coalesce(l.collisdeterministic, true), "
            "a.attgenerated <> '' FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation WHERE "
            "a.attrelid = $1 AND a.attname = $2 AND NOT a.attisdropped AND a.attnum > 0",
            {SqlValue::integer(std::stoull(*there[0][0])), SqlValue::text(table.key[i])}, deadline));
    if (rows.empty()) {
      return fail(
          "42703", "column " + name + " does not exist",
          meant(session, table.key[i],
                "SELECT attname FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped",
                {SqlValue::integer(std::stoull(*there[0][0]))}, deadline));
    }
    const KeyType wanted = mapping.key_types()[i];
    const auto type = key_type_named(*rows[0][0]);
    if (!type || (*type != wanted && !(integer(*type) && integer(wanted)))) {
      return fail("42804", "column " + name + " is " + *rows[0][0] + ", but the key of map \"" +
                               mapping.name() + "\" is " + std::string(name_of(wanted)));
    }
    const bool varchar = *type == KeyType::kText;
    if (*rows[0][1] != "-1" && !varchar) {
      return fail(sqlstate::kNotSupported,
                  "column " + name + " has a precision that rounds what is written into it",
                  "A sharding key is a plain " + *rows[0][0] + ".");
    }
    if (*rows[0][2] != "t") {
      return fail(sqlstate::kNotSupported, "column " + name + " has a nondeterministic collation");
    }
    if (*rows[0][3] == "t") return fail(sqlstate::kNotSupported, "column " + name + " is generated");
  }
  return {};
}

Result<std::vector<std::string>> unique_without_key(LocalMap& shard, const Table& table, Deadline deadline) {
  std::string keys;
  for (const std::string& column : table.key) keys += (keys.empty() ? "" : ", ") + quote_literal(column);
  KG_TRY(
      const auto rows,
      shard.session().query(
          "SELECT c.relname || ' (' || string_agg(a.attname, ', ' ORDER BY a.attnum) || ')' FROM pg_index i "
          "JOIN "
          "pg_class c ON c.oid = i.indexrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum <= "
          "i.indnkeyatts WHERE i.indrelid = to_regclass($1) AND (i.indisunique OR i.indisexclusion) GROUP BY "
          "c.relname HAVING NOT array_agg(a.attname::text) @> ARRAY[" +
              keys + "] ORDER BY c.relname",
          {SqlValue::text(qualified(table))}, deadline));
  std::vector<std::string> found;
  for (const PgRow& row : rows) found.push_back(*row[0]);
  return found;
}

Result<std::vector<MisplacedKey>> misplaced_keys(LocalMap& local, const ShardMap& map, const Shard& shard,
                                                 const Table& table, std::size_t most, Deadline deadline) {
  const Mapping* mapping = map.mapping(table.map);
  if (mapping == nullptr)
    return fail(sqlstate::kUndefinedObject, "shard map \"" + table.map + "\" does not exist");
  PgSession& session = local.session();
  std::string columns;
  std::string any_null;
  for (const std::string& column : table.key) {
    columns += (columns.empty() ? "" : ", ") + quote_identifier(column) + "::text";
    any_null += (any_null.empty() ? "" : " OR ") + quote_identifier(column) + " IS NULL";
  }
  const std::string filter = owns_every_key(*mapping, shard) ? " WHERE " + any_null + " LIMIT 1" : "";
  std::vector<MisplacedKey> found;
  const Status read = session.transaction(
      [&]() -> Status {
        KG_CHECK(session.script(
            "SET LOCAL datestyle = 'ISO'; SET LOCAL timezone = 'UTC'; SET LOCAL bytea_output = 'hex'",
            deadline));
        KG_CHECK(session.script("DECLARE kintsugi_keys NO SCROLL CURSOR FOR SELECT DISTINCT " + columns +
                                    " FROM " + qualified(table) + filter,
                                deadline));
        for (;;) {
          KG_TRY(const auto rows, session.query(kFetch, {}, deadline));
          for (const PgRow& row : rows) {
            if (found.size() == most) return {};
            if (std::any_of(row.begin(), row.end(), [](const auto& column) { return !column.has_value(); })) {
              found.push_back({"NULL", ""});
              continue;
            }
            std::vector<std::string> texts;
            for (const auto& column : row) texts.push_back(*column);
            KG_TRY(const std::string key, encode_key(mapping->key_types(), texts));
            const auto shardlet = mapping->find(key);
            if (shardlet && shardlet->shard() == shard.id) continue;
            if (is_hidden(*mapping, shard, key)) continue;
            found.push_back(
                {describe_key(mapping->key_types(), key), shardlet ? map.shard(shardlet->shard())->name : ""});
          }
          if (rows.empty()) return {};
        }
      },
      deadline);
  if (!read) return fail(read.error());
  return found;
}

Result<std::string> row_of_others(LocalMap& local, const ShardMap& map, const Shard& shard, Deadline deadline) {
  for (const Table* table : map.tables()) {
    if (table->kind != TableKind::kSharded) continue;
    const auto keys = misplaced_keys(local, map, shard, *table, 1, deadline);
    if (!keys && keys.error().sqlstate == "42P01") continue;
    if (!keys) return fail(keys.error());
    if (keys->empty()) continue;
    const MisplacedKey& key = keys->front();
    return "table " + table->display() + " has key " + key.key + ", which " +
           (key.belongs.empty() ? "no shardlet has" : "belongs on shard \"" + key.belongs + "\"");
  }
  return std::string();
}

Result<std::string> table_missing(LocalMap& local, const ShardMap& map, const Shard& shard, Deadline deadline) {
  for (const Table* table : map.tables()) {
    if (table->kind == TableKind::kSharded) {
      const auto& owners = map.mapping(table->map)->shards();
      const bool owns = std::any_of(owners.begin(), owners.end(),
                                    [&shard](const auto& counted) { return counted.first == shard.id; });
      if (!owns) continue;
    }
    KG_TRY(const auto there, local.session().query("SELECT to_regclass($1) IS NOT NULL",
                                                   {SqlValue::text(qualified(*table))}, deadline));
    if (there.at(0).at(0) != "t") return table->display();
  }
  return std::string();
}

Status check_copies(const ShardMap& map, const Table& table, Deadline deadline) {
  constexpr std::chrono::seconds kConnecting{5};
  const std::string name = quote_identifier(table.schema) + "." + quote_identifier(table.name);
  // Text that every server writes alike, whatever its own settings are.
  constexpr const char* kAlike =
      "SET timezone = 'UTC'; SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; SET extra_float_digits = "
      "3; "
      "SET bytea_output = 'hex'";
  const std::string sums =
      "SELECT count(*), coalesce(sum(pg_catalog.hashtextextended(t::text, 0)), 0) FROM " + name + " t";
  std::optional<PgRow> at_home;
  std::vector<const Shard*> shards{map.home_shard()};
  for (const Shard* shard : map.shards())
    if (shard != map.home_shard() && shard->state != ShardState::kPreparing) shards.push_back(shard);
  for (const Shard* shard : shards) {
    if (shard == nullptr) return {};
    auto session = PgSession::connect(shard->dsn, true, deadline.sooner(Deadline::in(kConnecting)));
    if (!session)
      return fail(sqlstate::kShardUnreachable, "shard \"" + shard->name + "\" cannot be reached", "",
                  session.error().message);
    KG_CHECK((*session)->script(kAlike, deadline));
    auto rows = (*session)->query(sums, {}, deadline);
    if (!rows) {
      if (rows.error().sqlstate != "42P01") return fail(rows.error());
      if (!at_home) return fail(no_table(**session, table, deadline));
      return fail(
          "55000", "table " + table.display() + " is not on shard \"" + shard->name + "\"",
          "Make it there with the same rows; or make a table with CREATE TABLE ... REPLICATED, and fill it "
          "with INSERT ... SELECT.");
    }
    if (!at_home) {
      at_home = rows->front();
    } else if (*at_home != rows->front()) {
      return fail("55000",
                  "table " + table.display() + " has other rows on shard \"" + shard->name + "\" than on \"" +
                      map.home_shard()->name + "\"",
                  "Every shard has to have the same rows of a replicated table; make them equal first.",
                  rows->front()[0].value_or("0") + " rows there, " + (*at_home)[0].value_or("0") + " on \"" +
                      map.home_shard()->name + "\"");
    }
  }
  return {};
}

}  // namespace kintsugi::shardmap
