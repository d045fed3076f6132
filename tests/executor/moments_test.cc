#include "executor/moments.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/io/gate.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;

class MomentsTest : public testing::Test {
 protected:
  Moments::Pass look(std::vector<ShardId> shards, std::chrono::milliseconds patience = 1h) {
    return moments_.look(std::move(shards), &waiter_, patience);
  }
  Moments::Pass commit(std::vector<ShardId> shards) { return moments_.commit(std::move(shards), &waiter_); }

  io::Loop loop_;
  io::Waiter waiter_{loop_};
  Moments moments_;
};

TEST_F(MomentsTest, LooksDoNotWaitForLooksNorCommitsForCommits) {
  auto first = look({1, 2}), second = look({1, 2});
  EXPECT_TRUE(first.inside() && second.inside());
  first.leave();
  second.leave();
  auto one = commit({1, 2}), other = commit({2, 1});
  EXPECT_TRUE(one.inside() && other.inside());
}

TEST_F(MomentsTest, TwoCommonShardsKeepALookAndACommitApart) {
  auto first = commit({3, 1});
  auto one_common = look({1, 2}), none_common = look({4, 5}), both = look({1, 2, 3});
  EXPECT_TRUE(one_common.inside());
  EXPECT_TRUE(none_common.inside());
  EXPECT_FALSE(both.inside());
  first.leave();
  EXPECT_TRUE(both.inside());
  auto later = commit({1, 3});
  EXPECT_FALSE(later.inside());
  both.leave();
  EXPECT_TRUE(later.inside());
}

// Neither side keeps the other out by coming again and again.
TEST_F(MomentsTest, WhoCameLaterWaitsBehindWhoWaits) {
  auto first = commit({1, 2});
  auto waits = look({1, 2});
  auto later = commit({1, 2}), elsewhere = commit({5, 6});
  EXPECT_FALSE(waits.inside());
  EXPECT_FALSE(later.inside());
  EXPECT_TRUE(elsewhere.inside());
  first.leave();
  EXPECT_TRUE(waits.inside());
  EXPECT_FALSE(later.inside());
  auto behind = look({1, 2});
  EXPECT_FALSE(behind.inside());
  waits.leave();
  EXPECT_TRUE(later.inside());
  EXPECT_FALSE(behind.inside());
  later.leave();
  EXPECT_TRUE(behind.inside());
}

// Of two snapshots over the same shards one is the older one on all of them.
TEST_F(MomentsTest, LooksThatAreToBeAloneComeOneAfterTheOther) {
  auto first = moments_.look({1, 2, 3}, &waiter_, 1h, true);
  auto second = moments_.look({2, 3}, &waiter_, 1h, true),
       elsewhere = moments_.look({3, 4}, &waiter_, 1h, true);
  auto common = look({1, 2, 3});
  EXPECT_TRUE(first.inside());
  EXPECT_FALSE(second.inside());
  EXPECT_TRUE(elsewhere.inside());
  EXPECT_TRUE(common.inside());
  auto writes = commit({2, 3});
  first.leave();
  EXPECT_TRUE(second.inside());
  common.leave();
  EXPECT_FALSE(writes.inside());
  second.leave();
  EXPECT_TRUE(writes.inside());
}

TEST_F(MomentsTest, OneThatIsStuckAloneIsOvertakenByTheNext) {
  auto stuck = moments_.look({1, 2}, &waiter_, 0ms, true);
  EXPECT_TRUE(stuck.inside());
  auto next = moments_.look({1, 2}, &waiter_, 1h, true);
  EXPECT_FALSE(next.inside());
  moments_.overtake();
  EXPECT_TRUE(next.inside());
  EXPECT_FALSE(stuck.inside());
}

TEST_F(MomentsTest, AShardThatIsNamedTwiceIsOne) {
  auto first = commit({1, 1, 2});
  EXPECT_TRUE(look({1, 1}).inside());
}

TEST_F(MomentsTest, ALookIsOvertakenByWhoWaitsForItAndOnlyThen) {
  auto patient = look({1, 2}), hurried = look({1, 2}, 0ms), alone = look({7, 8}, 0ms);
  EXPECT_TRUE(patient.inside() && hurried.inside() && alone.inside());
  moments_.overtake();
  EXPECT_TRUE(hurried.inside());  // nobody waits
  patient.leave();
  auto waits = commit({1, 2});
  EXPECT_FALSE(waits.inside());
  moments_.overtake();
  EXPECT_TRUE(waits.inside());
  EXPECT_FALSE(hurried.inside());
  EXPECT_TRUE(alone.inside());
  waits.leave();
  EXPECT_FALSE(hurried.inside()) << "its snapshots may be of two moments: it has to look again";
  hurried.leave();
}

