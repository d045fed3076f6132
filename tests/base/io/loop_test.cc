#include "base/io/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/base/io/scene.h"

namespace kintsugi::io {
namespace {

using namespace std::chrono_literals;

struct Counter final : EventTarget {
  int told = 0;
  std::uint32_t last = 0;
  std::function<void()> then;
  void on_event(Watch&, std::uint32_t ready) override {
    ++told;
    last = ready;
    if (then) then();
  }
};

// Runs the loop for a while.
void spin(Loop& loop, std::chrono::milliseconds time) {
  Timer end;
  end.on_fire = [&] { loop.stop(); };
  end.set(loop, Deadline::in(time));
  loop.run();
}

TEST(Loop, PostedWorkRunsInOrderOnTheLoopsThread) {
  Loop loop;
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 1000; ++i) loop.post([&seen, i] { seen.push_back(i); });
    loop.post([&loop] { loop.stop(); });
  });
  loop.run();
  poster.join();
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Loop, ManyThreadsPostAndNothingIsLost) {
  Loop loop;
  int seen = 0;
  std::vector<std::thread> posters;
  for (int t = 0; t < 4; ++t) {
    posters.emplace_back([&] {
      for (int i = 0; i < 2500; ++i) {
        loop.post([&] {
          if (++seen == 10000) loop.stop();
        });
      }
    });
  }
  loop.run();
  for (auto& poster : posters) poster.join();
  EXPECT_EQ(seen, 10000);
}

TEST(Loop, WorkThatPostsWork) {
  Loop loop;
  int left = 100;
  std::function<void()> again = [&] {
    if (--left == 0) loop.stop();
    loop.post(again);
  };
  loop.post(again);
  loop.run();
  EXPECT_EQ(left, 0);
}

TEST(Timer, FireInTheOrderOfTheirDeadlines) {
  Loop loop;
  std::vector<int> fired;
  std::vector<std::unique_ptr<Timer>> timers;
  const auto now = Deadline::Clock::now();
  for (int i : {7, 3, 9, 1, 5, 8, 2, 6, 4, 0}) {
    auto& timer = timers.emplace_back(std::make_unique<Timer>());
    timer->on_fire = [&fired, i] { fired.push_back(i); };
    timer->set(loop, Deadline::at(now + i * 3ms));
  }
  spin(loop, 60ms);
  EXPECT_EQ(fired, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Timer, MovedLaterSoonerOrAwayAndGone) {
  Loop loop;
  int later = 0, sooner = 0, never = 0;
  Deadline::Clock::time_point later_at, sooner_at;
  const auto begun = Deadline::Clock::now();
  Timer a, b, c;
  auto d = std::make_unique<Timer>();
  a.on_fire = [&] {
    ++later;
    later_at = Deadline::Clock::now();
  };
  b.on_fire = [&] {
    ++sooner;
    sooner_at = Deadline::Clock::now();
  };
  c.on_fire = [&] { ++never; };
  d->on_fire = [&] { ++never; };
  a.set(loop, Deadline::in(10ms));
  a.set(loop, Deadline::in(60ms));
  b.set(loop, Deadline::in(10s));
  b.set(loop, Deadline::in(20ms));
  c.set(loop, Deadline::in(10ms));
  c.set(loop, Deadline::never());
  d->set(loop, Deadline::in(15ms));
  d.reset();
  spin(loop, 120ms);
  EXPECT_EQ(later, 1);
  EXPECT_EQ(sooner, 1);
  EXPECT_EQ(never, 0);
  EXPECT_GE(later_at - begun, 60ms);
  EXPECT_GE(sooner_at - begun, 20ms);
  EXPECT_LT(sooner_at - begun, 5s);
}

TEST(Timer, ThatSetsItselfAgainAndOneThatDestroysAnother) {
  Loop loop;
  int ticks = 0;
  Timer ticking;
  ticking.on_fire = [&] {
    if (++ticks < 5) ticking.set(loop, Deadline::in(1ms));
  };
  ticking.set(loop, Deadline::in(1ms));
  auto victim = std::make_unique<Timer>();
  int fired = 0;
  victim->on_fire = [&] { ++fired; };
  victim->set(loop, Deadline::in(5ms));
  Timer killer;
  killer.on_fire = [&] { victim.reset(); };
  killer.set(loop, Deadline::in(4ms));
  spin(loop, 50ms);
  EXPECT_EQ(ticks, 5);
  EXPECT_EQ(fired, 0);
}

TEST(Watch, TellsWhatIsWantedAndNothingElse) {
  Loop loop;
  Pair pair;
  Counter counter;
  Watch watch;
  watch.attach(loop, pair.here.get(), &counter);
  spin(loop, 20ms);
  EXPECT_EQ(counter.told, 0) << "nothing was wanted";
  counter.then = [&] { watch.want(0); };
  watch.want(kWritable);
  spin(loop, 20ms);
  EXPECT_EQ(counter.told, 1);
  EXPECT_EQ(counter.last, kWritable);
  ASSERT_EQ(write(pair.there.get(), "x", 1), 1);
  spin(loop, 20ms);
  EXPECT_EQ(counter.told, 1) << "readable, and not wanted";
  watch.want(kReadable);
  spin(loop, 20ms);
  EXPECT_EQ(counter.told, 2);
  EXPECT_EQ(counter.last, kReadable);
}

// What nobody wants any more disarms itself: the loop sleeps.
TEST(Watch, AnUnwantedEventDoesNotKeepTheLoopAwake) {
  for (const bool hang_up : {false, true}) {
    Loop loop;
    Pair pair;
    Counter counter;
    Watch watch;
    watch.attach(loop, pair.here.get(), &counter);
    watch.want(kReadable | kWritable);
    watch.want(0);
    if (hang_up) {
      pair.there.reset();
    } else {
      ASSERT_EQ(write(pair.there.get(), "x", 1), 1);
    }
    const std::clock_t before = std::clock();
    spin(loop, 200ms);
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 20) << "the loop was spinning";
    EXPECT_EQ(counter.told, 0);
    watch.want(kReadable);
    counter.then = [&] { watch.want(0); };
    spin(loop, 20ms);
    EXPECT_EQ(counter.told, 1) << "wanted again, it is told again";
  }
}

