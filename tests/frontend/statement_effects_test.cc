#include "frontend/statement_effects.h"

#include <gtest/gtest.h>

#include <random>

#include "frontend/plain_statement.h"

namespace kintsugi::frontend {
namespace {

std::uint32_t flags(std::string_view text) {
  return effects_of(text).flags;
}

TEST(StatementEffects, OrdinaryStatementsLeaveNothing) {
  for (const char* text : {"SELECT abalance FROM pgbench_accounts WHERE aid = 1", "BEGIN", "SAVEPOINT a",
                           "INSERT INTO t VALUES (1, 'SET x = 1; LISTEN a')", "SELECT 1 -- LISTEN a\n",
                           "UPDATE t SET a = 1", "SELECT /* pg_advisory_lock(1) */ 1", "SELECT $$LISTEN a$$",
                           "SELECT pg_advisory_xact_lock(1)", "NOTIFY a", "COPY t FROM STDIN", ""}) {
    EXPECT_EQ(flags(text), 0U) << text;
  }
}

TEST(StatementEffects, SettingsThatOutliveTheTransaction) {
  EXPECT_EQ(flags("SET search_path = a, b"), kMaySet | kMayRename);
  EXPECT_EQ(flags("SET LOCAL ROLE a"), kMaySetLocally | kMayRename);
  EXPECT_EQ(flags("SELECT set_config('search_path', 'a', true)"),
            kMaySetLocally | kMayRename | kCallsSetConfig);
  EXPECT_EQ(flags("set session time zone 'UTC'"), kMaySet);
  EXPECT_EQ(flags("SELECT 1; SET x = 1"), kMaySet);
  EXPECT_EQ(flags("RESET ALL"), kMaySet | kMayRename);
  EXPECT_EQ(flags("SET LOCAL x = 1"), kMaySetLocally);
  EXPECT_EQ(flags("SET TRANSACTION READ ONLY"), 0U);
  EXPECT_EQ(flags("SET CONSTRAINTS ALL DEFERRED"), 0U);
  EXPECT_EQ(flags("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"), kMaySet);
}

TEST(StatementEffects, SetConfigByItsArguments) {
  EXPECT_EQ(flags("SELECT set_config('x', 'y', false)"), kMaySet | kCallsSetConfig);
  EXPECT_EQ(flags("SELECT pg_catalog.set_config('x', 'y', true)"), kMaySetLocally | kCallsSetConfig);
  EXPECT_EQ(flags("SELECT set_config('x', f(1, true), false)"), kMaySet | kMayCall | kCallsSetConfig);
  EXPECT_EQ(flags("SELECT set_config($1, $2, true)"), kMaySetLocally | kMayRename | kCallsSetConfig);
  EXPECT_EQ(flags("SELECT set_config($1, $2, $3)"), kMaySet | kPinsForGood | kMayRename | kCallsSetConfig);
  EXPECT_EQ(flags("SELECT set_config('a' || 'b', 'y', false)"),
            kMaySet | kPinsForGood | kMayRename | kCallsSetConfig);
  EXPECT_EQ(flags("SELECT set_config('a', set_config($1, 'y', false), true)"),
            kMaySet | kPinsForGood | kMaySetLocally | kMayRename | kCallsSetConfig);
  EXPECT_EQ(flags("SELECT \"set_config\"('a', 'b', false)"), kMaySet | kCallsSetConfig);
}

TEST(StatementEffects, ASettingIsMadeByAnUpdateToo) {
  EXPECT_EQ(flags("UPDATE pg_settings SET setting = '5MB' WHERE name = 'work_mem'"), kMaySet | kMayRename);
  EXPECT_EQ(flags("UPDATE pg_catalog.\"pg_settings\" SET setting = '5MB'"), kMaySet | kMayRename);
  EXPECT_EQ(flags("UPDATE settings SET setting = '5MB'"), 0U);
}

TEST(StatementEffects, CustomSettingsAreNamed) {
  EXPECT_EQ(effects_of("SET app.tenant = '1'").custom_settings, std::vector<std::string>{"app.tenant"});
  EXPECT_EQ(effects_of("SET \"App\".Tenant TO 1").custom_settings, std::vector<std::string>{"App.tenant"});
  EXPECT_EQ(effects_of("SELECT set_config('My.Var', '1', false)").custom_settings,
            std::vector<std::string>{"my.var"});
  EXPECT_TRUE(effects_of("SET search_path = a.b").custom_settings.empty());
  EXPECT_EQ(effects_of("SET LOCAL app.tenant = '1'").local_custom_settings,
            std::vector<std::string>{"app.tenant"});
  EXPECT_EQ(effects_of("SELECT set_config('app.tenant', $1, true)").local_custom_settings,
            std::vector<std::string>{"app.tenant"});
  EXPECT_TRUE(effects_of("SET LOCAL work_mem = 1").local_custom_settings.empty());
}

TEST(StatementEffects, WhatTiesAClientToItsConnection) {
  for (const char* text :
       {"LISTEN a", "CREATE TEMP TABLE t (a int)", "create temporary view v as select 1",
        "SELECT * INTO TEMP t FROM u", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "SELECT pg_advisory_lock(1)",
        "SELECT PG_TRY_ADVISORY_LOCK(1)", "PREPARE a AS SELECT 1", "CREATE TABLE pg_temp.t (a int)"}) {
    EXPECT_TRUE((flags(text) & kMayPin) != 0) << text;
  }
  EXPECT_EQ(flags("PREPARE TRANSACTION 'a'"), 0U);
  EXPECT_EQ(flags("LOAD 'x'"), kPinsForGood);
  EXPECT_EQ(flags("SELECT lastval()"), kReadsSequence);
}

TEST(StatementEffects, SequencesThatTheStatementHasDrawnFrom) {
  for (const char* text :
       {"SELECT nextval('s'), currval('s')", "select 1, pg_catalog.nextval('s'::regclass), 1 + currval('s')",
        "SELECT nextval('s'), lastval() FROM t", "SELECT nextval('s'), nextval('t'), f(currval('s'))"}) {
    EXPECT_TRUE((flags(text) & kDrawsFirst) != 0) << text;
    EXPECT_TRUE((flags(text) & kReadsSequence) != 0) << text;
  }
  for (const char* text :
       {"SELECT currval('s')", "SELECT currval('s'), nextval('s')", "SELECT nextval('s'), currval('t')",
        "SELECT nextval('s') FROM t WHERE currval('s') > 0", "SELECT nextval('s') ORDER BY currval('s')",
        "SELECT CASE WHEN a THEN nextval('s') END, currval('s')", "SELECT f(nextval('s')), currval('s')",
        "SELECT nextval('s' || 't'), currval('s')", "INSERT INTO t (b, a) VALUES (nextval('s'), currval('s'))",
        "SELECT nextval('s'); SELECT currval('s')", "WITH x AS (SELECT 1) SELECT nextval('s'), currval('s')",
        "SELECT a, (SELECT nextval('s')), lastval()"}) {
    EXPECT_EQ(flags(text) & (kDrawsFirst | kReadsSequence), kReadsSequence) << text;
  }
}

TEST(StatementEffects, FunctionsThatAreNotPostgresOwn) {
  for (const char* text :
       {"SELECT f()", "SELECT a.b.f (1)", "SELECT public.lower('a')", "SELECT \"F\"(1)",
        "SELECT 1 WHERE EXISTS (SELECT f(1))", "SELECT DISTINCT ON (a) f(b) FROM t",
        "SELECT * FROM a JOIN b ON f(a.x) = b.y", "INSERT INTO t (a) VALUES (f(1))", "UPDATE t SET a = f(a)",
        "SELECT count(f(a)) FROM t", "SELECT * FROM f() AS t (a)", "SELECT query_to_xml('x')"}) {
    EXPECT_EQ(flags(text), kMayCall) << text;
  }
  for (const char* text :
       {"SELECT count(*), lower(a), pg_catalog.now(), \"upper\"('a') FROM t WHERE a IN (1) AND (b OR (c))",
        "INSERT INTO app.t (a, b) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET (a, b) = (1, 2)",
        "COPY t (a) FROM STDIN", "SELECT * FROM a JOIN (SELECT 1) AS x (y) USING (z) JOIN b ON (a.x = b.x)",
        "WITH x (n) AS (SELECT 1) SELECT n FROM x",
        "SELECT CAST(a AS varchar(10)), coalesce(a, b)::numeric(10, 2), EXTRACT(year FROM now()) FROM t",
        "SELECT sum(a) FILTER (WHERE b) OVER (PARTITION BY c) FROM t GROUP BY GROUPING SETS ((a), ())",
        "SELECT left('abc', 1), 'f(1)' /* f(1) */, x LIKE ('a')",
        "CREATE TABLE IF NOT EXISTS a.t (a character varying (10))", "EXECUTE p (1)",
        "EXPLAIN (ANALYZE) SELECT 1"}) {
    EXPECT_EQ(flags(text), 0U) << text;
  }
}

// The short way may say "read on" for nothing, and never "nothing" of something.
TEST(StatementEffects, TheShortWayOverlooksNothing) {
  const std::vector<std::string_view> pieces = {
      "SELECT",  "set",    "SHOW",   "explain", "execute",    "EXECUTE", "insert",     "INTO", "as",
      "with",    "t",      "f",      "count",   "in",         "values",  "set_config", "hold", "temp",
      "lastval", "commit", "create", "do",      "pg_catalog", "a1",      "1",          "$1",   "$x$",
      "e",       "E'",     "'",      "\"",      "\"f\"",      "U&\"",    "(",          ")",    ",",
      ".",       ";",      "-",      "--",      "/",          "/*",      "*/",         "\n",   " ",
      "  ",      "'a'",    "1e5",    "é",       "&"};
  std::mt19937 random(7);
  std::size_t plain = 0;
  for (int round = 0; round < 300'000; ++round) {
    std::string text = round % 2 == 0 ? "SELECT " : "";
    for (std::size_t i = 0, count = 1 + random() % 9; i < count; ++i) {
      text += pieces[random() % pieces.size()];
      if (random() % 2 == 0) text += ' ';
    }
    if (!leaves_nothing(text)) continue;
    ++plain;
    const StatementEffects effects = effects_by_tokens(text);
    ASSERT_TRUE(effects.flags == 0 && !effects.may_be_own && effects.named.empty()) << text;
  }
  EXPECT_GT(plain, 3'000U);
}

TEST(StatementEffects, TheShortWayIsTheWayOfOrdinaryStatements) {
  for (const char* text :
       {"SELECT abalance FROM pgbench_accounts WHERE aid = 12345;", "UPDATE t SET a = a - 1 WHERE b = $1",
        "INSERT INTO t (a, b) VALUES (1, 'it''s') RETURNING a",
        "SELECT \"u\".\"id\" FROM \"u\" WHERE \"u\".\"name\" = 'x' LIMIT 21",
        "select count(*), coalesce(max(x), 0) / 2 from s.t where y in (1, 2) and z->>'k' = 'v' order by 1",
        "BEGIN", "DELETE FROM t"}) {
    EXPECT_TRUE(leaves_nothing(text)) << text;
  }
}

TEST(StatementEffects, NamesOfPreparedStatementsAreFound) {
  const std::string text = "EXECUTE Foo(1); DEALLOCATE PREPARE \"B\"\"ar\"; DEALLOCATE ALL";
  const StatementEffects effects = effects_of(text);
  ASSERT_EQ(effects.named.size(), 2U);
  EXPECT_EQ(effects.named[0].name, "foo");
  EXPECT_EQ(effects.named[0].range.of(text), "Foo");
  EXPECT_FALSE(effects.named[0].deallocate);
  EXPECT_EQ(effects.named[1].name, "B\"ar");
  EXPECT_EQ(effects.named[1].range.of(text), "\"B\"\"ar\"");
  EXPECT_TRUE(effects.named[1].deallocate);
}

TEST(StatementEffects, NamesInsideOtherStatementsAreFound) {
  for (const char* text :
       {"EXPLAIN EXECUTE p", "explain (analyze, costs off) execute p(1)", "SELECT 1; EXECUTE p",
        "EXPLAIN ANALYZE VERBOSE EXECUTE p", "CREATE TEMP TABLE t AS EXECUTE p(1) WITH NO DATA"}) {
    const StatementEffects effects = effects_of(text);
    ASSERT_EQ(effects.named.size(), 1U) << text;
    EXPECT_EQ(effects.named[0].name, "p") << text;
  }
  for (const char* text : {"GRANT EXECUTE ON FUNCTION f TO a", "SELECT 'EXECUTE p'",
                           "CREATE TRIGGER t AFTER INSERT ON a FOR EACH ROW EXECUTE FUNCTION f()"}) {
    EXPECT_TRUE(effects_of(text).named.empty()) << text;
  }
}

}  // namespace
}  // namespace kintsugi::frontend