// Who has been let in and has not heard of it would wait for ever.
TEST_F(MomentsTest, NobodyIsOvertakenBeforeHeKnowsThatHeIsInside) {
  auto first = commit({1, 2});
  auto waits = look({1, 2}, 0ms);
  EXPECT_FALSE(waits.inside());
  auto behind = commit({1, 2});
  first.leave();
  moments_.overtake();
  EXPECT_FALSE(behind.inside());
  EXPECT_TRUE(waits.inside());
  moments_.overtake();
  EXPECT_TRUE(behind.inside());
  EXPECT_FALSE(waits.inside());
}

TEST_F(MomentsTest, ALookWithPatienceLeftIsNotOvertaken) {
  auto patient = look({1, 2});
  EXPECT_TRUE(patient.inside());
  auto waits = commit({1, 2});
  moments_.overtake();
  EXPECT_TRUE(patient.inside());
  EXPECT_FALSE(waits.inside());
}

TEST_F(MomentsTest, QuietIsWhatNoCommitHasDisturbed) {
  const auto since = moments_.quiet({1, 2});
  ASSERT_TRUE(since);
  EXPECT_TRUE(moments_.undisturbed(*since));
  {
    auto pass = commit({5, 6});  // wherever: it is simple, and errs on the safe side
    EXPECT_FALSE(moments_.undisturbed(*since));
    EXPECT_FALSE(moments_.quiet({1, 2}));
  }
  EXPECT_FALSE(moments_.undisturbed(*since));
  EXPECT_FALSE(moments_.quiet({1, 2})) << "another one is to be expected";
}

TEST_F(MomentsTest, LooksWaitForWhatIsInDoubtAndCommitsDoNot) {
  moments_.doubt({2});
  EXPECT_FALSE(moments_.quiet({1, 2}));
  EXPECT_TRUE(moments_.quiet({1, 3}));
  auto waits = look({1, 2}), other = look({1, 3});
  EXPECT_FALSE(waits.inside());
  EXPECT_TRUE(other.inside());
  auto passes = commit({1, 2});
  EXPECT_TRUE(passes.inside()) << "nobody who waits for a Settler keeps a commit waiting";
  const std::uint64_t then = moments_.doubts();
  moments_.doubt({2});  // raised while the Settler was on its way
  moments_.clear(2, then);
  EXPECT_TRUE(moments_.in_doubt({2}));
  moments_.clear(2, moments_.doubts());
  EXPECT_FALSE(moments_.any_doubt());
  EXPECT_FALSE(waits.inside());
  passes.leave();
  EXPECT_TRUE(waits.inside());
}

TEST_F(MomentsTest, WhoIsLetInIsWoken) {
  auto first = commit({1, 2});
  auto waits = look({1, 2});
  std::thread other([&first] { first.leave(); });
  other.join();
  bool woken = false;
  const auto wait = [&]() -> io::Task<> {
    woken = co_await waiter_.wait(Deadline::in(20s));
    loop_.stop();
  };
  auto waiting = wait();
  auto running = [&]() -> io::Task<> { co_await std::move(waiting); };
  io::Gate gate;
  gate.spawn(running());
  loop_.run();
  EXPECT_TRUE(woken);
  EXPECT_TRUE(waits.inside());
}

// However many threads come and go: a commit and a look that share two shards are never inside together.
TEST_F(MomentsTest, ManyThreadsKeepApart) {
  std::atomic<int> looks{0}, commits{0}, entered{0};
  std::atomic<bool> wrong{false};
  const auto work = [&](bool commits_here, unsigned seed) {
    io::Loop loop;
    io::Waiter waiter(loop);
    for (int i = 0; i < 300; ++i) {
      const ShardId third = 3 + (seed + static_cast<unsigned>(i)) % 3;
      auto pass =
          commits_here ? moments_.commit({1, 2, third}, &waiter) : moments_.look({1, 2, third}, &waiter, 1h);
      while (!pass.inside()) std::this_thread::yield();
      std::atomic<int>& mine = commits_here ? commits : looks;
      const std::atomic<int>& theirs = commits_here ? looks : commits;
      ++mine;
      ++entered;
      if (theirs > 0) wrong = true;
      --mine;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 6; ++i) threads.emplace_back(work, i % 2 == 0, i);
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
  EXPECT_EQ(entered, 1800);
}

}  // namespace
}  // namespace kintsugi::executor
