// What a session has set and what keeps it, read from one connection and made true on another: PostgreSQL
// itself says whether the two are alike.
#include "executor/session_state.h"

#include <random>

#include "tests/executor/scene.h"
#include "tests/pg/cluster.h"

namespace kintsugi::executor {
namespace {

using Names = std::vector<std::string>;

class SessionStatePg : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<pgtest::Cluster>();
    pgtest::psql(
        cluster_->dsn(),
        "CREATE ROLE plain LOGIN; CREATE ROLE \"Odd Name\"; GRANT \"Odd Name\" TO plain; CREATE SCHEMA plain;"
        "ALTER ROLE plain SET work_mem = '7MB'");
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  // Both connections and what is done with them live on one loop.
  struct Two {
    std::unique_ptr<Backend> a, b;
    io::Waiter* waiter;

    io::Task<Result<Rows>> run(Backend* on, std::string sql) {
      return run_control_query(on, std::move(sql), waiter, patience());
    }
  };
  static io::Task<bool> with_two(io::Waiter* waiter, std::string user, io::Task<> (*story)(Two*)) {
    Two two{nullptr, nullptr, waiter};
    auto dsn =
        Dsn::parse("host=127.0.0.1 port=" + std::to_string(cluster_->port()) + " dbname=postgres user=" + user);
    auto login = ShardLogin::make("s1", *dsn, "", "", std::nullopt);
    for (auto* slot : {&two.a, &two.b}) {
      auto connecting = connect_shard(*login, Settings::none(), waiter, patience());
      auto made = co_await std::move(connecting);
      if (!made) {
        ADD_FAILURE() << made.error().to_string();
        co_return false;
      }
      *slot = std::move(*made);
      (*slot)->stream.set_target(waiter);
    }
    auto telling = story(&two);
    co_await std::move(telling);
    co_return true;
  }
  static void play(const std::string& user, io::Task<> (*story)(Two*)) {
    EXPECT_TRUE((act<bool, std::string, io::Task<> (*)(Two*)>(with_two, user, story)));
  }

  static io::Task<SessionState> state_of(Two* two, Backend* on, std::string role, Names custom) {
    auto asking = two->run(on, session_state_sql(role, custom));
    auto rows = co_await std::move(asking);
    EXPECT_TRUE(rows) << rows.error().to_string();
    co_return read_session_state(*rows);
  }
  // Every setting that PostgreSQL has, who one is, and the custom ones.
  static io::Task<std::string> everything(Two* two, Backend* on, Names custom) {
    std::string sql =
        "SELECT name || '=' || coalesce(setting, 'NULL') FROM pg_settings WHERE name NOT LIKE 'transaction_%' "
        "UNION ALL "
        "SELECT 'who ' || current_user || ' ' || session_user";
    for (const std::string& name : custom)
      sql += " UNION ALL SELECT '" + name + "=' || coalesce(current_setting('" + name + "', true), '')";
    auto asking = two->run(on, sql + " ORDER BY 1");
    auto rows = co_await std::move(asking);
    EXPECT_TRUE(rows) << rows.error().to_string();
    std::string all;
    if (rows) {
      for (const auto& row : *rows) all += *row[0] + "\n";
    }
    co_return all;
  }

