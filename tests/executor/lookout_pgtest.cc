// Locks that keep other routers' commits away while snapshots are taken: held everywhere or nowhere, never for
// long, and known to have been held or not.
#include "executor/lookout.h"

#include <functional>

#include "executor/control_round.h"
#include "shardmap/local_map.h"
#include "tests/executor/shards.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;

// As a commit through another router does it; how long that may wait.
std::string commit_elsewhere(int shard, const std::string& how_long, const std::string& end = "COMMIT") {
  return Shards::get().on(shard, "BEGIN; SET lock_timeout = '" + how_long +
                                     "'; LOCK TABLE kintsugi.moment IN ROW EXCLUSIVE MODE; " + end);
}
std::string held_on(int shard) {
  return Shards::get().on(shard,
                          "SELECT count(*) FROM pg_locks WHERE relation = 'kintsugi.moment'::regclass AND "
                          "database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
                          "AND mode = 'ShareLock' AND granted");
}
std::string held() {
  return held_on(0) + held_on(1) + held_on(2);
}

// A thread's lookout and a statement's waiter.
struct World {
  io::Waiter* waiter;
  io::Gate gate;
  Lookout lookout;
  Lookout::Logins known_logins{login_to(0), login_to(1), login_to(2)};
  explicit World(io::Waiter* w) : waiter(w), lookout(w->loop(), gate) {}
  Lookout::Watch watch(const std::vector<int>& shards, std::chrono::milliseconds patience, bool alone = false) {
    Lookout::Logins logins;
    for (const int shard : shards) logins.push_back(known_logins.at(static_cast<std::size_t>(shard)));
    return lookout.watch(std::move(logins), waiter, patience, alone);
  }
};

io::Task<bool> until(World* world, std::function<bool()> done, std::chrono::milliseconds at_most = 20s) {
  const Deadline deadline = Deadline::in(at_most);
  while (!done() && !deadline.passed()) (void)co_await world->waiter->wait(deadline);
  co_return done();
}
io::Task<bool> is_held(World* world, Lookout::Watch* watch, std::chrono::milliseconds at_most = 20s) {
  auto waiting = until(
      world, [watch] { return watch->held(); }, at_most);
  co_return co_await std::move(waiting);
}
io::Task<bool> was_held(World* world, Lookout::Watch* watch) {
  watch->let_go();
  auto waiting = until(world, [watch] { return watch->was_held().has_value(); });
  if (!co_await std::move(waiting)) throw std::runtime_error("nobody says whether it was held");
  co_return *watch->was_held();
}

io::Task<int> run(io::Waiter* waiter, io::Task<> (*test)(World*)) {
  World world(waiter);
  auto testing = test(&world);
  co_await std::move(testing);
  auto closing = world.gate.close(&waiter->loop());
  co_await std::move(closing);
  co_return 0;
}

class LookoutTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (int i = 0; i < kShards; ++i) {
      auto local = shardmap::LocalMap::connect(Shards::get().dsn(i), patience());
      ASSERT_TRUE(local->claim("3f0c1a52-0000-4000-8000-000000000001", "uuid-" + std::to_string(i),
                               Shards::name(i), patience()));
    }
  }
};

io::Task<> holds_and_lets_go(World* world) {
  Lookout::Watch watch = world->watch({0, 1, 2}, 10s);
  auto holding = is_held(world, &watch);
  EXPECT_TRUE(co_await std::move(holding));
  EXPECT_EQ(held(), "111");
  EXPECT_THROW(commit_elsewhere(1, "50ms"), std::exception);
  auto ending = was_held(world, &watch);
  EXPECT_TRUE(co_await std::move(ending));
  EXPECT_EQ(held(), "000");
  commit_elsewhere(1, "50ms");
}
TEST_F(LookoutTest, HoldsOnAllShardsAndLetsGo) {
  act(run, holds_and_lets_go);
}

// Two routers' snapshots are not taken in different order on different shards; others look meanwhile.
io::Task<> is_alone(World* world) {
  World other(world->waiter);
  Lookout::Watch first = world->watch({0, 1, 2}, 10s, true);
  auto holding = is_held(world, &first);
  EXPECT_TRUE(co_await std::move(holding));
  Lookout::Watch second = other.watch({1, 2}, 10s, true), common = other.watch({0, 1, 2}, 10s);
  auto looking = is_held(&other, &common);
  EXPECT_TRUE(co_await std::move(looking));
  auto hoping = is_held(&other, &second, 300ms);
  EXPECT_FALSE(co_await std::move(hoping));
  EXPECT_FALSE(second.refused());
  auto ending = was_held(world, &first);
  EXPECT_TRUE(co_await std::move(ending));
  auto following = is_held(&other, &second);
  EXPECT_TRUE(co_await std::move(following));
  auto over = was_held(&other, &second);
  EXPECT_TRUE(co_await std::move(over));
  auto gone = was_held(&other, &common);
  (void)co_await std::move(gone);
  auto closing = other.gate.close(&world->waiter->loop());
  co_await std::move(closing);
}
TEST_F(LookoutTest, WhoIsToBeAloneWaitsForOthersLikeIt) {
  act(run, is_alone);
}

