// Connections that end when nobody expects it: the shard's, at each point of a client's story, and the
// client's.
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/frontend/front.h"

namespace kintsugi::fronttest {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Lost : public ::testing::Test {
 protected:
  Front front_{[](Config& config) { config.pool.size = 1; }};

  static void kill_backends() {
    direct(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'app' AND pid <> "
        "pg_backend_pid()");
  }
  static bool eventually(const std::string& sql, const std::string& wanted) {
    for (int i = 0; i < 100; ++i) {
      if (direct(sql) == wanted) return true;
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }
};

TEST_F(Lost, AnIdleConnectionThatDiesIsNoticedByNobody) {
  RawClient client(front_.port());
  EXPECT_EQ(client.query("SELECT 1"), "T D(1) C(SELECT 1) Z(I)");
  kill_backends();
  EXPECT_EQ(client.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
}

TEST_F(Lost, InATransactionTheClientIsToldAndSentAway) {
  RawClient client(front_.port());
  EXPECT_EQ(client.query("BEGIN"), "C(BEGIN) Z(T)");
  kill_backends();
  EXPECT_EQ(client.until_ready(), "E(57P01) EOF");
  RawClient next(front_.port());
  EXPECT_EQ(next.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
}

TEST_F(Lost, DuringAStatementOfItsOwn) {
  RawClient client(front_.port());
  client.send(Batch().query("SELECT pg_sleep(120)"));
  wait_until_runs("pg_sleep(120)");
  kill_backends();
  EXPECT_EQ(client.until_ready(), "T E(57P01) Z(I)");
  EXPECT_EQ(client.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
}

// A pipeline is one transaction up to its Sync. Its first half must not vanish while the second one is
// committed.
TEST_F(Lost, BetweenTheHalvesOfAPipeline) {
  direct("DROP TABLE IF EXISTS halves; CREATE TABLE halves(a int)");
  RawClient client(front_.port());
  client.send(Batch().run("INSERT INTO halves VALUES (1)").flush());
  EXPECT_EQ(client.until('C'), "1 2 C(INSERT 0 1)");
  kill_backends();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(client.exchange(Batch().run("INSERT INTO halves VALUES (2)").sync()), "E(57P01) Z(I)");
  EXPECT_EQ(direct("SELECT count(*) FROM halves"), "0");
  EXPECT_EQ(client.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
}

// An error has been told and no Sync has come yet: what follows is to be ignored, whatever happens to the
// shard.
TEST_F(Lost, WhileThePipelineIsBeingSkipped) {
  direct("DROP TABLE IF EXISTS skipped; CREATE TABLE skipped(a int)");
  RawClient client(front_.port());
  client.send(Batch().run("SELECT 1/0").flush());
  EXPECT_EQ(client.until('E'), "1 E(22012)");
  kill_backends();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(client.exchange(Batch().run("INSERT INTO skipped VALUES (2)").sync()), "Z(I)");
  EXPECT_EQ(direct("SELECT count(*) FROM skipped"), "0");
}

// Whatever was said in the middle of a row would be taken for the rest of the row.
TEST_F(Lost, InTheMiddleOfARow) {
  RawClient client(front_.port());
  client.send(Batch().query("SELECT repeat('x', 50000000)"));
  timeval bound{8, 0};
  setsockopt(client.fd(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  char first[1000];
  ASSERT_EQ(recv(client.fd(), first, sizeof first, MSG_PEEK | MSG_WAITALL), 1000);
  std::this_thread::sleep_for(300ms);  // the client does not read: everybody is stuck in the row
  kill_backends();
  std::this_thread::sleep_for(200ms);
  std::string all;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = recv(client.fd(), buffer, sizeof buffer, 0)) > 0)
    all.append(buffer, static_cast<std::size_t>(got));
  EXPECT_LT(all.size(), 50000000U);
  const std::size_t row = all.find("xxxx");
  ASSERT_NE(row, std::string::npos);
  EXPECT_EQ(all.find_first_not_of('x', row), std::string::npos) << "something was said inside the row";
}

// ---- the client goes ----

TEST_F(Lost, AClientThatLeavesInATransactionLeavesNothingBehind) {
  for (const char* statement :
       {"SELECT pg_advisory_lock(7)", "PREPARE left_behind AS SELECT 1", "SET work_mem = '77MB'",
        "SET my.thing = 'left'", "CREATE TEMP TABLE left_behind(a int)", "LISTEN left_behind",
        "SET ROLE pg_monitor", "DECLARE left_behind CURSOR WITH HOLD FOR SELECT 1"}) {
    {
      RawClient client(front_.port());
      EXPECT_EQ(client.query("BEGIN"), "C(BEGIN) Z(T)");
      const std::string done = client.query(statement);
      EXPECT_NE(done.find("Z(T)"), std::string::npos) << statement << ": " << done;
    }
    RawClient next(front_.port());
    EXPECT_EQ(
        next.value(
            "SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') || ' ' || "
            "(SELECT count(*) FROM pg_prepared_statements WHERE from_sql) || ' ' || "
            "current_setting('work_mem') || ' ' || coalesce(current_setting('my.thing', true), '') || ' ' || "
            "(SELECT count(*) FROM pg_class WHERE relname = 'left_behind') || ' ' || "
            "(SELECT count(*) FROM pg_listening_channels()) || ' ' || current_user || ' ' || "
            "(SELECT count(*) FROM pg_cursors WHERE name = 'left_behind')"),
        "0 0 4MB  0 0 postgres 0")
        << "after " << statement;
  }
}

TEST_F(Lost, AClientThatDisappearsAtAnyPointGivesItsConnectionBack) {
  const std::vector<Batch> points = {
      Batch().query("SELECT pg_sleep(1)"),  // finished, as by PostgreSQL
      Batch().query("BEGIN"),
      Batch().query("BEGIN").query("SELECT 1/0"),
      Batch().run("SELECT 1"),
      Batch().run("SELECT 1").flush(),
      Batch().run("SELECT 1/0"),
      Batch().parse("half", "SELECT 1"),
      Batch().query("COPY (SELECT generate_series(1, 10000000)) TO STDOUT"),
      Batch()
          .query("CREATE TEMP TABLE IF NOT EXISTS gone(a int)")
          .query("COPY gone FROM STDIN")
          .copy_data("1\n"),
      Batch().query("SELECT generate_series(1, 10000000)"),
      Batch().query("LISTEN here"),
      Batch().query("SELECT 1").query("SELECT pg_sleep(1)"),
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    {
      RawClient client(front_.port());
      client.send(points[i]);
      std::this_thread::sleep_for(50ms);
    }
    RawClient next(front_.port());
    next.send(Batch().query("SELECT 'well'"));
    EXPECT_EQ(next.until_ready(), "T D(well) C(SELECT 1) Z(I)") << "after point " << i;
  }
  // Half a message, and half a row taken.
  {
    RawClient client(front_.port());
    client.send(std::string_view(Batch().query("SELECT 1").bytes).substr(0, 7));
  }
  RawClient next(front_.port());
  EXPECT_EQ(next.query("SELECT 'well'"), "T D(well) C(SELECT 1) Z(I)");
}

// PostgreSQL finishes what was sent before the end of the connection. So does a router in which it had to wait.
TEST_F(Lost, WhatAWaitingClientHasSentIsRunAlsoWhenItHasGone) {
  direct("DROP TABLE IF EXISTS posted; CREATE TABLE posted(a int)");
  RawClient holder(front_.port());
  EXPECT_EQ(holder.query("BEGIN"), "C(BEGIN) Z(T)");
  {
    RawClient client(front_.port());
    client.send(Batch().query("INSERT INTO posted VALUES (1)"));
    EXPECT_EQ(client.within(100), "");
  }
  RawClient reset(front_.port());
  reset.send(Batch().query("INSERT INTO posted VALUES (2)"));
  EXPECT_EQ(reset.within(100), "");
  const linger at_once{1, 0};
  setsockopt(reset.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  reset.close();  // a reset: nobody knows what of it has been read
  RawClient half(front_.port());
  half.send(Batch().query("INSERT INTO posted VALUES (3) RETURNING a"));
  ASSERT_EQ(shutdown(half.fd(), SHUT_WR), 0);
  EXPECT_EQ(half.within(100), "");
  EXPECT_EQ(holder.query("COMMIT"), "C(COMMIT) Z(I)");
  EXPECT_EQ(half.until_ready(), "T D(3) C(INSERT 0 1) Z(I)");
  EXPECT_TRUE(eventually("SELECT string_agg(a::text, ',' ORDER BY a) FROM posted WHERE a <> 2", "1,3"));
  RawClient next(front_.port());
  EXPECT_EQ(next.query("SELECT 'well'"), "T D(well) C(SELECT 1) Z(I)");
}

// Nor does anybody keep a connection who has gone before he got it, and has left something half done.
TEST_F(Lost, AWaitingClientThatHasGoneGivesItsConnectionBack) {
  direct("DROP TABLE IF EXISTS left_half; CREATE TABLE left_half(a int)");
  const std::vector<Batch> halves = {
      Batch().query("COPY left_half FROM STDIN").copy_data("1\n"),
      Batch().query("COPY left_half FROM STDIN"),
      Batch().run("INSERT INTO left_half VALUES (2)"),
      Batch().run("INSERT INTO left_half VALUES (3)").flush(),
      Batch().run("COPY left_half FROM STDIN").copy_data("4\n").copy_done(),
      Batch().query("BEGIN").query("INSERT INTO left_half VALUES (5)"),
      Batch().query("COPY left_half FROM STDIN").copy_data("6\n").copy_done(),  // whole: it is done
  };
  for (std::size_t i = 0; i < halves.size(); ++i) {
    RawClient holder(front_.port());
    EXPECT_EQ(holder.query("BEGIN"), "C(BEGIN) Z(T)");
    {
      RawClient client(front_.port());
      client.send(halves[i]);
      EXPECT_EQ(client.within(50), "");
    }
    EXPECT_EQ(holder.query("COMMIT"), "C(COMMIT) Z(I)");
    RawClient next(front_.port());
    EXPECT_EQ(next.query("SELECT 'well'"), "T D(well) C(SELECT 1) Z(I)") << "after " << i;
  }
  EXPECT_TRUE(eventually("SELECT string_agg(a::text, ',' ORDER BY a) FROM left_half", "6"));
}

TEST_F(Lost, AClientThatDoesNotReadCannotFillTheMemory) {
  RawClient client(front_.port());
  const Batch flood = [] {
    Batch batch;
    for (int i = 0; i < 10000; ++i) batch.sync();
    return batch;
  }();
  timeval second{1, 0};
  setsockopt(client.fd(), SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
  std::size_t sent = 0;
  try {
    for (; sent < (256U << 20); sent += flood.bytes.size()) client.send(flood);
  } catch (const std::runtime_error&) {
  }
  EXPECT_LT(sent, 64U << 20) << "the router took all of it and keeps the answers";
}

TEST_F(Lost, AfterAFloodTheAnswersAreAllThere) {
  RawClient client(front_.port());
  std::thread sender([&] {
    Batch batch;
    for (int i = 0; i < 1000; ++i) batch.sync();
    for (int i = 0; i < 1000; ++i) client.send(batch);
  });
  std::size_t ready = 0;
  while (ready < 1000000) {
    auto message = client.next();
    ASSERT_TRUE(message.has_value());
    ready += message->type == 'Z' ? 1 : 0;
  }
  sender.join();
  EXPECT_EQ(client.query("SELECT 'well'"), "T D(well) C(SELECT 1) Z(I)");
}

// ---- the router goes ----

TEST(Shutdown, DoesNotWaitForThoseWhoHaveNotSaidAWord) {
  auto front = std::make_unique<Front>();
  RawClient silent(front->port(), {}, false);
  RawClient idle(front->port());
  const auto began = Clock::now();
  // A connection that has sent nothing at all.
  RawClient half(front->port(), {}, false);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_storage to{};
  socklen_t size = sizeof to;
  getpeername(idle.fd(), reinterpret_cast<sockaddr*>(&to), &size);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), size), 0);
  std::this_thread::sleep_for(100ms);
  front->server().shutdown(2s);
  EXPECT_LT(Clock::now() - began, 6s);
  EXPECT_EQ(idle.until_ready(), "E(57P01) EOF");
  ::close(fd);
  front.reset();
}

TEST(Shutdown, LetsATransactionEndAndThenCutsTheRest) {
  auto front = std::make_unique<Front>();
  RawClient busy(front->port());
  RawClient stuck(front->port());
  EXPECT_EQ(busy.query("BEGIN"), "C(BEGIN) Z(T)");
  stuck.send(Batch().query("SELECT pg_sleep(600)"));
  wait_until_runs("pg_sleep(600)");
  std::thread stopper([&] { front->server().shutdown(1s); });
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(busy.query("SELECT 1"), "T D(1) C(SELECT 1) Z(T)");
  EXPECT_EQ(busy.query("COMMIT"), "C(COMMIT) Z(I)");
  EXPECT_EQ(busy.until_ready(), "E(57P01) EOF");
  EXPECT_EQ(stuck.until_ready(), "E(57P01) EOF");
  stopper.join();
}

}  // namespace
}  // namespace kintsugi::fronttest
