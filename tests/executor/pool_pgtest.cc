// Pools under contention: several threads, more users than connections, connections that die or come back
// dirty. The limit holds at every moment, everybody gets a turn, and nothing is left at the end.
#include "executor/pool.h"

#include <atomic>
#include <random>
#include <thread>

#include "tests/executor/scene.h"
#include "tests/pg/cluster.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;

pgtest::Cluster& cluster() {
  static pgtest::Cluster instance;
  return instance;
}

std::shared_ptr<const ShardLogin> login() {
  static const auto made = *ShardLogin::make("s1", *Dsn::parse(cluster().dsn()), "", "", std::nullopt);
  return made;
}

PoolConfig config(int size, milliseconds wait = 60s) {
  PoolConfig made;
  made.size = size;
  made.wait_timeout = wait;
  return made;
}

SettingsRef options(int kind) {
  return kind == 0 ? Settings::none() : Settings::intern({{"work_mem", std::to_string(64 * (kind + 1))}});
}

struct Totals {
  std::atomic<int> turns{0}, failed{0}, in_use{0}, most{0}, wrong{0};
};

struct Work {
  PoolDirectory* directory;
  Totals* totals;
  int turns, kinds;
  unsigned seed;
  bool rough;  // some leases are broken, left in a transaction, or their server process is killed
};

io::Task<> take_turns(ThreadPools* pools, Work work) {
  std::mt19937 random(work.seed);
  io::Waiter waiter(pools->loop());
  for (int i = 0; i < work.turns; ++i) {
    const int kind = static_cast<int>(random() % static_cast<unsigned>(work.kinds));
    BackendPool& pool = pools->pool_for(login(), options(kind));
    auto acquiring = pool.acquire(Settings::none(), &waiter, patience(), [] { return Status{}; });
    auto lease = co_await std::move(acquiring);
    if (!lease) {
      ADD_FAILURE() << lease.error().to_string();
      ++work.totals->failed;
      continue;
    }
    const int now = ++work.totals->in_use;
    int most = work.totals->most.load();
    while (most < now && !work.totals->most.compare_exchange_weak(most, now)) {
    }
    (*lease)->stream.set_target(&waiter);
    const bool rough = work.rough && random() % 8 == 0;
    const char* sql = !rough              ? "SELECT current_setting('work_mem')"
                      : random() % 2 == 0 ? "BEGIN; SELECT current_setting('work_mem')"
                                          : "SELECT pg_terminate_backend(pg_backend_pid())";
    auto running = run_control_query(lease->get(), sql, &waiter, patience());
    auto rows = co_await std::move(running);
    if (!rough && !rows) {
      ADD_FAILURE() << rows.error().to_string();
      ++work.totals->failed;
    }
    if (!rough && rows && *(*rows)[0][0] != (kind == 0 ? "4MB" : std::to_string(64 * (kind + 1)) + "kB")) {
      ++work.totals->wrong;
    }
    ++work.totals->turns;
    --work.totals->in_use;
  }
}

io::Task<> all_of_a_thread(ThreadPools* pools, int users, Work work) {
  io::Gate gate;
  for (int i = 0; i < users; ++i) {
    work.seed = work.seed * 31 + 7;
    gate.spawn(take_turns(pools, work));
  }
  auto ending = gate.close(&pools->loop());
  co_await std::move(ending);
}

// Every thread goes on turning its loop until all are done: its idle connections are for the others.
void crowd(int threads, int users, int limit, Work work) {
  (void)login();  // PostgreSQL ends with the thread that started it
  PoolDirectory directory(config(limit));
  Totals totals;
  work.totals = &totals;
  std::atomic<int> running{threads};
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&, t, work]() mutable {
      struct Story {
        static io::Task<> tell(ThreadPools* pools, int users, Work work, std::atomic<int>* running) {
          auto working = all_of_a_thread(pools, users, work);
          co_await std::move(working);
          running->fetch_sub(1);
          io::Waiter waiter(pools->loop());
          while (running->load() > 0) (void)co_await waiter.wait(Deadline::in(5ms));
          pools->shut_down();
          (void)co_await waiter.wait(Deadline::in(20ms));  // what others have posted is read
        }
      };
      io::Scene scene;
      ThreadPools pools(scene.loop, directory);
      work.seed = static_cast<unsigned>(t + 1);
      scene.run(Story::tell(&pools, users, work, &running));
    });
  }
  for (auto& thread : crew) thread.join();
  EXPECT_EQ(totals.turns.load(), threads * users * work.turns);
  EXPECT_EQ(totals.failed.load(), 0);
  EXPECT_EQ(totals.wrong.load(), 0) << "a connection with other startup options was given out";
  EXPECT_LE(totals.most.load(), limit);
  EXPECT_GT(totals.most.load(), 1);
  const auto slots = directory.slots_for(login());
  EXPECT_EQ(slots->open(), 0);
  EXPECT_EQ(slots->waiting.load(), 0);
}