// What is prepared and decided elsewhere: nobody looks until it is visible. Meanwhile the other shards are
// free.
io::Task<> waits_for_what_is_prepared(World* world) {
  commit_elsewhere(1, "1s", "INSERT INTO kintsugi.marker VALUES ('job', 'mark'); PREPARE TRANSACTION 'half'");
  Lookout::Watch watch = world->watch({0, 1, 2}, 10s);
  auto hoping = is_held(world, &watch, 300ms);
  EXPECT_FALSE(co_await std::move(hoping));
  EXPECT_FALSE(watch.refused());
  auto linking = link_up(world->waiter);
  Links links = co_await std::move(linking);
  for (int i = 0; i < 20; ++i) {
    auto running = run_on_all({{links[0], "BEGIN; " + std::string(kLockForCommit) + "; COMMIT"}}, world->waiter,
                              Deadline::in(3s));
    const auto answers = co_await std::move(running);
    EXPECT_EQ(answers[0].tag, "COMMIT");
  }
  Shards::get().on(1, "COMMIT PREPARED 'half'");
  auto holding = is_held(world, &watch);
  EXPECT_TRUE(co_await std::move(holding));
  EXPECT_EQ(held(), "111");
}
TEST_F(LookoutTest, WaitsForWhatIsPreparedAndLeavesTheOthersFreeMeanwhile) {
  act(run, waits_for_what_is_prepared);
}

io::Task<> patience_ends(World* world) {
  Lookout::Watch slow = world->watch({0, 1}, 100ms);
  auto holding = is_held(world, &slow);
  EXPECT_TRUE(co_await std::move(holding));
  auto over = until(world, [&slow] { return slow.was_held().has_value(); });
  EXPECT_TRUE(co_await std::move(over));
  EXPECT_EQ(held(), "000");
  auto ending = was_held(world, &slow);
  EXPECT_FALSE(co_await std::move(ending));
}
TEST_F(LookoutTest, WhoTakesTooLongLosesThem) {
  act(run, patience_ends);
}

// The thread stands still: its locks end all the same, and it learns that.
io::Task<> frozen(World* world) {
  Lookout::Watch watch = world->watch({0, 1}, 100ms);
  auto holding = is_held(world, &watch);
  EXPECT_TRUE(co_await std::move(holding));
  commit_elsewhere(1, "20s");  // this thread runs nothing else meanwhile
  auto ending = was_held(world, &watch);
  EXPECT_FALSE(co_await std::move(ending));
  Lookout::Watch again = world->watch({0, 1}, 10s);
  auto holding_again = is_held(world, &again);
  EXPECT_TRUE(co_await std::move(holding_again));
  auto ending_again = was_held(world, &again);
  EXPECT_TRUE(co_await std::move(ending_again));
}
TEST_F(LookoutTest, AFrozenRouterLosesThemAndKnows) {
  act(run, frozen);
}

// As many as there are lanes hold by themselves; who comes then waits for one, together with all others.
io::Task<> shared(World* world) {
  std::vector<Lookout::Watch> first;
  for (std::size_t i = 0; i < Lookout::kLanes; ++i) first.push_back(world->watch({0, 1}, 10s));
  Lookout::Watch late = world->watch({1, 2}, 10s);
  Lookout::Watch later = world->watch({0, 2}, 10s);
  for (Lookout::Watch& watch : first) {
    auto holding = is_held(world, &watch);
    EXPECT_TRUE(co_await std::move(holding));
  }
  EXPECT_EQ(held(), "440");
  EXPECT_FALSE(late.held());
  auto ending = was_held(world, &first[0]);
  EXPECT_TRUE(co_await std::move(ending));
  auto holding = is_held(world, &later);
  EXPECT_TRUE(co_await std::move(holding));
  EXPECT_TRUE(late.held());
  EXPECT_EQ(held(), "441");
  late = Lookout::Watch();  // its client has gone
  EXPECT_TRUE(later.held());
  auto ending_later = was_held(world, &later);
  EXPECT_TRUE(co_await std::move(ending_later));
  first.clear();
}
TEST_F(LookoutTest, StatementsThatComeTogetherShareThem) {
  act(run, shared);
}

// A shard that is away refuses those that need it, and nobody else.
io::Task<> away(World* world) {
  auto dsn = Dsn::parse("host=127.0.0.1 port=1 dbname=x user=x");
  auto nowhere = ShardLogin::make("away", *dsn, "", "", std::nullopt);
  Lookout::Watch lost = world->lookout.watch({login_to(0), *nowhere}, world->waiter, 10s);
  Lookout::Watch well = world->watch({0, 1}, 10s);
  auto refusing = until(world, [&lost] { return lost.refused().has_value(); });
  EXPECT_TRUE(co_await std::move(refusing));
  EXPECT_EQ(lost.refused()->sqlstate, sqlstate::kShardUnreachable);
  auto holding = is_held(world, &well);
  EXPECT_TRUE(co_await std::move(holding));
}
TEST_F(LookoutTest, AShardThatIsAwayRefusesOnlyThoseThatNeedIt) {
  act(run, away);
}

// Each holds what the other waits for: the one who looks gives way.
io::Task<> crossed(World* world) {
  auto linking = link_up(world->waiter);
  Links links = co_await std::move(linking);
  const std::string lock(kLockForCommit);
  auto begun = run_on_all({{links[1], "BEGIN; " + lock}, {links[0], "BEGIN"}}, world->waiter, patience());
  (void)co_await std::move(begun);
  Lookout::Watch watch = world->watch({0, 1}, 10s);
  auto hoping = is_held(world, &watch, 20ms);
  EXPECT_FALSE(co_await std::move(hoping));
  auto committing = run_on_all({{links[0], lock}}, world->waiter, patience());
  const auto answers = co_await std::move(committing);
  EXPECT_EQ(answers[0].tag, "LOCK TABLE");
  auto ended = run_on_all({{links[1], "COMMIT"}, {links[0], "COMMIT"}}, world->waiter, patience());
  (void)co_await std::move(ended);
  auto holding = is_held(world, &watch);
  EXPECT_TRUE(co_await std::move(holding));
}
TEST_F(LookoutTest, TwoThatWaitForEachOtherPart) {
  act(run, crossed);
}

}  // namespace
}  // namespace kintsugi::executor
