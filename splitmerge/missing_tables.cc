#include "splitmerge/missing_tables.h"

#include <algorithm>

#include "shardmap/sequences.h"
#include "splitmerge/schema_dump.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgSession;
using shardmap::SqlValue;

constexpr const char* kRelations =
    "SELECT format('%I.%I', n.nspname, c.relname) FROM (SELECT $1::text::regclass AS relid UNION SELECT relid "
    "FROM "
    "pg_partition_tree($1::text::regclass)) t JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid "
    "= "
    "c.relnamespace ORDER BY 1";

Result<bool> is_there(PgSession& session, const std::string& name, Deadline deadline) {
  KG_TRY(const auto there,
         session.query("SELECT to_regclass($1) IS NOT NULL", {SqlValue::text(name)}, deadline));
  return there.at(0).at(0) == "t";
}

}  // namespace

Result<std::vector<std::string>> make_missing_tables(const TwoShards& shards, PgSession& source,
                                                     PgSession& target, const std::vector<MovedTable>& tables,
                                                     Deadline deadline) {
  std::vector<const MovedTable*> missing;
  std::vector<std::string> relations, names;
  for (const MovedTable& table : tables) {
    KG_TRY(const bool there, is_there(target, table.name, deadline));
    if (there) continue;
    missing.push_back(&table);
    names.push_back(table.table.display());
    KG_TRY(const auto parts, source.query(kRelations, {SqlValue::text(table.name)}, deadline));
    for (const auto& row : parts) relations.push_back(*row[0]);
  }
  if (missing.empty()) return names;
  KG_TRY(const std::string sql, dump_tables(shards.source.dsn, relations, deadline));
  if (const Status made = apply_schema(shards.target.dsn, sql, deadline); !made) {
    Error error = made.error();
    if (const auto at = error.detail.find("ERROR:");
        at != std::string::npos)  // behind it come the place and a mark
      error.message = error.detail.substr(at, error.detail.find('\n', at) - at);
    error.message = "table " + list_of(names) + (names.size() == 1 ? " is" : " are") + " missing on shard \"" +
                    shards.target.name + "\" and cannot be made there: " + error.message;
    error.hint = "Make what is missing there as it is on shard \"" + shards.source.name +
                 "\", for instance with pg_dump --schema-only from there and psql, and repeat the move.";
    return fail(error);
  }
  // A move that is at its fence there is no matter of this shard.
  KG_TRY(const auto fences,
         target.query(
             "SELECT coalesce(string_agg(format('DROP TRIGGER %I ON %I.%I; ', t.tgname, n.nspname, "
             "c.relname), ''), '') FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN "
             "pg_namespace n ON n.oid = c.relnamespace WHERE t.tgparentid = 0 AND t.tgname LIKE "
             "'kintsugi\\_fence\\_%' AND c.oid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) name)",
             {SqlValue::text(array_of(relations))}, deadline));
  if (!fences.at(0).at(0)->empty()) KG_CHECK(target.script(*fences[0][0], deadline));
  for (const MovedTable* table : missing) {
    KG_TRY(const std::int64_t last, shardmap::last_of_sequences(source, table->name, deadline));
    KG_CHECK(shardmap::count_apart(source, shards.source.id, table->name, last, deadline));
    KG_CHECK(shardmap::count_apart(target, shards.target.id, table->name, last, deadline));
  }
  return names;
}

}  // namespace kintsugi::splitmerge