TEST(Watch, DetachedByAnothersEventOfTheSameRoundIsNotTold) {
  Loop loop;
  Pair one, two;
  Counter first, second;
  auto a = std::make_unique<Watch>();
  auto b = std::make_unique<Watch>();
  a->attach(loop, one.here.get(), &first);
  b->attach(loop, two.here.get(), &second);
  a->want(kReadable);
  b->want(kReadable);
  first.then = [&] {
    b.reset();
    a->want(0);
  };
  second.then = [&] {
    a.reset();
    b->want(0);
  };
  ASSERT_EQ(write(one.there.get(), "x", 1), 1);
  ASSERT_EQ(write(two.there.get(), "x", 1), 1);
  spin(loop, 20ms);
  EXPECT_EQ(first.told + second.told, 1);
}

// ---- Waiter ----

Task<> wait_once(Waiter* waiter, Deadline deadline, std::vector<bool>* results) {
  results->push_back(co_await waiter->wait(deadline));
}

TEST(Waiter, IsWokenByANotifyBeforeDuringOrNever) {
  Scene scene;
  std::vector<bool> results;
  Waiter waiter(scene.loop);
  waiter.notify();
  scene.run(wait_once(&waiter, Deadline::in(5s), &results));
  EXPECT_EQ(results, (std::vector<bool>{true}));
}

TEST(Waiter, ADeadlineIsToldOnceAndLeavesNothing) {
  Scene scene;
  std::vector<bool> results;
  struct Story {
    static Task<> tell(Loop* loop, std::vector<bool>* seen) {
      Waiter waiter(*loop);
      seen->push_back(co_await waiter.wait(Deadline::in(5ms)));
      waiter.notify();
      seen->push_back(co_await waiter.wait(Deadline::in(5s)));
      seen->push_back(co_await waiter.wait(Deadline::in(5ms)));
      loop->post([&waiter] { waiter.notify(); });
      seen->push_back(co_await waiter.wait(Deadline::never()));
      seen->push_back(co_await waiter.wait(Deadline::at(Deadline::Clock::now() - 1s)));
    }
  };
  scene.run(Story::tell(&scene.loop, &results));
  EXPECT_EQ(results, (std::vector<bool>{false, true, false, true, false}));
}

TEST(Gate, WaitsForAllAndCountsThem) {
  Scene scene;
  struct Story {
    static Task<> sleeper(Loop* loop, int ms, int* ended) {
      Waiter waiter(*loop);
      (void)co_await waiter.wait(Deadline::in(ms * 1ms));
      ++*ended;
    }
    static Task<> tell(Loop* loop, int* ended, int* at_close) {
      Gate gate;
      for (int ms : {1, 5, 10}) gate.spawn(sleeper(loop, ms, ended));
      EXPECT_EQ(gate.running(), 3U);
      auto closing = gate.close(loop);
      co_await std::move(closing);
      *at_close = *ended;
      EXPECT_TRUE(gate.closed());
    }
  };
  int ended = 0, at_close = 0;
  scene.run(Story::tell(&scene.loop, &ended, &at_close));
  EXPECT_EQ(at_close, 3);
}

// Two million answers that are all there already: under a sanitizer, too, the stack does not grow with them.
TEST(Task, ALoopOverTasksThatDoNotWaitStaysWhereItIs) {
  struct Story {
    static Task<long> one(long value) { co_return value; }
    static Task<> tell(Loop* loop, long* sum) {
      Waiter waiter(*loop);
      for (long i = 0; i < 2000000; ++i) {
        auto answering = one(i);
        *sum += co_await std::move(answering);
        if (i % 500000 == 0) (void)co_await waiter.wait(Deadline::in(std::chrono::milliseconds(1)));
      }
    }
  };
  Scene scene;
  long sum = 0;
  scene.run(Story::tell(&scene.loop, &sum));
  EXPECT_EQ(sum, 1999999000000);
}

TEST(Task, CarriesValuesAndExceptions) {
  Scene scene;
  struct Story {
    static Task<int> value() { co_return 7; }
    static Task<int> broken() {
      throw std::runtime_error("broken");
      co_return 0;
    }
    static Task<> tell(std::string* seen) {
      auto first = value();
      *seen += std::to_string(co_await std::move(first));
      try {
        auto second = broken();
        (void)co_await std::move(second);
      } catch (const std::runtime_error& e) {
        *seen += e.what();
      }
    }
  };
  std::string seen;
  scene.run(Story::tell(&seen));
  EXPECT_EQ(seen, "7broken");
}

}  // namespace
}  // namespace kintsugi::io
