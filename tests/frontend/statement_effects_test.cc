#include "frontend/statement_effects.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(flags("SET search_path = a, b"), kMaySet);
  EXPECT_EQ(flags("set session time zone 'UTC'"), kMaySet);
  EXPECT_EQ(flags("SELECT 1; SET x = 1"), kMaySet);
  EXPECT_EQ(flags("RESET ALL"), kMaySet);
  EXPECT_EQ(flags("SET LOCAL x = 1"), kMaySetLocally);
  EXPECT_EQ(flags("SET TRANSACTION READ ONLY"), 0U);
  EXPECT_EQ(flags("SET CONSTRAINTS ALL DEFERRED"), 0U);
  EXPECT_EQ(flags("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"), kMaySet);
}

TEST(StatementEffects, SetConfigByItsArguments) {
  EXPECT_EQ(flags("SELECT set_config('x', 'y', false)"), kMaySet);
  EXPECT_EQ(flags("SELECT pg_catalog.set_config('x', 'y', true)"), kMaySetLocally);
  EXPECT_EQ(flags("SELECT set_config('x', f(1, true), false)"), kMaySet);
  EXPECT_EQ(flags("SELECT set_config($1, $2, true)"), kMaySetLocally);
  EXPECT_EQ(flags("SELECT set_config($1, $2, $3)"), kMaySet | kPinsForGood);
  EXPECT_EQ(flags("SELECT set_config('a' || 'b', 'y', false)"), kMaySet | kPinsForGood);
  EXPECT_EQ(flags("SELECT set_config('a', set_config($1, 'y', false), true)"),
            kMaySet | kPinsForGood | kMaySetLocally);
  EXPECT_EQ(flags("SELECT \"set_config\"('a', 'b', false)"), kMaySet);
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

}  // namespace
}  // namespace kintsugi::frontend
