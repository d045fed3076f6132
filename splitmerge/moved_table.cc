#include "splitmerge/moved_table.h"

#include "base/sql_quote.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgRow;
using shardmap::PgSession;
using shardmap::SqlValue;

// A type with a hash of its own is hashed as it is; of the others, and of texts whose collation takes different
// bytes for the same, the text is.
constexpr const char* kColumns =
    "SELECT quote_ident(a.attname), a.attgenerated <> '', CASE WHEN NOT coalesce(l.collisdeterministic, true) "
    "THEN quote_ident(a.attname) || '::text COLLATE \"C\"' WHEN a.atttypid = 'varchar'::regtype OR EXISTS "
    "(SELECT FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod WHERE m.amname = 'hash' AND o.opcdefault "
    "AND o.opcintype = a.atttypid) THEN quote_ident(a.attname) ELSE quote_ident(a.attname) || '::text' END "
    "FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation WHERE a.attrelid = "
    "$1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname COLLATE \"C\"";

// Each relation with rows, how its rows are identified, and whether that tells the key ($2: its columns'
// names). A DEFERRABLE primary key identifies nothing: PostgreSQL would refuse every UPDATE of a published
// table.
constexpr const char* kLeaves =
    "SELECT format('%I.%I', n.nspname, c.relname), c.relreplident, CASE c.relreplident WHEN 'd' THEN 'DEFAULT' "
    "WHEN 'n' THEN 'NOTHING' WHEN 'f' THEN 'FULL' ELSE 'USING INDEX ' || quote_ident(x.relname) END, "
    "c.relreplident = 'f' OR coalesce((SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND "
    "a.attnum = ANY (i.indkey) AND a.attname = ANY ($2::text[])) = cardinality($2::text[]), false), EXISTS "
    "(SELECT FROM pg_index p WHERE p.indrelid = c.oid AND p.indisprimary AND p.indimmediate), "
    "greatest(c.reltuples, 0), c.relkind = 'p', c.oid FROM "
    "(SELECT $1::text::regclass AS relid UNION SELECT relid FROM pg_partition_tree($1::text::regclass)) t JOIN "
    "pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_index i ON "
    "i.indrelid = c.oid AND i.indimmediate AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN "
    "i.indisreplident ELSE false END LEFT JOIN pg_class x ON x.oid = i.indexrelid WHERE c.relkind IN ('r', "
    "'p') ORDER BY 1";

// Rows without a primary key are found by comparing all columns, each by its type's equality: whether all have
// one.
constexpr const char* kComparable =
    "WITH RECURSIVE t (oid) AS (SELECT atttypid FROM pg_attribute WHERE attrelid = $1::text::regclass AND "
    "attnum "
    "> 0 AND NOT attisdropped UNION SELECT x.part FROM t JOIN pg_type p ON p.oid = t.oid CROSS JOIN LATERAL "
    "(SELECT p.typbasetype WHERE p.typtype = 'd' UNION ALL SELECT p.typelem WHERE p.typcategory = 'A' UNION "
    "ALL "
    "SELECT f.atttypid FROM pg_attribute f WHERE f.attrelid = p.typrelid AND p.typtype = 'c' AND f.attnum > 0 "
    "AND NOT f.attisdropped) x (part)), comparable (oid) AS (SELECT o.opcintype FROM pg_opclass o JOIN pg_am m "
    "ON m.oid = o.opcmethod WHERE m.amname IN ('btree', 'hash') AND o.opcdefault) SELECT NOT EXISTS (SELECT "
    "FROM t JOIN pg_type p ON p.oid = t.oid WHERE p.typtype = 'b' AND p.typcategory <> 'A' AND p.oid NOT IN "
    "(SELECT oid FROM comparable UNION ALL SELECT k.castsource FROM pg_cast k JOIN comparable c ON c.oid = "
    "k.casttarget WHERE k.castmethod = 'b' AND k.castcontext = 'i'))";

