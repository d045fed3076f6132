// A statement that is to be run again, because a move's fence has refused it or because its answer came when
// the router had no lease, and whose connection ends before that. The thread that serves it is held for as long
// as the shard needs to say both: as a router is that was frozen while a job ended its connections.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "executor/moved.h"
#include "shardmap/map_edit.h"
#include "tests/frontend/front.h"

namespace kintsugi::fronttest {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Source final : public frontend::MapSource {
 public:
  explicit Source(shardmap::MapPtr map) : map_(std::move(map)) {}

  [[nodiscard]] shardmap::MapPtr current() const override { return map_; }
  void seen(std::uint64_t) override {  // by the thread that serves
    std::unique_lock lock(mutex_);
    here_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_; });
  }
  void taken(std::uint64_t) override {}
  [[nodiscard]] bool lease_valid() const override { return true; }
  [[nodiscard]] Clock::time_point lease_end() const override {
    return lapsed_.exchange(false) ? Clock::time_point::min() : Clock::time_point::max();
  }
  [[nodiscard]] bool store_reachable() const override { return true; }

  // The thread that serves is held from here on, until let_go().
  void hold(frontend::Server& server) {
    {
      const std::lock_guard lock(mutex_);
      held_ = true;
    }
    auto next = shardmap::apply(*map_, {shardmap::edit::AlterShard{.name = "s2", .new_name = "other"}});
    if (!next) throw std::runtime_error(next.error().to_string());
    server.deliver(*next);
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::milliseconds(kAnswer_ms), [&] { return here_; }))
      throw std::runtime_error("the map was not taken");
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // The next look at the lease finds that it has run out.
  void lapse() { lapsed_ = true; }

 private:
  shardmap::MapPtr map_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false, here_ = false;
  mutable std::atomic<bool> lapsed_{false};
};

class Refused : public ::testing::Test {
 protected:
  Refused() {
    direct(
        "DROP TABLE IF EXISTS gate, fence, written; CREATE TABLE gate(a int); INSERT INTO gate VALUES (7); "
        "CREATE TABLE fence(up bool); INSERT INTO fence VALUES (true); CREATE TABLE written(a int); "
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
        "PERFORM a FROM gate; IF (SELECT up FROM fence) THEN RAISE EXCEPTION '" +
        std::string(executor::kMovedMessage) + "' USING ERRCODE = '" + std::string(executor::kMovedState) +
        "'; END IF; RETURN new; END$$; "
        "CREATE TRIGGER refuse BEFORE INSERT ON written FOR EACH ROW EXECUTE FUNCTION refuse()");
    Config config;
    config.server.listen = "127.0.0.1:0";
    config.server.threads = 1;
    config.shards = {{.name = "s1", .dsn = cluster().dsn("app")}, {.name = "s2", .dsn = cluster().dsn("app")}};
    source_ = std::make_shared<Source>((*frontend::fixed_map(config))->current());
    auto started = frontend::Server::start(
        config, source_, std::make_shared<admin::CommandQueue>(std::make_shared<admin::Surroundings>()));
    if (!started) throw std::runtime_error(started.error().to_string());
    server_ = std::move(*started);
    const std::string address = server_->address();
    port_ = std::stoi(address.substr(address.rfind(':') + 1));
    holder_.emplace(cluster().port());
  }
  ~Refused() override {
    source_->let_go();
    server_->shutdown(0ms);
  }