TEST(Pool, ManyThreadsAndFewConnections) {
  crowd(4, 10, 3, {.turns = 40, .kinds = 1, .rough = false});
}

TEST(Pool, WithDifferentStartupOptions) {
  crowd(3, 8, 4, {.turns = 30, .kinds = 3, .rough = false});
}

TEST(Pool, WithConnectionsThatDieOrComeBackDirty) {
  crowd(4, 8, 3, {.turns = 30, .kinds = 2, .rough = true});
}

// ---- one thread, step by step ----

struct Stage {
  PoolDirectory directory;
  io::Scene scene;
  ThreadPools pools{scene.loop, directory};

  explicit Stage(const PoolConfig& c) : directory(c) {}
  void run(io::Task<> (*story)(ThreadPools*)) {
    struct Whole {
      static io::Task<> tell(ThreadPools* pools, io::Task<> (*story)(ThreadPools*)) {
        auto telling = story(pools);
        co_await std::move(telling);
        pools->shut_down();
      }
    };
    scene.run(Whole::tell(&pools, story));
  }
};

io::Task<BackendLease> take(ThreadPools* pools, int kind, io::Waiter* waiter) {
  auto acquiring = pools->pool_for(login(), options(kind)).acquire(Settings::none(), waiter, patience(), [] {
    return Status{};
  });
  auto lease = co_await std::move(acquiring);
  EXPECT_TRUE(lease) << lease.error().to_string();
  co_return lease ? std::move(*lease) : BackendLease{};
}

TEST(Pool, GivesBackTheConnectionThatWasUsedLast) {
  struct Story {
    static io::Task<> tell(ThreadPools* pools) {
      io::Waiter waiter(pools->loop());
      auto t1 = take(pools, 0, &waiter);
      BackendLease a = co_await std::move(t1);
      auto t2 = take(pools, 0, &waiter);
      BackendLease b = co_await std::move(t2);
      const auto pid_a = a->key.pid, pid_b = b->key.pid;
      EXPECT_NE(pid_a, pid_b);
      b.release();
      a.release();
      BackendPool& pool = pools->pool_for(login(), options(0));
      EXPECT_EQ(pool.idle(), 2U);
      BackendLease again = pool.try_acquire(Settings::none());
      EXPECT_TRUE(again);
      EXPECT_EQ(again->key.pid, pid_a);
    }
  };
  Stage(config(5)).run(Story::tell);
}

TEST(Pool, PrefersTheConnectionWithTheSettings) {
  struct Story {
    static io::Task<> tell(ThreadPools* pools) {
      io::Waiter waiter(pools->loop());
      const SettingsRef wanted = Settings::intern({{"work_mem", "1MB"}});
      auto t1 = take(pools, 0, &waiter);
      BackendLease a = co_await std::move(t1);
      auto t2 = take(pools, 0, &waiter);
      BackendLease b = co_await std::move(t2);
      a->applied = wanted;
      const auto pid_a = a->key.pid;
      a.release();
      b.release();
      BackendLease again = pools->pool_for(login(), options(0)).try_acquire(wanted);
      EXPECT_EQ(again->key.pid, pid_a);
    }
  };
  Stage(config(5)).run(Story::tell);
}

TEST(Pool, WaitingEndsWithItsDeadline) {
  struct Story {
    static io::Task<> tell(ThreadPools* pools) {
      io::Waiter waiter(pools->loop()), second(pools->loop());
      auto taking = take(pools, 0, &waiter);
      BackendLease held = co_await std::move(taking);
      for (int kind : {0, 1}) {
        auto acquiring =
            pools->pool_for(login(), options(kind)).acquire(Settings::none(), &second, Deadline::in(100ms), [] {
              return Status{};
            });
        auto late = co_await std::move(acquiring);
        EXPECT_FALSE(late);
        EXPECT_EQ(late.error().sqlstate, "53400");
        EXPECT_EQ(late.error().detail, "1 of 1 connections are in use, 0 clients wait.");
      }
      auto gone = pools->pool_for(login(), options(0)).acquire(Settings::none(), &second, patience(), [] {
        return Status(fail("57014", "canceled"));
      });
      second.notify();
      auto canceled = co_await std::move(gone);
      EXPECT_FALSE(canceled);
      EXPECT_EQ(canceled.error().sqlstate, "57014");
      EXPECT_EQ(pools->directory().slots_for(login())->waiting.load(), 0);
    }
  };
  Stage(config(1)).run(Story::tell);
}