// What keeps a relation from being followed, and from being moved.
constexpr const char* kObstacles =
    "SELECT concat_ws(' and ', CASE WHEN c.relpersistence = 'u' THEN 'is unlogged' END, CASE WHEN EXISTS "
    "(SELECT FROM "
    "pg_index p JOIN pg_attribute a ON a.attrelid = p.indrelid AND a.attnum = ANY (p.indkey) WHERE p.indrelid "
    "= c.oid "
    "AND p.indisprimary AND a.attgenerated <> '') THEN 'has a generated column in its primary key' END), "
    "concat_ws(' "
    "and ', (SELECT 'has trigger ' || string_agg(quote_ident(t.tgname), ', ') || ', which fires for moved rows "
    "too "
    "(ENABLE ALWAYS or REPLICA)' FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND "
    "t.tgenabled IN "
    "('A', 'R') AND t.tgname NOT LIKE 'kintsugi\\_fence\\_%' HAVING count(*) > 0), (SELECT 'has rule ' || "
    "string_agg(quote_ident(r.rulename), ', ') || ', which is applied to moved rows too (ENABLE ALWAYS or "
    "REPLICA)' FROM pg_rewrite r WHERE r.ev_class = c.oid AND r.ev_type <> '1' AND r.ev_enabled IN ('A', 'R') "
    "HAVING count(*) > 0), CASE WHEN EXISTS (SELECT FROM "
    "pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid WHERE i.inhparent = c.oid AND NOT k.relispartition) "
    "THEN 'has "
    "tables that inherit from it' END) FROM pg_class c WHERE c.oid = $1::text::regclass";

// Types whose binary form tells a server's own numbers of types and relations, or that have none.
constexpr const char* kAsText =
    "WITH RECURSIVE t (oid) AS (SELECT atttypid FROM pg_attribute WHERE attrelid = $1::text::regclass AND "
    "attnum > 0 "
    "AND NOT attisdropped UNION SELECT x.part FROM t JOIN pg_type p ON p.oid = t.oid CROSS JOIN LATERAL "
    "(SELECT "
    "p.typbasetype WHERE p.typtype = 'd' UNION ALL SELECT p.typelem WHERE p.typcategory = 'A' UNION ALL SELECT "
    "r.rngsubtype FROM pg_range r WHERE p.oid IN (r.rngtypid, r.rngmultitypid)) x (part)) SELECT EXISTS "
    "(SELECT FROM t "
    "JOIN pg_type p ON p.oid = t.oid WHERE p.typtype = 'c' OR (p.typcategory = 'A' AND p.typelem >= 16384) OR "
    "p.typsend "
    "= 0 OR p.typreceive = 0 OR (p.typname LIKE 'reg%' AND p.typnamespace = 'pg_catalog'::regnamespace))";

constexpr const char* kSequences =
    "SELECT format('%I.%I', n.nspname, s.relname) FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND "
    "s.relkind = 'S' JOIN pg_namespace n ON n.oid = s.relnamespace WHERE d.classid = 'pg_class'::regclass AND "
    "d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.refobjid IN (SELECT "
    "$1::text::regclass UNION SELECT relid FROM pg_partition_tree($1::text::regclass)) ORDER BY 1";

// The columns of the index that identifies the rows of the table itself, with the equality of each.
constexpr const char* kRowKey =
    "SELECT a.attname, format_type(a.atttypid, a.atttypmod), format('OPERATOR(%I.%s)', n.nspname, o.oprname) "
    "FROM "
    "pg_class r JOIN pg_index i ON i.indrelid = r.oid AND CASE r.relreplident WHEN 'i' THEN i.indisreplident "
    "ELSE "
    "i.indisprimary END CROSS JOIN LATERAL generate_series(0, i.indnkeyatts - 1) k JOIN pg_attribute a ON "
    "a.attrelid = r.oid AND a.attnum = i.indkey[k] JOIN pg_opclass c ON c.oid = i.indclass[k] JOIN pg_amop m "
    "ON "
    "m.amopfamily = c.opcfamily AND m.amopstrategy = 3 AND m.amoplefttype = c.opcintype AND m.amoprighttype = "
    "c.opcintype JOIN pg_operator o ON o.oid = m.amopopr JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE "
    "r.oid "
    "= $1::text::regclass ORDER BY k";
constexpr const char* kShardingKey =
    "SELECT a.attname, format_type(a.atttypid, a.atttypmod), 'OPERATOR(pg_catalog.=)' FROM pg_attribute a "
    "WHERE "
    "a.attrelid = $1::text::regclass AND a.attname = ANY ($2::text[])";

