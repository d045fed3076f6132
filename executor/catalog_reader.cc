#include "executor/catalog_reader.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "shardmap/pg_session.h"

namespace kintsugi::executor {
namespace {

using planner::Column;
using planner::Relation;
using planner::RelationKind;
using shardmap::PgRow;
using shardmap::PgSession;

// Names in definitions come out qualified, and the snapshot is one.
constexpr const char* kBegin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = ''";

constexpr const char* kSchemas =
    "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname !~ '^pg_(toast|temp)'";

constexpr const char* kRelations = R"(
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relispartition,
       CASE WHEN c.relkind IN ('v', 'm') AND c.oid >= 16384 THEN pg_catalog.pg_get_viewdef(c.oid) END,
       CASE WHEN c.relkind IN ('i', 'I') THEN
              (SELECT tn.nspname || '.' || t.relname FROM pg_catalog.pg_index i
                 JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
                 JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace WHERE i.indexrelid = c.oid)
            WHEN c.relkind = 'S' THEN
              (SELECT tn.nspname || '.' || t.relname FROM pg_catalog.pg_depend d
                 JOIN pg_catalog.pg_class t ON t.oid = d.refobjid
                 JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
                WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid
                  AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.deptype IN ('a', 'i') LIMIT 1) END,
       c.relrowsecurity
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname !~ '^pg_(toast|temp)' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'i', 'I', 'c')
   AND NOT (n.nspname = 'pg_catalog' AND c.relkind IN ('i', 'I')))";

constexpr const char* kColumns = R"(
SELECT a.attrelid, a.attname, a.atttypid, pg_catalog.format_type(a.atttypid, a.atttypmod),
       (SELECT l.collname FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation),
       CASE WHEN a.atthasdef THEN (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d
                                    WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum)
            ELSE (SELECT t.typdefault FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid AND t.typtype = 'd') END,
       a.attnotnull, a.attgenerated <> '', a.attidentity
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
   AND n.nspname !~ '^pg_(toast|temp)'
 ORDER BY a.attrelid, a.attnum)";

constexpr const char* kKeys = R"(
SELECT i.indrelid, i.indexrelid, i.indisprimary, a.attname
  FROM pg_catalog.pg_index i
  CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY k (attnum, position)
  JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
 WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indrelid >= 16384
   AND k.position <= i.indnkeyatts
 ORDER BY i.indrelid, i.indexrelid, k.position)";

constexpr const char* kParents = R"(
SELECT h.inhrelid, n.nspname || '.' || p.relname
  FROM pg_catalog.pg_inherits h JOIN pg_catalog.pg_class p ON p.oid = h.inhparent
  JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace ORDER BY h.inhrelid, h.inhseqno)";

constexpr const char* kTriggers = R"(
SELECT t.tgrelid, n.nspname || '.' || p.proname
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
 WHERE NOT t.tgisinternal AND n.nspname NOT IN ('pg_catalog', 'kintsugi') ORDER BY t.tgrelid, t.tgname)";

// And, as functions of kind 'o', the users' operators for built-in types that have a name which the planner
// goes by: IN, BETWEEN, USING and LIKE are such, too.
constexpr const char* kFunctions = R"(
SELECT n.nspname, p.proname, p.prokind, p.provolatile, p.proretset, l.lanname NOT IN ('internal', 'c'), p.prorettype,
       CASE WHEN n.nspname IN ('pg_catalog', 'information_schema') OR l.lanname IN ('internal', 'c') THEN NULL
            WHEN p.prosqlbody IS NOT NULL THEN pg_catalog.pg_get_function_sqlbody(p.oid) ELSE p.prosrc END
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  JOIN pg_catalog.pg_language l ON l.oid = p.prolang WHERE n.nspname !~ '^pg_(toast|temp)'
UNION ALL
SELECT n.nspname, o.oprname, 'o', 'i', false, false, o.oprresult, NULL
  FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
 WHERE o.oid >= 16384 AND o.oprleft < 16384 AND o.oprright < 16384
   AND (o.oprname IN ('=', '<>', '<', '<=', '>', '>=', '~~', '!~~', '~~*', '!~~*')
        OR (o.oprname IN ('+', '-', '*', '/', '%') AND o.oprleft IN (0, 20, 21, 23, 700, 701, 1700)
            AND o.oprright IN (20, 21, 23, 700, 701, 1700))))";