  void close_gate() {
    EXPECT_EQ(holder_->query("BEGIN"), "C(BEGIN) Z(T)");
    EXPECT_EQ(holder_->query("LOCK TABLE gate"), "C(LOCK TABLE) Z(T)");
  }
  // The statement that has just been sent waits for the gate. Nobody serves while that opens and the shard
  // answers and ends the connection (or ends it before).
  void end_connection(const std::string& statement, bool answers_before) {
    const std::string its = " FROM pg_stat_activity WHERE query LIKE '" + statement + "%' AND pid <> ";
    wait_until_runs(statement);
    source_->hold(*server_);
    if (answers_before) {
      EXPECT_EQ(holder_->query("COMMIT"), "C(COMMIT) Z(I)");
      const auto end = Clock::now() + std::chrono::milliseconds(kAnswer_ms);
      while (direct("SELECT count(*)" + its + "pg_backend_pid() AND state = 'active'") != "0") {
        ASSERT_LT(Clock::now(), end);
        std::this_thread::sleep_for(5ms);
      }
    }
    EXPECT_EQ(direct("SELECT pg_terminate_backend(pid, " + std::to_string(kAnswer_ms) + ")" + its +
                     "pg_backend_pid()"),
              "t");
    if (!answers_before) {
      EXPECT_EQ(holder_->query("COMMIT"), "C(COMMIT) Z(I)");
    }
  }
  void lose_preparation(const std::string& statement, const std::string& answer) {
    RawClient client(port_);
    EXPECT_EQ(client.exchange(Batch().parse("q", statement).sync()), "1 Z(I)");
    RawClient other(port_);  // has the connection that knows it
    EXPECT_EQ(other.query("BEGIN"), "C(BEGIN) Z(T)");
    EXPECT_EQ(other.query("SELECT up FROM fence"), "T D(t) C(SELECT 1) Z(T)");
    const std::uint64_t before = counted();
    close_gate();
    client.send(Batch().bind("", "q").describe('P', "").execute().sync());
    end_connection(statement, false);
    source_->let_go();
    EXPECT_EQ(client.until_ready(), answer);
    EXPECT_EQ(counted(), before + 1);
    EXPECT_EQ(client.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
    EXPECT_EQ(other.query("COMMIT"), "C(COMMIT) Z(I)");
  }
  std::uint64_t counted() {
    std::uint64_t sum = 0;
    const auto load = server_->load();
    for (const auto& tier : load->tiers) sum += tier.ok + tier.failed;
    return sum;
  }

  std::shared_ptr<Source> source_;
  std::unique_ptr<frontend::Server> server_;
  int port_ = 0;
  std::optional<RawClient> holder_;
};

TEST_F(Refused, APreparedReadWhoseAnswerCameWithoutALease) {
  RawClient client(port_);
  EXPECT_EQ(client.exchange(Batch().parse("q", "SELECT a FROM gate").sync()), "1 Z(I)");
  const std::uint64_t before = counted();
  close_gate();
  client.send(Batch().bind("", "q").describe('P', "").execute().sync());
  end_connection("SELECT a FROM gate", true);
  source_->lapse();
  source_->let_go();
  EXPECT_EQ(client.until_ready(), "2 T D(7) C(SELECT 1) Z(I)");
  EXPECT_EQ(counted(), before + 1);
  EXPECT_EQ(client.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
}

// Its Parse is told, and only what is behind that is asked again.
TEST_F(Refused, AReadThatIsPreparedOnTheWay) {
  RawClient client(port_);
  close_gate();
  client.send(Batch().run("SELECT a FROM gate").sync());
  end_connection("SELECT a FROM gate", true);
  source_->lapse();
  source_->let_go();
  EXPECT_EQ(client.until_ready(), "1 2 D(7) C(SELECT 1) Z(I)");
}

TEST_F(Refused, APreparationThatFailsWithoutALeaseIsToldOnce) {
  RawClient client(port_);
  close_gate();
  client.send(Batch().run("SELECT a, missing FROM gate").sync());
  end_connection("SELECT a, missing FROM gate", true);
  source_->lapse();
  source_->let_go();
  EXPECT_EQ(client.until_ready(), "E(42703) Z(I)");
  EXPECT_EQ(client.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
}

// Several queries that did not wait for each other: none is left without an answer.
TEST_F(Refused, AllReadsOfAPipelineAreAnswered) {
  RawClient client(port_);
  close_gate();
  Batch pipeline;
  for (int i = 0; i < 5; ++i) pipeline.run("SELECT a FROM gate").sync();
  client.send(pipeline);
  wait_until_runs("SELECT a FROM gate");
  source_->lapse();
  EXPECT_EQ(holder_->query("COMMIT"), "C(COMMIT) Z(I)");
  std::string each;
  for (int i = 0; i < 5; ++i) each += std::string(i > 0 ? " " : "") + "E(KG005) Z(I)";
  EXPECT_EQ(client.until_ready(5), each);
  EXPECT_EQ(client.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
}

TEST_F(Refused, AReadThatFirstOpensItsTransactionThere) {
  RawClient client(port_);
  EXPECT_EQ(client.query("BEGIN"), "C(BEGIN) Z(T)");
  close_gate();
  client.send(Batch().query("SELECT a FROM gate"));
  end_connection("SELECT a FROM gate", true);
  source_->lapse();
  source_->let_go();
  EXPECT_EQ(client.until_ready(), "T D(7) C(SELECT 1) Z(T)");
  EXPECT_EQ(client.query("COMMIT"), "C(COMMIT) Z(I)");
}

// The words of the shard's end are what came without a lease.
TEST_F(Refused, AReadWhoseConnectionEndedBeforeItsAnswer) {
  RawClient client(port_);
  close_gate();
  client.send(Batch().query("SELECT a FROM gate"));
  end_connection("SELECT a FROM gate", false);
  source_->lapse();
  source_->let_go();
  EXPECT_EQ(client.until_ready(), "T D(7) C(SELECT 1) Z(I)");
}

// What the router prepares by itself, on a connection that does not have the client's statement yet, is lost
// with the connection. The client's own message has not been sent: it goes to another, be it a read or a write,
// with the lease or without.
TEST_F(Refused, AReadWhosePreparationIsLost) {
  lose_preparation("SELECT a FROM gate", "2 T D(7) C(SELECT 1) Z(I)");
}

TEST_F(Refused, AWriteWhosePreparationIsLost) {
  lose_preparation("DELETE FROM gate", "2 n C(DELETE 1) Z(I)");
  EXPECT_EQ(direct("SELECT count(*) FROM gate"), "0");
}

TEST_F(Refused, AWriteThatTheFenceRefused) {
  RawClient client(port_);
  const std::uint64_t before = counted();
  close_gate();
  client.send(Batch().query("INSERT INTO written VALUES (1)"));
  end_connection("INSERT INTO written", true);
  direct("UPDATE fence SET up = false");
  source_->let_go();
  EXPECT_EQ(client.until_ready(), "C(INSERT 0 1) Z(I)");
  EXPECT_EQ(counted(), before + 1);
  EXPECT_EQ(direct("SELECT count(*) FROM written"), "1");
}

// With the lease nothing is run again: what has been told is told.
TEST_F(Refused, AnAnswerUnderTheLeaseStandsWhateverComesBehindIt) {
  RawClient client(port_);
  close_gate();
  client.send(Batch().query("SELECT a FROM gate"));
  end_connection("SELECT a FROM gate", true);
  source_->let_go();
  EXPECT_EQ(client.until_ready(), "T D(7) C(SELECT 1) Z(I)");
  EXPECT_EQ(client.query("SELECT 2"), "T D(2) C(SELECT 1) Z(I)");
}

}  // namespace
}  // namespace kintsugi::fronttest