constexpr const char* kVersion =
    "SELECT md5(coalesce(string_agg(line, ';' ORDER BY line), '')) FROM (SELECT format('%s %s %s', c.oid, "
    "c.relfilenode, (SELECT string_agg(format('%s %s %s %s', a.attnum, a.attname, a.atttypid, a.atttypmod), "
    "',' "
    "ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0)) AS line FROM "
    "unnest($1::text[]) name, LATERAL (SELECT to_regclass(name)::oid UNION SELECT relid FROM "
    "pg_partition_tree(to_regclass(name))) t(relid) JOIN pg_class c ON c.oid = t.relid) lines";

constexpr const char* kShape =
    "WITH r AS (SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name FROM (SELECT $1::text::regclass AS "
    "relid UNION SELECT relid FROM pg_partition_tree($1::text::regclass)) t JOIN pg_class c ON c.oid = t.relid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace) SELECT line FROM (SELECT format('relation %s kind %s row "
    "security %s %s partition %s of %s', name, relkind, relrowsecurity, relforcerowsecurity, "
    "pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid)) AS line FROM r UNION ALL SELECT format('column "
    "%s.%I %s%s%s%s%s', r.name, a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN ' "
    "NOT NULL' END, CASE WHEN l.collname <> 'default' THEN ' COLLATE ' || l.collname END, CASE WHEN "
    "a.attidentity <> '' THEN ' IDENTITY ' || a.attidentity::text END, CASE WHEN a.attgenerated <> '' THEN ' "
    "GENERATED ' || pg_get_expr(d.adbin, d.adrelid) WHEN d.adbin IS NOT NULL THEN ' DEFAULT ' || "
    "pg_get_expr(d.adbin, d.adrelid) END) FROM r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 "
    "AND NOT a.attisdropped LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum LEFT JOIN "
    "pg_collation l ON l.oid = a.attcollation UNION ALL SELECT format('constraint %s.%I %s', r.name, "
    "k.conname, pg_get_constraintdef(k.oid)) FROM r JOIN pg_constraint k ON k.conrelid = r.oid UNION ALL "
    "SELECT format('index %s', pg_get_indexdef(i.indexrelid)) FROM r JOIN pg_index i ON i.indrelid = r.oid "
    "UNION ALL SELECT format('trigger %s %s', pg_get_triggerdef(g.oid), g.tgenabled) FROM r JOIN pg_trigger g "
    "ON g.tgrelid = r.oid AND NOT g.tgisinternal AND g.tgname NOT LIKE 'kintsugi\\_fence\\_%' UNION ALL SELECT "
    "format('rule %s %s', pg_get_ruledef(w.oid), w.ev_enabled) FROM r JOIN pg_rewrite w ON w.ev_class = r.oid "
    "UNION ALL SELECT "
    "format('policy %s.%I %s %s %s %s', r.name, p.polname, p.polcmd, p.polpermissive, pg_get_expr(p.polqual, "
    "p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) FROM r JOIN pg_policy p ON p.polrelid = r.oid) "
    "lines ORDER BY line COLLATE \"C\"";

Result<LookupKey> row_key_of(PgSession& session, const MovedTable& moved, Deadline deadline) {
  LookupKey key;
  KG_TRY(auto rows, session.query(kRowKey, {SqlValue::text(moved.name)}, deadline));
  if (rows.empty()) {
    key.unique = false;
    KG_TRY(rows,
           session.query(kShardingKey, {SqlValue::text(moved.name), SqlValue::text(array_of(moved.table.key))},
                         deadline));
  }
  for (const PgRow& row : rows) {
    key.columns.push_back(*row[0]);
    key.names.push_back(quote_identifier(*row[0]));
    key.types.push_back(*row[1]);
    key.operators.push_back(*row[2]);
  }
  return key;
}