constexpr const char* kTypes = R"(
SELECT t.oid, n.nspname, t.typname, t.typtype,
       CASE WHEN t.typbasetype <> 0 THEN t.typbasetype WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END,
       CASE WHEN t.typtype = 'd' THEN t.typdefault END
  FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
 WHERE n.nspname !~ '^pg_(toast|temp)')";

// The rows' own versions: a definition writes new ones. Without the system's own, which never change.
constexpr const char* kMark = R"(
SELECT pg_catalog.concat_ws(',',
  (SELECT sum(pg_catalog.hashtextextended(oid::text || ' ' || xmin::text, 1)) FROM pg_catalog.pg_class
    WHERE oid >= 16384 AND relkind <> 't' AND relnamespace <> 'pg_catalog'::regnamespace AND relpersistence <> 't'),
  (SELECT sum(pg_catalog.hashtextextended(a.attrelid::text || ' ' || a.attnum || ' ' || a.xmin::text, 2))
     FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    WHERE a.attrelid >= 16384 AND a.attnum > 0 AND c.relpersistence <> 't'),
  (SELECT sum(pg_catalog.hashtextextended(oid::text || ' ' || xmin::text, 3)) FROM pg_catalog.pg_proc
    WHERE oid >= 16384),
  (SELECT sum(pg_catalog.hashtextextended(oid::text || ' ' || xmin::text, 4)) FROM pg_catalog.pg_namespace),
  (SELECT sum(pg_catalog.hashtextextended(d.oid::text || ' ' || d.xmin::text, 5))
     FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_class c ON c.oid = d.adrelid WHERE c.relpersistence <> 't'),
  (SELECT sum(pg_catalog.hashtextextended(oid::text || ' ' || xmin::text, 6)) FROM pg_catalog.pg_rewrite
    WHERE oid >= 16384),
  (SELECT sum(pg_catalog.hashtextextended(oid::text || ' ' || xmin::text, 7)) FROM pg_catalog.pg_trigger
    WHERE NOT tgisinternal),
  (SELECT sum(pg_catalog.hashtextextended(oid::text || ' ' || xmin::text, 8)) FROM pg_catalog.pg_operator
    WHERE oid >= 16384),
  (SELECT sum(pg_catalog.hashtextextended(oid::text || ' ' || xmin::text, 9)) FROM pg_catalog.pg_type
    WHERE oid >= 16384 AND typtype = 'd')))";

std::string text(const std::optional<std::string>& value) {
  return value.value_or("");
}

std::uint32_t oid(const std::optional<std::string>& value) {
  std::uint32_t number = 0;
  if (value) std::from_chars(value->data(), value->data() + value->size(), number);
  return number;
}

bool truth(const std::optional<std::string>& value) {
  return value && *value == "t";
}

char letter(const std::optional<std::string>& value) {
  return value && !value->empty() ? value->front() : '\0';
}

RelationKind kind_of(char relkind) {
  switch (relkind) {
    case 'p': return RelationKind::kPartitioned;
    case 'v': return RelationKind::kView;
    case 'm': return RelationKind::kMaterializedView;
    case 'f': return RelationKind::kForeignTable;
    case 'S': return RelationKind::kSequence;
    case 'i':
    case 'I': return RelationKind::kIndex;
    case 'c': return RelationKind::kComposite;
    default: return RelationKind::kTable;
  }
}

class Reading {
 public:
  Reading(PgSession& session, Deadline deadline) : session_(session), deadline_(deadline) {}

  Status relations() {
    KG_TRY(const auto rows, query(kRelations));
    for (const PgRow& row : rows) {
      Relation relation;
      relation.oid = oid(row[0]);
      relation.schema = text(row[1]);
      relation.name = text(row[2]);
      relation.kind = kind_of(letter(row[3]));
      relation.is_partition = truth(row[4]);
      relation.definition = text(row[5]);
      relation.owned_by = text(row[6]);
      relation.row_security = truth(row[7]);
      by_oid_.emplace(relation.oid, std::move(relation));
    }
    return {};
  }