  static std::unique_ptr<pgtest::Cluster> cluster_;
};
std::unique_ptr<pgtest::Cluster> SessionStatePg::cluster_;

const Names kCustom = {"my.setting", "Odd.Name"};

// Statements that set something, two values of each.
const std::vector<std::pair<const char*, const char*>> kSets = {
    {"SET work_mem = '3MB'", "SET work_mem = '9MB'"},
    {"SET search_path = public, \"$user\", \"with space\"", "SET search_path = ''"},
    {"SET DateStyle = 'German, DMY'", "SET DateStyle = 'SQL, MDY'"},
    {"SET TIME ZONE 'Asia/Kathmandu'", "SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE"},
    {"SET application_name = 'it''s; \\ \"quoted\"'", "SET application_name = ''"},
    {"SET my.setting = 'one'", "SET my.setting = 'a ''b'' \\c'"},
    {"SET \"Odd.Name\" = '1'", "SET \"Odd.Name\" = ''"},
    {"SET standard_conforming_strings = off", "SET standard_conforming_strings = on"},
    {"SET client_encoding = 'LATIN1'", "SET client_encoding = 'SQL_ASCII'"},
    {"SET statement_timeout = '1h'", "SET statement_timeout = 0"},
    {"SET default_transaction_isolation = 'serializable'", "SET default_transaction_read_only = on"},
    {"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
     "SET synchronous_commit = off"},
    {"SET bytea_output = 'escape'", "SET extra_float_digits = -3"},
    {"SET ROLE \"Odd Name\"", "SET ROLE plain"},
};

TEST_F(SessionStatePg, NothingSetIsNothing) {
  struct Story : SessionStatePg {
    void TestBody() override {}
    static io::Task<> tell(Two* two) {
      auto asking = state_of(two, two->a.get(), "plain", kCustom);
      const SessionState state = co_await std::move(asking);
      EXPECT_EQ(state.settings, Settings::none());
      EXPECT_EQ(state.pins, 0U);
    }
  };
  play("plain", Story::tell);
}

// A random session becomes another, on a connection that was a third.
TEST_F(SessionStatePg, ASessionIsMadeLikeAnother) {
  struct Story : SessionStatePg {
    void TestBody() override {}
    static io::Task<> tell(Two* two) {
      std::mt19937 random(7);
      auto first = everything(two, two->a.get(), kCustom);
      const std::string untouched = co_await std::move(first);
      SettingsRef a = Settings::none(), b = Settings::none();
      for (int round = 0; round < 60; ++round) {
        for (const auto& [one, other] : kSets) {
          const auto choice = random() % 4;
          if (choice > 1) continue;
          auto setting = two->run(two->a.get(), choice == 0 ? one : other);
          auto done = co_await std::move(setting);
          EXPECT_TRUE(done) << one << ": " << done.error().to_string();
        }
        auto asking = state_of(two, two->a.get(), "plain", kCustom);
        a = (co_await std::move(asking)).settings;
        const std::string change = settings_change_sql(*b, *a);
        auto changing = two->run(two->b.get(), change);
        auto changed = co_await std::move(changing);
        EXPECT_TRUE(changed) << change << "\n" << changed.error().to_string();
        b = a;
        auto of_a = everything(two, two->a.get(), kCustom);
        const std::string all_a = co_await std::move(of_a);
        auto of_b = everything(two, two->b.get(), kCustom);
        const std::string all_b = co_await std::move(of_b);
        EXPECT_EQ(all_a, all_b) << "round " << round << ": " << change;
        auto again = state_of(two, two->b.get(), "plain", kCustom);
        EXPECT_EQ((co_await std::move(again)).settings, a) << "round " << round;
        EXPECT_EQ(settings_change_sql(*a, *a), "");
        if (HasFailure()) co_return;
        if (random() % 3 == 0) {
          auto resetting = two->run(two->a.get(), "RESET ROLE; RESET ALL");
          (void)co_await std::move(resetting);
        }
      }
      // And back to what it was.
      auto changing = two->run(two->b.get(), settings_change_sql(*b, *Settings::none()));
      EXPECT_TRUE(co_await std::move(changing));
      auto last = everything(two, two->b.get(), kCustom);
      EXPECT_EQ(co_await std::move(last), untouched);
    }
  };
  play("plain", Story::tell);
}

TEST_F(SessionStatePg, SessionAuthorizationOfASuperuser) {
  struct Story : SessionStatePg {
    void TestBody() override {}
    static io::Task<> tell(Two* two) {
      auto setting = two->run(two->a.get(),
                              "SET SESSION AUTHORIZATION plain; SET ROLE \"Odd Name\"; SET work_mem = '5MB'");
      EXPECT_TRUE(co_await std::move(setting));
      auto asking = state_of(two, two->a.get(), "postgres", {});
      const SessionState state = co_await std::move(asking);
      auto changing = two->run(two->b.get(), settings_change_sql(*Settings::none(), *state.settings));
      EXPECT_TRUE(co_await std::move(changing));
      auto of_a = everything(two, two->a.get(), {});
      const std::string all_a = co_await std::move(of_a);
      auto of_b = everything(two, two->b.get(), {});
      EXPECT_EQ(all_a, co_await std::move(of_b));
      EXPECT_NE(all_a.find("who Odd Name plain"), std::string::npos);
      auto back = two->run(two->b.get(), settings_change_sql(*state.settings, *Settings::none()));
      EXPECT_TRUE(co_await std::move(back));
      auto after = everything(two, two->b.get(), {});
      EXPECT_NE((co_await std::move(after)).find("who postgres postgres"), std::string::npos);
    }
  };
  play("postgres", Story::tell);
}

TEST_F(SessionStatePg, WhatKeepsASessionIsSeenAndItsEndAsWell) {
  struct Story : SessionStatePg {
    void TestBody() override {}
    static io::Task<> tell(Two* two) {
      const struct {
        const char *begin, *end;
        unsigned pin;
      } cases[] = {
          {"LISTEN here", "UNLISTEN here", kPinListen},
          {"DECLARE kept CURSOR WITH HOLD FOR SELECT 1", "CLOSE kept", kPinCursor},
          {"PREPARE kept AS SELECT 1", "DEALLOCATE kept", kPinPrepared},
          {"SELECT pg_advisory_lock(4)", "SELECT pg_advisory_unlock(4)", kPinAdvisory},
          {"SELECT pg_advisory_lock_shared(4, 5)", "SELECT pg_advisory_unlock_all()", kPinAdvisory},
          {"CREATE TEMP TABLE kept (a int)", "DROP TABLE kept", kPinTemporary},
          {"CREATE TEMP VIEW kept AS SELECT 1", "DROP VIEW kept", kPinTemporary},
          {"CREATE TEMP SEQUENCE kept", "DROP SEQUENCE kept", kPinTemporary},
          {"CREATE FUNCTION pg_temp.kept() RETURNS int LANGUAGE sql AS 'SELECT 1'",
           "DROP FUNCTION pg_temp.kept()", kPinTemporary},
          {"CREATE TYPE pg_temp.kept AS ENUM ('a')", "DROP TYPE pg_temp.kept", kPinTemporary},
      };
      unsigned all = 0;
      for (const auto& c : cases) {
        auto beginning = two->run(two->a.get(), c.begin);
        auto begun = co_await std::move(beginning);
        EXPECT_TRUE(begun) << c.begin << ": " << begun.error().to_string();
        auto asking = state_of(two, two->a.get(), "postgres", {});
        EXPECT_EQ((co_await std::move(asking)).pins, c.pin) << c.begin;
        auto other = state_of(two, two->b.get(), "postgres", {});
        EXPECT_EQ((co_await std::move(other)).pins, 0U) << "another session has nothing: " << c.begin;
        auto ending = two->run(two->a.get(), c.end);
        EXPECT_TRUE(co_await std::move(ending)) << c.end;
        auto after = state_of(two, two->a.get(), "postgres", {});
        EXPECT_EQ((co_await std::move(after)).pins, 0U) << c.end;
        all |= c.pin;
      }
      EXPECT_EQ(all, kPinListen | kPinCursor | kPinPrepared | kPinAdvisory | kPinTemporary);
    }
  };
  play("postgres", Story::tell);
}

}  // namespace
}  // namespace kintsugi::executor
