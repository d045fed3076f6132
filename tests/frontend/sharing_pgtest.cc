// Clients that share connections, and must not notice: settings, names, what ties a client to its connection.
#include "tests/frontend/front.h"

namespace kintsugi::fronttest {
namespace {

class Sharing : public ::testing::Test {
 protected:
  Front front_{[](Config& config) {
    config.pool.size = 1;
    config.pool.wait_timeout = milliseconds(3000);
  }};
};

TEST_F(Sharing, StartupOptionsOfOneClientAreNotAnothers) {
  RawClient iso(front_.port(), {{"DateStyle", "ISO, YMD"}});
  RawClient german(front_.port(), {{"DateStyle", "German"}});
  RawClient plain(front_.port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(german.value("SELECT date '2020-02-03'"), "03.02.2020");
    EXPECT_EQ(iso.value("SELECT date '2020-02-03'"), "2020-02-03");
    EXPECT_EQ(plain.value("SHOW DateStyle"), "ISO, MDY");
  }
}

TEST_F(Sharing, AClientWaitsForAConnectionOfOtherStartupOptions) {
  RawClient first(front_.port(), {{"DateStyle", "German"}});
  RawClient second(front_.port());
  EXPECT_EQ(first.query("BEGIN"), "C(BEGIN) Z(T)");
  second.send(Batch().query("SELECT 'mine'"));
  EXPECT_EQ(second.within(200), "");
  EXPECT_EQ(first.query("COMMIT"), "C(COMMIT) Z(I)");
  EXPECT_EQ(second.until_ready(), "T D(mine) C(SELECT 1) Z(I)");
}

TEST_F(Sharing, TheSameTextMeansAnotherTableUnderAnotherSearchPath) {
  direct(
      "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t AS SELECT 1 AS x; CREATE TABLE b.t AS SELECT "
      "'two'::text AS y, 3 AS z");
  RawClient a(front_.port(), {{"search_path", "a"}});
  RawClient b(front_.port(), {{"options", "-c search_path=b"}});
  RawClient c(front_.port());
  EXPECT_EQ(c.query("SET search_path = b"), "C(SET) Z(I)");
  for (int i = 0; i < 2; ++i) {
    const std::string name = "n" + std::to_string(i);
    EXPECT_EQ(a.exchange(Batch().parse(name, "SELECT * FROM t").sync()), "1 Z(I)");
    EXPECT_EQ(a.exchange(Batch().bind("", name).execute().sync()), "2 D(1) C(SELECT 1) Z(I)");
    EXPECT_EQ(b.exchange(Batch().parse(name, "SELECT * FROM t").sync()), "1 Z(I)");
    EXPECT_EQ(b.exchange(Batch().bind("", name).execute().sync()), "2 D(two|3) C(SELECT 1) Z(I)");
    EXPECT_EQ(c.exchange(Batch().parse(name, "SELECT * FROM t").sync()), "1 Z(I)");
    EXPECT_EQ(c.exchange(Batch().bind("", name).execute().sync()), "2 D(two|3) C(SELECT 1) Z(I)");
  }
}

TEST_F(Sharing, ExecuteOfAProtocolStatementHasItsEffects) {
  RawClient locker(front_.port());
  EXPECT_EQ(locker.exchange(Batch().parse("lock", "SELECT pg_advisory_lock(99)::text").sync()), "1 Z(I)");
  EXPECT_EQ(locker.query("EXECUTE lock"), "T D() C(SELECT 1) Z(I)");
  EXPECT_EQ(direct("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "1");
  locker.close();
  RawClient next(front_.port());
  EXPECT_EQ(next.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
}

TEST_F(Sharing, ExplainAndCreateTableAsRunAProtocolStatement) {
  RawClient here(front_.port());
  RawClient straight(cluster().port());
  for (RawClient* client : {&straight, &here}) {
    EXPECT_EQ(client->exchange(Batch().parse("shown", "SELECT 7 AS seven").sync()), "1 Z(I)");
    EXPECT_EQ(client->value("EXPLAIN (COSTS OFF) EXECUTE shown"), "Result");
    EXPECT_EQ(client->query("BEGIN; CREATE TEMP TABLE made ON COMMIT DROP AS EXECUTE shown"),
              "C(BEGIN) C(SELECT 1) Z(T)");
    EXPECT_EQ(client->value("SELECT seven FROM made"), "7");
    EXPECT_EQ(client->query("COMMIT"), "C(COMMIT) Z(I)");
    EXPECT_EQ(client->exchange(Batch().run("EXPLAIN (COSTS OFF) EXECUTE shown").sync()),
              "1 2 D(Result) C(EXPLAIN) Z(I)");
    EXPECT_EQ(client->query("EXPLAIN EXECUTE nothing"), "E(26000) Z(I)");
  }
}

// The same text is two statements where names mean two things.
TEST_F(Sharing, ATextPreparedUnderALocalSearchPathIsAnother) {
  direct(
      "CREATE SCHEMA IF NOT EXISTS local_path; DROP TABLE IF EXISTS local_path.lp, public.lp;"
      "CREATE TABLE public.lp AS SELECT 1 AS a; CREATE TABLE local_path.lp AS SELECT 'x'::text AS b, 2 AS c");
  RawClient here(front_.port());
  RawClient straight(cluster().port());
  for (const char* set : {"SET LOCAL search_path = local_path", "SET search_path = local_path",
                          "SELECT set_config('search_path', 'local_path', true)"}) {
    for (RawClient* client : {&straight, &here}) {
      EXPECT_EQ(client->exchange(Batch().parse("out", "SELECT * FROM lp").bind("", "out").execute().sync()),
                "1 2 D(1) C(SELECT 1) Z(I)");
      client->query("BEGIN");
      client->query(set);
      EXPECT_EQ(client->exchange(Batch().parse("in", "SELECT * FROM lp").bind("", "in").execute().sync()),
                "1 2 D(x|2) C(SELECT 1) Z(T)")
          << set;
      EXPECT_EQ(client->query("ROLLBACK"), "C(ROLLBACK) Z(I)");
      EXPECT_EQ(client->exchange(Batch().bind("", "out").execute().sync()), "2 D(1) C(SELECT 1) Z(I)") << set;
      EXPECT_EQ(client->exchange(Batch().close('S', "in").close('S', "out").sync()), "3 3 Z(I)");
    }
  }
}

// Functions that are called by an ordinary SELECT, in every protocol.
TEST_F(Sharing, WhatAFunctionLeavesBehindStaysWithItsClient) {
  direct(
      "CREATE OR REPLACE FUNCTION leave_setting() RETURNS text LANGUAGE plpgsql AS"
      " $$ BEGIN SET work_mem = '11MB'; RETURN 'x'; END $$;"
      "CREATE OR REPLACE FUNCTION leave_custom() RETURNS text LANGUAGE plpgsql AS"
      " $$ BEGIN PERFORM set_config('app.who', 'me', false); RETURN 'x'; END $$;"
      "CREATE OR REPLACE FUNCTION leave_by_another() RETURNS text LANGUAGE sql AS"
      " $$ SELECT leave_setting() $$;"
      "CREATE OR REPLACE FUNCTION leave_lock() RETURNS text LANGUAGE sql AS"
      " $$ SELECT pg_advisory_lock_shared(77)::text $$;"
      "CREATE OR REPLACE FUNCTION leave_listen() RETURNS text LANGUAGE plpgsql AS"
      " $$ BEGIN LISTEN calls; RETURN 'x'; END $$");
  const std::vector<std::pair<std::string, std::string>> all = {
      {"leave_setting()", "SHOW work_mem"},
      {"public.leave_by_another()", "SHOW work_mem"},
      {"\"leave_custom\"()", "SELECT coalesce(nullif(current_setting('app.who', true), ''), 'nobody')"},
      {"leave_lock()", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"},
      {"leave_listen()", "SELECT count(*) FROM pg_listening_channels()"},
  };
  Front front([](Config& config) { config.pool.size = 2; });  // one may be pinned
  for (const auto& [call, look] : all) {
    for (const int how : {0, 1, 2}) {
      RawClient one(front.port());
      RawClient two(front.port());
      RawClient straight(cluster().port());
      const std::string untouched = straight.value(look);
      straight.query("SELECT " + call);
      const std::string touched = straight.value(look);
      ASSERT_NE(untouched, touched) << look;
      const std::string sql = "SELECT length(" + call + ") AS done";
      if (how == 0) one.query(sql);
      if (how == 1) one.exchange(Batch().run(sql).sync());
      if (how == 2) one.exchange(Batch().parse("named", sql).bind("", "named").execute().sync());
      EXPECT_EQ(two.value(look), untouched) << call << " in protocol " << how;
      EXPECT_EQ(one.value(look), touched) << call << " in protocol " << how;
      EXPECT_EQ(two.value(look), untouched) << call << " in protocol " << how;
    }
  }
}

TEST_F(Sharing, AnUnknownStartupOptionIsTheClientsError) {
  RawClient client(front_.port(), {{"no_such_setting", "1"}}, false);
  EXPECT_EQ(client.until_ready(), "E(42704) EOF");
}

TEST_F(Sharing, SettingsFollowTheirClientAndNobodyElse) {
  RawClient one(front_.port());
  RawClient two(front_.port());
  const std::vector<std::pair<std::string, std::string>> all = {
      {"SET work_mem = '9MB'", "SHOW work_mem"},
      {"SET TIME ZONE 'Asia/Tokyo'", "SHOW TimeZone"},
      {"SET TIME ZONE INTERVAL '-08:30' HOUR TO MINUTE", "SHOW TimeZone"},
      {"SET client_encoding = 'LATIN1'", "SHOW client_encoding"},
      {"SET my.odd = E'it''s \\\\ a\\nline'",
       "SELECT encode(coalesce(current_setting('my.odd', true), '')::bytea, 'hex')"},
      {"SET \"My\".\"od d\" = 'x'", "SELECT coalesce(current_setting('My.od d', true), '')"},
      {"SET search_path = \"we\"\"ird\", 'a,b', public", "SHOW search_path"},
      {"SET ROLE pg_monitor", "SELECT current_user"},
      {"SET SESSION AUTHORIZATION pg_monitor", "SELECT session_user"},
      {"SET statement_timeout = '1min'", "SHOW statement_timeout"},
      {"SET default_transaction_read_only = on", "SHOW default_transaction_read_only"},
      {"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
       "SHOW default_transaction_isolation"},
      {"SET seq_page_cost = 0.123456789", "SHOW seq_page_cost"},
      {"SELECT set_config('lock_timeout', '123456', false)", "SHOW lock_timeout"},
  };
  for (const auto& [set, show] : all) {
    const std::string before = two.query(show);
    RawClient straight(cluster().port());
    const std::string done = straight.query(set);
    if (done.find('E') != std::string::npos && done.find("E(") != std::string::npos)
      continue;  // not this server's
    const std::string wanted = straight.query(show);
    EXPECT_EQ(one.query(set), done) << set;
    EXPECT_EQ(two.query(show), before) << set;
    EXPECT_EQ(one.query(show), wanted) << set;
    EXPECT_EQ(two.query(show), before) << set;
    EXPECT_EQ(one.query(show), wanted) << set;
    EXPECT_EQ(one.query("RESET SESSION AUTHORIZATION"), "C(RESET) Z(I)");
    EXPECT_EQ(one.query("RESET ROLE"), "C(RESET) Z(I)");
    EXPECT_EQ(one.query("RESET ALL"), "C(RESET) Z(I)");
    EXPECT_EQ(one.query("DISCARD ALL"), "C(DISCARD ALL) Z(I)");
  }
}

}  // namespace
}  // namespace kintsugi::fronttest