  Status columns() {
    KG_TRY(const auto rows, query(kColumns));
    for (const PgRow& row : rows) {
      auto at = by_oid_.find(oid(row[0]));
      if (at == by_oid_.end()) continue;
      Column column;
      column.name = text(row[1]);
      column.type = oid(row[2]);
      column.type_name = text(row[3]);
      column.collation = text(row[4]);
      column.default_expression = text(row[5]);
      column.not_null = truth(row[6]);
      column.generated = truth(row[7]);
      column.identity = letter(row[8]);
      at->second.columns.push_back(std::move(column));
    }
    return {};
  }

  Status keys() {
    KG_TRY(const auto rows, query(kKeys));
    std::uint32_t index = 0;
    for (const PgRow& row : rows) {
      auto at = by_oid_.find(oid(row[0]));
      if (at == by_oid_.end()) continue;
      Relation& relation = at->second;
      if (truth(row[2])) {
        relation.primary_key.push_back(text(row[3]));
        continue;
      }
      if (oid(row[1]) != index) relation.unique_keys.emplace_back();
      index = oid(row[1]);
      relation.unique_keys.back().push_back(text(row[3]));
    }
    return {};
  }

  Status parents() {
    KG_TRY(const auto rows, query(kParents));
    for (const PgRow& row : rows) {
      if (auto at = by_oid_.find(oid(row[0])); at != by_oid_.end()) at->second.parents.push_back(text(row[1]));
    }
    return {};
  }

  Status triggers() {
    KG_TRY(const auto rows, query(kTriggers));
    for (const PgRow& row : rows)
      if (auto at = by_oid_.find(oid(row[0])); at != by_oid_.end()) at->second.triggers.push_back(text(row[1]));
    return {};
  }

  Status functions() {
    KG_TRY(const auto rows, query(kFunctions));
    for (const PgRow& row : rows) {
      planner::Function function;
      function.schema = text(row[0]);
      function.name = text(row[1]);
      function.kinds = text(row[2]);
      function.volatility = letter(row[3]);
      function.returns_set = truth(row[4]);
      function.reads_tables = truth(row[5]) && function.volatility != 'i';
      function.returns = oid(row[6]);
      if (function.reads_tables) function.body = text(row[7]);
      builder_.add_function(std::move(function));
    }
    return {};
  }

  Status types() {
    KG_TRY(const auto rows, query(kTypes));
    for (const PgRow& row : rows)
      builder_.add_type({oid(row[0]), text(row[1]), text(row[2]), letter(row[3]), oid(row[4]), text(row[5])});
    return {};
  }

  Status schemas() {
    KG_TRY(const auto rows, query(kSchemas));
    for (const PgRow& row : rows) builder_.add_schema(text(row[0]));
    return {};
  }

  planner::CatalogPtr finish() {
    for (auto& [number, relation] : by_oid_) builder_.add_relation(std::move(relation));
    return builder_.finish();
  }

 private:
  Result<std::vector<PgRow>> query(const char* sql) { return session_.query(sql, {}, deadline_); }

  PgSession& session_;
  Deadline deadline_;
  planner::CatalogBuilder builder_;
  std::unordered_map<std::uint32_t, Relation> by_oid_;
};

}  // namespace

Result<planner::CatalogPtr> read_catalog(PgSession& session, Deadline deadline) {
  KG_CHECK(session.script(kBegin, deadline));
  Reading reading(session, deadline);
  const auto read = [&reading]() -> Status {
    KG_CHECK(reading.schemas());
    KG_CHECK(reading.relations());
    KG_CHECK(reading.columns());
    KG_CHECK(reading.keys());
    KG_CHECK(reading.parents());
    KG_CHECK(reading.triggers());
    KG_CHECK(reading.functions());
    return reading.types();
  };
  Status done = read();
  Status ended = session.good() ? session.script("COMMIT", deadline) : Status{};
  KG_CHECK(std::move(done));
  KG_CHECK(std::move(ended));
  return reading.finish();
}

Result<std::string> schema_mark(PgSession& session, Deadline deadline) {
  KG_TRY(const auto rows, session.query(kMark, {}, deadline));
  return rows.empty() || rows.front().empty() ? std::string() : rows.front().front().value_or("");
}

}  // namespace kintsugi::executor
