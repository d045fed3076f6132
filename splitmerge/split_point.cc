#include "splitmerge/split_point.h"

#include <algorithm>

#include "base/sql_quote.h"
#include "shardmap/key_predicate.h"
#include "shardmap/pg_hash.h"
#include "shardmap/pg_session.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::Bound;
using shardmap::BoundColumn;
using shardmap::KeyType;
using shardmap::KeyTypes;
using shardmap::MapKind;
using shardmap::Mapping;
using shardmap::PgSession;
using shardmap::Shard;
using shardmap::Table;

// The keys (or their hashes) of the shardlet's rows in all tables, one row a row, as k1, k2 ...
Result<std::string> all_keys(const shardmap::ShardMap& map, const shardmap::Shardlet& shardlet) {
  const Mapping& mapping = *map.mapping(shardlet.map);
  std::string sql;
  for (const Table* table : map.tables_of(shardlet.map)) {
    std::vector<std::string> key;
    for (const std::string& column : table->key) key.push_back(quote_identifier(column));
    KG_TRY(const std::string inside, inside_ranges(mapping, key, ranges_of(shardlet)));
    std::string columns;
    if (mapping.kind() == MapKind::kHash) {
      columns = shardmap::hash_expression(key) + " AS k1";
    } else {
      for (std::size_t i = 0; i < key.size(); ++i) {
        const KeyType type = mapping.key_types()[i];
        columns += (i > 0 ? ", " : "") + key[i] + "::" + std::string(name_of(type)) +
                   (type == KeyType::kText ? " COLLATE \"C\"" : "") + " AS k" + std::to_string(i + 1);
      }
    }
    sql += (sql.empty() ? "SELECT " : " UNION ALL SELECT ") + columns + " FROM " +
           quote_identifier(table->schema) + "." + quote_identifier(table->name) + " WHERE " + inside;
  }
  return sql;
}

}  // namespace

Result<Bound> middle_of(const shardmap::ShardMap& map, const std::string& name, Deadline deadline) {
  const auto shardlet = map.shardlet(name);
  if (!shardlet) return fail(sqlstate::kUndefinedObject, "shardlet \"" + name + "\" does not exist");
  const Mapping& mapping = *map.mapping(shardlet->map);
  const Shard& shard = *map.shard(shardlet->shard);
  KG_TRY(const std::string keys, all_keys(map, *shardlet));
  const tl::unexpected<Error> no_middle =
      fail("55000", "shardlet \"" + name + "\" has no middle: it has no rows, or all of them have one key",
           "Say where to split it: AT (...).");
  if (keys.empty()) return no_middle;
  auto session = PgSession::connect(shard.dsn, true, deadline);
  if (!session) {
    return fail(Error{std::string(sqlstate::kShardUnreachable),
                      "shard \"" + shard.name + "\" cannot be reached", session.error().message, "", 0});
  }
  KG_CHECK(
      (*session)->script("SET datestyle = 'ISO'; SET timezone = 'UTC'; SET bytea_output = 'hex'", deadline));
  const std::size_t columns = mapping.bound_types().size();
  std::string list;
  std::string texts;
  for (std::size_t i = 1; i <= columns; ++i) {
    list += (i > 1 ? ", k" : "k") + std::to_string(i);
    texts += (i > 1 ? ", k" : "k") + std::to_string(i) + "::text";
  }
  // Each key with the rows before it; of the keys but the first, the one that divides best.
  KG_TRY(
      const auto rows,
      (*session)->query("WITH counted AS (SELECT " + list + ", count(*) AS n FROM (" + keys + ") k GROUP BY " +
                            list + "), before AS (SELECT *, sum(n) OVER (ORDER BY " + list +
                            ") - n AS rows_before, sum(n) OVER () AS total FROM counted) SELECT " + texts +
                            " FROM before WHERE rows_before > 0 ORDER BY abs(2 * rows_before - total), "
                            "rows_before LIMIT 1",
                        {}, deadline));
  if (rows.empty()) return no_middle;
  Bound at;
  for (const auto& column : rows[0]) at.push_back(BoundColumn::value(column.value_or("")));
  return at;
}

}  // namespace kintsugi::splitmerge
