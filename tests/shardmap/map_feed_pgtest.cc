// Routers on one store: what each of them is handed, when all have it, and what happens when the store or a
// router goes.
#include "shardmap/map_feed.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/pg/cluster.h"
#include "tests/shardmap/store_contract.h"

namespace kintsugi::shardmap {
namespace {

using namespace std::chrono_literals;
using contract::must;
using contract::soon;
using Clock = std::chrono::steady_clock;

// A router as far as the map goes: takes each map at once, and remembers all of them.
class Router {
 public:
  Router(const std::string& store, const std::string& directory, const std::string& name,
         std::chrono::milliseconds lease = 5000ms) {
    MapFeedOptions options{store, directory, name + ".db", name};
    options.lease = lease;
    options.beat = lease / 5;
    options.start_patience = 2000ms;
    auto started = MapFeed::start(options, [this](const MapPtr& map) {
      const std::lock_guard lock(mutex_);
      if (!maps_.empty() && map->epoch() <= maps_.back()->epoch()) ++disorder_;
      maps_.push_back(map);
    });
    if (!started) throw std::runtime_error(started.error().to_string());
    feed_ = std::move(*started);
    taker_ = std::thread([this] {
      while (!stop_) {
        feed_->taken(newest()->epoch());
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  ~Router() {
    stop_ = true;
    taker_.join();
    feed_.reset();
  }
  MapPtr newest() {
    const std::lock_guard lock(mutex_);
    return maps_.back();
  }
  int disorder() const { return disorder_; }
  MapFeed& feed() { return *feed_; }

 private:
  std::mutex mutex_;
  std::vector<MapPtr> maps_;
  std::atomic<int> disorder_{0};
  std::atomic<bool> stop_{false};
  std::unique_ptr<MapFeed> feed_;
  std::thread taker_;
};

MapEdit shard_edit(const std::string& name) {
  return {edit::CreateShard{name, "d", "", ShardState::kOnline}};
}

class MapFeedTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "kg-feed-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::unique_ptr<MapStore> open(const std::string& where) {
    auto store = open_store(where, directory_, soon());
    if (!store) throw std::runtime_error(store.error().to_string());
    return std::move(*store);
  }
  template <class Condition>
  static bool within(std::chrono::milliseconds time, Condition condition) {
    for (const auto end = Clock::now() + time; Clock::now() < end; std::this_thread::sleep_for(1ms)) {
      if (condition()) return true;
    }
    return condition();
  }
  std::string directory_;
};

}  // namespace

TEST_F(MapFeedTest, EveryRouterTakesAChangeInMilliseconds) {
  const pgtest::Cluster cluster;
  std::vector<std::unique_ptr<Router>> routers;
  for (int i = 0; i < 4; ++i)
    routers.push_back(std::make_unique<Router>(cluster.dsn(), directory_, "r" + std::to_string(i)));
  const auto store = open(cluster.dsn());
  ASSERT_TRUE(within(5s, [&] { return routers[0]->feed().store_reachable(); }));
  StoredMap map = must(store->load(soon()));
  map = must(store->commit(map, shard_edit("warm"), {}, soon()));
  ASSERT_TRUE(wait_until_taken(*store, map.map->epoch(), soon()));
  ASSERT_TRUE(within(10s, [&] { return shardmap::routers(*store, soon())->size() == 4U; }));
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) {
    const auto begin = Clock::now();
    map = must(store->commit(map, shard_edit("s" + std::to_string(i)), {}, soon()));
    const auto gone = wait_until_taken(*store, map.map->epoch(), soon());
    ASSERT_TRUE(gone) << gone.error().to_string();
    EXPECT_TRUE(gone->empty());
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  RecordProperty("median_ms", static_cast<int>(times[10]));
  std::printf("commit to taken by 4 routers: median %.1f ms, most %.1f ms\n", times[10], times.back());
  EXPECT_LT(times[10], 100.0);
  for (const auto& router : routers) {
    EXPECT_EQ(export_map(*router->newest()), export_map(*map.map));
    EXPECT_EQ(router->disorder(), 0);
    EXPECT_TRUE(router->feed().lease_valid());
  }
}

TEST_F(MapFeedTest, ARouterStartsFromItsReplicaAndCatchesUp) {
  pgtest::Cluster cluster;
  const auto store = open(cluster.dsn());
  StoredMap map = must(store->commit(must(store->load(soon())), contract::first_edit(), {}, soon()));
  { const Router router(cluster.dsn(), directory_, "r"); }
  EXPECT_TRUE(shardmap::routers(*store, soon())->empty());  // it said good-bye
  cluster.stop();
  Router router(cluster.dsn(), directory_, "r", 500ms);
  EXPECT_EQ(export_map(*router.newest()), export_map(*map.map));
  EXPECT_FALSE(router.feed().lease_valid());
  EXPECT_FALSE(router.feed().store_reachable());
  // Changes are refused, with the reason.
  const auto away = open(cluster.dsn());
  const auto refused = away->commit(router.feed().current(), shard_edit("x"), {}, Deadline::in(2s));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "KG006");
  cluster.start();
  ASSERT_TRUE(within(10s, [&] { return router.feed().lease_valid(); }));
  map = must(away->commit(map, shard_edit("x"), {}, soon()));
  EXPECT_TRUE(within(5s, [&] { return router.newest()->epoch() == map.map->epoch(); }));
  EXPECT_EQ(router.disorder(), 0);
}

TEST_F(MapFeedTest, WithoutStoreAndReplicaThereIsNoStart) {
  const auto feed =
      MapFeed::start({"host=127.0.0.1 port=1 dbname=x", directory_, "r.db", "r", 5000ms, 1000ms, 300ms},
                     [](const MapPtr&) { FAIL(); });
  ASSERT_FALSE(feed);
  EXPECT_EQ(feed.error().sqlstate, "08006");
  EXPECT_FALSE(feed.error().hint.empty());
}

TEST_F(MapFeedTest, TheEmbeddedStoreFeedsItsOneRouter) {
  Router router("sqlite:map.db", directory_, "r");
  const auto store = open("sqlite:map.db");
  StoredMap map = must(store->load(soon()));
  ASSERT_TRUE(within(5s, [&] { return router.feed().lease_valid(); }));
  for (int i = 0; i < 5; ++i) {
    map = must(store->commit(map, shard_edit("s" + std::to_string(i)), {}, soon()));
    ASSERT_TRUE(wait_until_taken(*store, map.map->epoch(), soon()));
    EXPECT_EQ(router.newest()->epoch(), map.map->epoch());
  }
}

TEST_F(MapFeedTest, AFailOverUnderLoadIsFollowedByAll) {
  pgtest::Cluster primary;
  pgtest::Cluster standby = pgtest::Cluster::standby_of(primary);
  pgtest::psql(primary.dsn(), "ALTER SYSTEM SET synchronous_standby_names = '*'");
  pgtest::psql(primary.dsn(), "SELECT pg_reload_conf()");
  const std::string both = "host=127.0.0.1,127.0.0.1 port=" + std::to_string(primary.port()) + "," +
                           std::to_string(standby.port()) + " dbname=postgres user=postgres";
  std::vector<std::unique_ptr<Router>> routers;
  for (int i = 0; i < 3; ++i)
    routers.push_back(std::make_unique<Router>(both, directory_, "r" + std::to_string(i), 1000ms));
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> committed{0};
  std::thread editor([&] {
    const auto store = open(both);
    for (int i = 0; !stop; ++i) {
      const auto base = store->load(Deadline::in(2s));
      if (!base) continue;
      const auto done = store->commit(*base, shard_edit("n" + std::to_string(i)), {}, Deadline::in(2s));
      if (done) committed = done->map->epoch();
    }
  });
  ASSERT_TRUE(within(20s, [&] { return committed > 20; }));
  primary.kill();
  std::this_thread::sleep_for(1500ms);
  for (const auto& router : routers) EXPECT_GE(router->newest()->epoch(), 20U);  // routing goes on
  standby.promote();
  pgtest::psql(standby.dsn(), "ALTER SYSTEM SET synchronous_standby_names = ''");
  pgtest::psql(standby.dsn(), "SELECT pg_reload_conf()");
  const std::uint64_t before = committed;
  EXPECT_TRUE(within(20s, [&] { return committed > before + 20; }));
  stop = true;
  editor.join();
  const auto store = open(both);
  const StoredMap last = must(store->load(soon()));
  EXPECT_GE(last.map->epoch(), committed);
  for (const auto& router : routers) {
    EXPECT_TRUE(within(10s, [&] { return router->newest()->epoch() == last.map->epoch(); }));
    EXPECT_EQ(export_map(*router->newest()), export_map(*last.map));
    EXPECT_EQ(router->disorder(), 0);
    EXPECT_TRUE(within(10s, [&] { return router->feed().lease_valid(); }));
  }
}

// A standby that is nowhere: whoever waits for his commit to be safe waits for ever.
TEST_F(MapFeedTest, WhatWasSeenIsToldBeforeItIsSafeAndMakesNoLeaseLonger) {
  const pgtest::Cluster cluster;
  Router router(cluster.dsn(), directory_, "r", 100s);
  const auto store = open(cluster.dsn());
  ASSERT_TRUE(within(10s, [&] { return router.feed().lease_valid(); }));
  const StoredMap map = must(store->commit(must(store->load(soon())), shard_edit("s"), {}, soon()));
  ASSERT_TRUE(wait_until_taken(*store, map.map->epoch(), soon()));
  pgtest::psql(cluster.dsn(), "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  pgtest::psql(cluster.dsn(), "SELECT pg_reload_conf()");
  ASSERT_TRUE(within(20s, [&] {
    return !open(cluster.dsn())->put_notes({{"other", "a", "1", {}}}, Deadline::in(200ms));
  }));
  const auto lease_end = router.feed().lease_end();
  const std::uint64_t seen = map.map->epoch() + 5;
  router.feed().seen(seen);
  EXPECT_TRUE(within(5s, [&] { return shardmap::routers(*store, soon())->at(0).seen == seen; }));
  EXPECT_EQ(shardmap::routers(*store, soon())->at(0).epoch, map.map->epoch());
  EXPECT_TRUE(router.feed().lease_end() == lease_end);
  pgtest::psql(cluster.dsn(), "SET synchronous_commit = off; ALTER SYSTEM RESET synchronous_standby_names");
  pgtest::psql(cluster.dsn(), "SELECT pg_reload_conf()");
}

// A store that has forgotten its last commits must not give their numbers a second meaning.
TEST_F(MapFeedTest, ALostHistoryIsLiftedAboveWhatRoutersKnew) {
  const pgtest::Cluster cluster;
  Router router(cluster.dsn(), directory_, "r");
  StoredMap map = must(open(cluster.dsn())->load(soon()));
  for (int i = 0; i < 5; ++i)
    map = must(open(cluster.dsn())->commit(map, shard_edit("s" + std::to_string(i)), {}, soon()));
  ASSERT_TRUE(within(5s, [&] { return router.newest()->epoch() == 5; }));
  pgtest::psql(
      cluster.dsn(),
      "BEGIN; DELETE FROM kintsugi_map.edit WHERE epoch > 3; DELETE FROM kintsugi_map.shard WHERE id > 3;"
      "UPDATE kintsugi_map.head SET epoch = 3, next_shard = 4; COMMIT");
  EXPECT_TRUE(within(10s, [&] { return router.newest()->epoch() == 6; }));
  EXPECT_EQ(router.newest()->shards().size(), 3U);
  EXPECT_EQ(router.disorder(), 0);
  EXPECT_EQ(must(open(cluster.dsn())->load(soon())).map->epoch(), 6U);
}

// Its file was deleted, or its database made anew: that is no reason to forget where the rows are.
TEST_F(MapFeedTest, AnEmptyStoreInAnothersPlaceTakesNothingAway) {
  StoredMap map;
  {
    Router router("sqlite:map.db", directory_, "r");
    const auto store = open("sqlite:map.db");
    map = must(store->commit(must(store->load(soon())), contract::first_edit(), {}, soon()));
    ASSERT_TRUE(within(5s, [&] { return router.newest()->epoch() == map.map->epoch(); }));
  }
  for (const char* file : {"map.db", "map.db-wal", "map.db-shm"})
    std::filesystem::remove(directory_ + "/" + file);
  Router router("sqlite:map.db", directory_, "r", 500ms);
  const auto store = open("sqlite:map.db");
  const StoredMap empty = must(store->load(soon()));
  EXPECT_NE(empty.map->store_id(), map.map->store_id());
  // It says that it is alive, so that it is waited for, and is careful all the same.
  ASSERT_TRUE(within(5s, [&] { return shardmap::routers(*store, soon())->size() == 1U; }));
  EXPECT_EQ(export_map(*router.newest()), export_map(*map.map));
  EXPECT_FALSE(router.feed().lease_valid());
  EXPECT_FALSE(router.feed().store_reachable());
  EXPECT_EQ(must(store->load(soon())).map->epoch(), 0U);  // nor is anything written into it
  // Filled, it is the store from then on.
  const StoredMap filled = must(store->commit(empty, shard_edit("x"), {}, soon()));
  EXPECT_TRUE(within(10s, [&] { return router.newest()->store_id() == filled.map->store_id(); }));
  EXPECT_NE(router.newest()->shard_named("x"), nullptr);
  EXPECT_GT(router.newest()->epoch(), map.map->epoch());
  EXPECT_TRUE(within(10s, [&] { return router.feed().lease_valid(); }));
  EXPECT_EQ(router.disorder(), 0);
}

// A router that was frozen: the others see that it is gone, and it does not trust itself before it has the
// newest map.
TEST_F(MapFeedTest, AFrozenRouterIsNoticedAndWakesWithCare) {
  const pgtest::Cluster cluster;
  (void)open(cluster.dsn());
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(out[0]);
    Router router(cluster.dsn(), directory_, "frozen", 400ms);
    auto last = Clock::now();
    for (bool woken = false;; std::this_thread::sleep_for(200us)) {
      const auto now = Clock::now();
      const bool valid = router.feed().lease_valid();
      const std::uint64_t epoch = router.newest()->epoch();
      if (now - last > 700ms) {
        // What it may do with a map that it cannot know to be old; renewed, it has the new one.
        dprintf(out[1], "woken %s\n", valid && epoch == 0 ? "with an old map" : "with care");
        woken = true;
      }
      if (woken && valid) {
        dprintf(out[1], "valid %d\n", static_cast<int>(epoch));
        _exit(0);
      }
      last = now;
    }
  }
  close(out[1]);
  const auto store = open(cluster.dsn());
  StoredMap map = must(store->load(soon()));
  ASSERT_TRUE(within(10s, [&] { return store->notes("router", soon())->size() == 1; }));
  ASSERT_TRUE(within(10s, [&] { return routers(*store, soon())->at(0).alive(); }));
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  map = must(store->commit(map, shard_edit("while frozen"), {}, soon()));
  const auto late = wait_until_taken(*store, map.map->epoch(), Deadline::in(0ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message,
            "these routers have not taken epoch " + std::to_string(map.map->epoch()) + " in time: frozen");
  const auto gone = wait_until_taken(*store, map.map->epoch(), soon());
  ASSERT_TRUE(gone) << gone.error().to_string();
  ASSERT_EQ(gone->size(), 1U);
  EXPECT_EQ((*gone)[0].name, "frozen");
  std::this_thread::sleep_for(600ms);
  ASSERT_EQ(kill(child, SIGCONT), 0);
  std::string said;
  char buffer[256];
  for (ssize_t n = 0; (n = read(out[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(n));
  int status = 0;
  waitpid(child, &status, 0);
  close(out[0]);
  EXPECT_EQ(said, "woken with care\nvalid " + std::to_string(map.map->epoch()) + "\n");
}

}  // namespace kintsugi::shardmap
