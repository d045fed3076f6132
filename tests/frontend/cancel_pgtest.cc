// A cancel request stops what it was sent for, and nothing else, however slow the shard is to take it.
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/frontend/front.h"

namespace kintsugi::fronttest {
namespace {

using namespace std::chrono_literals;

// The postmaster alone: its backends go on, and cancel requests wait until it runs again.
class StoppedPostmaster {
 public:
  StoppedPostmaster() { ::kill(cluster().pid(), SIGSTOP); }
  ~StoppedPostmaster() { go(); }
  void go() { ::kill(cluster().pid(), SIGCONT); }
};

TEST(Cancel, StopsTheStatement) {
  Front front([](Config& config) { config.server.threads = 2; });
  for (int i = 0; i < 6; ++i) {
    RawClient client(front.port());
    client.send(Batch().query("SELECT pg_sleep(120)"));
    wait_until_runs("pg_sleep(120)");
    client.cancel();
    EXPECT_EQ(client.until_ready(), "T E(57014) Z(I)");
    EXPECT_EQ(client.query("SELECT 1"), "T D(1) C(SELECT 1) Z(I)");
  }
}

TEST(Cancel, OfNothingDoesNotHitWhatIsRunNext) {
  Front front([](Config& config) { config.server.threads = 2; });
  RawClient client(front.port());
  for (int i = 0; i < 200; ++i) {
    client.cancel();
    ASSERT_EQ(client.query("SELECT pg_sleep(0.002)"), "T D() C(SELECT 1) Z(I)") << i;
  }
}

TEST(Cancel, ThatComesLateDoesNotHitTheNextStatement) {
  Front front([](Config& config) { config.pool.size = 1; });
  RawClient client(front.port());
  EXPECT_EQ(client.query("SELECT 1"), "T D(1) C(SELECT 1) Z(I)");
  client.send(Batch().query("SELECT pg_sleep(0.7)"));
  wait_until_runs("pg_sleep(0.7)");
  StoppedPostmaster stopped;
  std::thread canceller([&] { client.cancel(); });
  EXPECT_EQ(client.until_ready(), "T D() C(SELECT 1) Z(I)");
  client.send(Batch().query("SELECT pg_sleep(1)"));
  std::this_thread::sleep_for(200ms);
  stopped.go();
  EXPECT_EQ(client.until_ready(), "T D() C(SELECT 1) Z(I)");
  canceller.join();
}

TEST(Cancel, ThatComesLateDoesNotHitAnotherClient) {
  Front front([](Config& config) { config.pool.size = 1; });
  RawClient client(front.port());
  RawClient other(front.port());
  client.send(Batch().query("SELECT pg_sleep(0.7)"));
  wait_until_runs("pg_sleep(0.7)");
  StoppedPostmaster stopped;
  std::thread canceller([&] { client.cancel(); });
  EXPECT_EQ(client.until_ready(), "T D() C(SELECT 1) Z(I)");
  other.send(Batch().query("SELECT pg_sleep(1)"));
  std::this_thread::sleep_for(200ms);
  stopped.go();
  EXPECT_EQ(other.until_ready(), "T D() C(SELECT 1) Z(I)");
  canceller.join();
}

// The router gives up on a cancel request after ten seconds; PostgreSQL may still take it after that.
TEST(Cancel, ThatWasGivenUpDoesNotHitAnotherClient) {
  Front front([](Config& config) { config.pool.size = 1; });
  RawClient client(front.port());
  RawClient other(front.port());
  client.send(Batch().query("SELECT pg_sleep(0.7)"));
  wait_until_runs("pg_sleep(0.7)");
  StoppedPostmaster stopped;
  std::thread canceller([&] { client.cancel(); });
  EXPECT_EQ(client.until_ready(), "T D() C(SELECT 1) Z(I)");
  other.send(Batch().query("SELECT pg_sleep(1.5)"));
  std::this_thread::sleep_for(10500ms);
  stopped.go();
  EXPECT_EQ(other.until_ready(), "T D() C(SELECT 1) Z(I)");
  canceller.join();
}

}  // namespace
}  // namespace kintsugi::fronttest