// An idle connection with other startup options makes room.
TEST(Pool, OtherStartupOptionsMakeRoom) {
  struct Story {
    static io::Task<> tell(ThreadPools* pools) {
      io::Waiter waiter(pools->loop());
      for (int i = 0; i < 6; ++i) {
        auto taking = take(pools, i % 3, &waiter);
        BackendLease held = co_await std::move(taking);
        EXPECT_TRUE(held);
      }
      EXPECT_EQ(pools->directory().slots_for(login())->open(), 1);
    }
  };
  Stage(config(1)).run(Story::tell);
}

// There are as many pools as clients find startup options to ask for.
TEST(Pool, IsForgottenWhenNobodyUsesItAndItHasNoConnection) {
  struct Story {
    static io::Task<> tell(ThreadPools* pools) {
      io::Waiter waiter(pools->loop());
      const auto later = [pools](std::chrono::seconds by) { pools->sweep(pools->loop().now() + by); };
      pools->pool_for(login(), options(0));  // somebody may hold a plain pointer to this one
      for (int i = 0; i < 200; ++i) {
        const SettingsRef startup = Settings::intern({{"work_mem", std::to_string(100 + i)}});
        PoolUse use(pools->pool_for(login(), startup));
        PoolUse moved(std::move(use));
        EXPECT_EQ(use.get(), nullptr);
        EXPECT_NE(moved.get(), nullptr);
      }
      EXPECT_EQ(pools->pools(), 201U);
      later(30s);
      EXPECT_EQ(pools->pools(), 201U) << "who comes back soon finds it";
      {
        PoolUse used(pools->pool_for(login(), options(1)));
        auto taking = take(pools, 2, &waiter);
        BackendLease leased = co_await std::move(taking);
        { PoolUse passing(pools->pool_for(login(), options(2))); }
        later(200s);
        EXPECT_EQ(pools->pools(), 3U) << "one never counted, one used, one leased from";
      }
      later(200s);
      EXPECT_EQ(pools->pools(), 2U) << "one never counted, one with an idle connection";
      later(1000s);  // pool.idle_timeout
      later(1000s);
      EXPECT_EQ(pools->pools(), 1U);
      EXPECT_EQ(pools->directory().slots_for(login())->open(), 0);
    }
  };
  Stage(config(5)).run(Story::tell);
}

TEST(Pool, ADirtyConnectionIsClosedAndADeadOneIsNotGivenOut) {
  struct Story {
    static io::Task<> tell(ThreadPools* pools) {
      io::Waiter waiter(pools->loop());
      BackendPool& pool = pools->pool_for(login(), options(0));
      auto t1 = take(pools, 0, &waiter);
      BackendLease a = co_await std::move(t1);
      a->stream.set_target(&waiter);
      auto running = run_control_query(a.get(), "BEGIN", &waiter, patience());
      EXPECT_TRUE(co_await std::move(running));
      a.release();
      EXPECT_EQ(pool.idle(), 0U);
      EXPECT_EQ(pool.slots()->open(), 0);
      auto t2 = take(pools, 0, &waiter);
      BackendLease b = co_await std::move(t2);
      const auto pid = b->key.pid;
      b.release();
      pgtest::psql(cluster().dsn(), "SELECT pg_terminate_backend(" + std::to_string(pid) + ", 20000)");
      (void)co_await waiter.wait(Deadline::in(10ms));  // the loop turns
      auto t3 = take(pools, 0, &waiter);
      BackendLease c = co_await std::move(t3);
      EXPECT_NE(c->key.pid, pid);
      EXPECT_EQ(pool.slots()->open(), 1);
    }
  };
  Stage(config(5)).run(Story::tell);
}

// The process was frozen in the midst of a round, and its loop's time does not know of it.
TEST(Pool, OneThatHasDiedSinceIsNotGivenOutInTheSameRound) {
  struct Story {
    static io::Task<> tell(ThreadPools* pools) {
      io::Waiter waiter(pools->loop());
      BackendPool& pool = pools->pool_for(login(), options(0));
      auto taking = take(pools, 0, &waiter);
      BackendLease lease = co_await std::move(taking);
      const auto pid = lease->key.pid;
      lease.release();
      pgtest::psql(cluster().dsn(), "SELECT pg_terminate_backend(" + std::to_string(pid) + ", 20000)");
      BackendLease again = pool.try_acquire(Settings::none());
      EXPECT_FALSE(again) << "it is the one that was ended";
      EXPECT_EQ(pool.slots()->open(), 0);
    }
  };
  Stage(config(5)).run(Story::tell);
}

}  // namespace
}  // namespace kintsugi::executor
