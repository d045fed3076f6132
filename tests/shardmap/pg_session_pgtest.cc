// What a server says comes out as it was said, and the session goes on after it.
#include "shardmap/pg_session.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/pg/cluster.h"
#include "tests/shardmap/pg.h"

namespace kintsugi::shardmap {
namespace {

using namespace std::chrono_literals;

Deadline soon() {
  return Deadline::in(30s);
}

class PgSessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<pgtest::Cluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    auto made = PgSession::connect(cluster_->dsn(), true, soon());
    ASSERT_TRUE(made) << made.error().to_string();
    session_ = *std::move(made);
    pgtest::psql(cluster_->dsn(),
                 "DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t "
                 "VALUES (1, 0), (2, 0)");
  }
  void expect_good() {
    EXPECT_TRUE(session_->good());
    const auto rows = session_->query("SELECT 'x'", {}, soon());
    ASSERT_TRUE(rows) << rows.error().to_string();
    EXPECT_EQ((*rows)[0][0], "x");
  }
  static inline std::unique_ptr<pgtest::Cluster> cluster_;
  std::unique_ptr<PgSession> session_;
};

}  // namespace

TEST_F(PgSessionTest, ErrorsKeepTheirNumberAndTheSessionItsLife) {
  for (const std::string state : {"40001", "40P01", "40003", "53100", "55P03", "23505", "P0001"}) {
    const auto done =
        session_->run("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '" + state + "'; END $$", {}, soon());
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().sqlstate, state);
    EXPECT_EQ(done.error().message, "no") << state;
    expect_good();
  }
}

TEST_F(PgSessionTest, WhoLosesADeadlockIsToldSo) {
  pgtest::psql(cluster_->dsn(), "ALTER SYSTEM SET deadlock_timeout = '100ms'; SELECT pg_reload_conf()");
  pgtest::Connection other(cluster_->dsn());
  other.query("SET deadlock_timeout = '1min'");
  other.query("BEGIN");
  other.query("UPDATE t SET n = 1 WHERE id = 1");
  const auto done = session_->transaction(
      [&]() -> Status {
        KG_CHECK(session_->run("UPDATE t SET n = 2 WHERE id = 2", {}, soon()));
        std::thread third([&other] { other.query("UPDATE t SET n = 1 WHERE id = 2"); });
        const Status lost = session_->run("UPDATE t SET n = 2 WHERE id = 1", {}, soon());
        if (!lost) (void)session_->run("ROLLBACK", {}, soon());
        third.join();
        return lost;
      },
      soon());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().sqlstate, "40P01") << done.error().to_string();
  expect_good();
}

}  // namespace kintsugi::shardmap