Result<MovedTable> describe_rows(PgSession& session, const shardmap::Table& table, Deadline deadline) {
  MovedTable moved;
  moved.table = table;
  moved.name = quote_identifier(table.schema) + "." + quote_identifier(table.name);
  moved.inside = "true";
  for (const std::string& column : table.key) moved.key.push_back(quote_identifier(column));
  KG_TRY(const auto there,
         session.query("SELECT to_regclass($1)::oid", {SqlValue::text(moved.name)}, deadline));
  if (!there.at(0).at(0)) return fail("42P01", "table " + table.display() + " does not exist on the shard");
  moved.number = *there[0][0];
  KG_TRY(const auto columns, session.query(kColumns, {SqlValue::text(moved.name)}, deadline));
  std::string parts;
  for (const PgRow& row : columns) {
    if (row[1] != "t") moved.columns.push_back(*row[0]);
    parts += (parts.empty() ? "" : ", ") + *row[2];
  }
  moved.checksum = "hash_record_extended(ROW(" + parts + "), 0)";
  KG_TRY(const auto leaves,
         session.query(kLeaves, {SqlValue::text(moved.name), SqlValue::text(array_of(table.key))}, deadline));
  for (const PgRow& row : leaves) {
    Leaf leaf{*row[0], *row[7], row[3] == "t", *row[2], row[4] == "t", "", ""};
    KG_TRY(const auto obstacles, session.query(kObstacles, {SqlValue::text(leaf.name)}, deadline));
    leaf.not_followed = *obstacles.at(0).at(0);
    leaf.not_moved = *obstacles[0][1];
    const bool by_all_columns = !leaf.identified || row[1] == "f";
    leaf.can_be_full = leaf.can_be_full || !by_all_columns;
    if (!leaf.can_be_full) {
      KG_TRY(const auto comparable, session.query(kComparable, {SqlValue::text(leaf.name)}, deadline));
      leaf.can_be_full = comparable.at(0).at(0) == "t";
    }
    if (row[6] == "t") {
      moved.parents.push_back(leaf);
      continue;
    }
    moved.leaves.push_back(leaf);
    moved.rows_estimate += std::stod(*row[5]);
  }
  KG_TRY(const auto as_text, session.query(kAsText, {SqlValue::text(moved.name)}, deadline));
  moved.as_text = as_text.at(0).at(0) == "t";
  KG_TRY(moved.row_key, row_key_of(session, moved, deadline));
  KG_TRY(const auto sequences, session.query(kSequences, {SqlValue::text(moved.name)}, deadline));
  for (const PgRow& row : sequences) moved.sequences.push_back(*row[0]);
  return moved;
}

}  // namespace

std::string array_of(const std::vector<std::string>& names) {
  std::string out = "{";
  for (const std::string& name : names) {
    out += out.size() > 1 ? ",\"" : "\"";
    for (const char c : name) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

std::string list_of(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

Result<std::vector<MovedTable>> describe(PgSession& session, const shardmap::Mapping& mapping,
                                         const std::vector<shardmap::Table>& tables,
                                         const std::vector<shardmap::KeyRange>& ranges, Deadline deadline) {
  std::vector<MovedTable> all;
  for (const shardmap::Table& table : tables) {
    KG_TRY(MovedTable moved, describe_rows(session, table, deadline));
    KG_TRY(moved.inside, inside_ranges(mapping, moved.key, ranges));
    all.push_back(std::move(moved));
  }
  return all;
}

Result<MovedTable> describe_whole(PgSession& session, const shardmap::Table& table, Deadline deadline) {
  return describe_rows(session, table, deadline);
}

Result<std::string> inside_of(const std::string& row, const MovedTable& table, const shardmap::Mapping& mapping,
                              const std::vector<shardmap::KeyRange>& ranges) {
  std::vector<std::string> columns;
  for (const std::string& column : table.key) columns.push_back(row + "." + column);
  return inside_ranges(mapping, columns, ranges);
}

Result<std::string> version_of(PgSession& session, const std::vector<MovedTable>& tables, Deadline deadline) {
  std::vector<std::string> names;
  for (const MovedTable& table : tables) names.push_back(table.name);
  KG_TRY(const auto rows, session.query(kVersion, {SqlValue::text(array_of(names))}, deadline));
  return *rows.at(0).at(0);
}

Result<std::vector<std::string>> shape_of(PgSession& session, const std::string& name, Deadline deadline) {
  std::vector<std::string> lines;
  KG_TRY(const auto there,
         session.query("SELECT to_regclass($1) IS NOT NULL", {SqlValue::text(name)}, deadline));
  if (there.at(0).at(0) != "t") return lines;
  KG_TRY(const auto rows, session.query(kShape, {SqlValue::text(name)}, deadline));
  for (const PgRow& row : rows) lines.push_back(*row[0]);
  return lines;
}

}  // namespace kintsugi::splitmerge
