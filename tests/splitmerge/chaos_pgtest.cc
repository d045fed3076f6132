// The process that moves is killed or frozen between any two steps, while clients write and count. Afterwards
// another has finished or undone the move, and every row is where the map says.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/patience.h"
#include "tests/splitmerge/load.h"
#include "tests/splitmerge/runner_process.h"

namespace kintsugi::splitmerge {
namespace {

// Writers keep both cores at work, and a move has to catch up with them.
constexpr auto kSoonEnough = 60s * kPatience;

class ChaosTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    shop(300, 3);
    pgtest::psql(dsn(1), "TRUNCATE orders");
  }
  std::string other(const std::string& shardlet) { return owner_of(shardlet) == "s1" ? "s2" : "s1"; }
  void expect_all(Load& load) {
    EXPECT_EQ(load.stop(), "");
    load.expect_all_there(pairs("SELECT tenant, amount FROM stock"), pairs("SELECT tenant, id FROM orders"));
    EXPECT_EQ(all_rows("items").size(), 900U);
    std::printf("%zu writes, %zu counts, %d writes met the fence\n", static_cast<std::size_t>(load.writes()),
                static_cast<std::size_t>(load.counts()), load.bounced());
  }
};

}  // namespace

TEST(AProcessThat, DISABLED_RunsJobsUntilItIsKilled) {
  const char* store = getenv("KINTSUGI_TEST_STORE");
  if (store == nullptr) GTEST_SKIP() << "this is started by the tests of chaos";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != atoi(getenv("KINTSUGI_TEST_PARENT"))) return;
  JobRunnerOptions options;
  options.store = store;
  options.router = "mortal";
  options.poll = 10ms;
  options.lease = 1000ms;
  const auto runner = JobRunner::start(options);
  ASSERT_TRUE(runner);
  for (;;) pause();
}

TEST_F(ChaosTest, KilledBetweenAnyTwoStepsAnotherFinishes) {
  Load load(store_dsn(), 300, 2, 1);
  for (const char* point : {"before commit",
                            "after commit",
                            "after local map",
                            "move: hidden",
                            "move: identities",
                            "move: publication",
                            "move: slot",
                            "move: prepared",
                            "move: copied",
                            "move: guarded",
                            "move: subscribed",
                            "move: caught up",
                            "move: held",
                            "move: fence raised",
                            "move: drained",
                            "move: verified",
                            "move: before commit",
                            "move: after commit",
                            "move: committed",
                            "move: online",
                            "move: settled",
                            "move: cleaning",
                            "move: following dropped",
                            "move: cleaned",
                            "move: fence dropped"}) {
    const JobInfo job = must(jobs().submit(move_of("b", other("b")), soon()));
    {
      RunnerProcess process(store_dsn(), point);
      ASSERT_TRUE(process.died(kSoonEnough)) << "it did not come by " << point << "\n"
                                             << story(*jobs().show(job.id, soon()));
    }
    start_runner();
    const JobInfo ended = must(jobs().wait(job.id, soon()));
    ASSERT_EQ(ended.state, JobState::kDone) << point << "\n" << story(ended);
    runners_.clear();
    expect_clean();
    if (HasFailure()) FAIL() << "killed at " << point << "\n" << story(ended);
  }
  expect_all(load);
}

// Before the commit everything is undone, behind it the job finishes; by whoever comes next.
TEST_F(ChaosTest, CanceledBetweenAnyTwoStepsItIsUndoneOrFinishes) {
  Load load(store_dsn(), 300, 2, 1);
  bool committed = false;
  for (const char* point :
       {"move: hidden",    "move: identities",    "move: publication",  "move: slot",
        "move: prepared",  "move: copied",        "move: guarded",      "move: subscribed",
        "move: caught up", "move: held",          "move: fence raised", "move: drained",
        "move: verified",  "move: before commit", "move: after commit", "move: committed",
        "move: online",    "move: settled",       "move: cleaning",     "move: following dropped",
        "move: cleaned",   "move: fence dropped"}) {
    committed = committed || std::string(point) == "move: after commit";
    const std::string from = owner_of("b");
    const std::string to = other("b");
    const JobInfo job = must(jobs().submit(move_of("b", to), soon()));
    {
      RunnerProcess process(store_dsn(), point);
      ASSERT_TRUE(process.died(kSoonEnough)) << "it did not come by " << point << "\n"
                                             << story(*jobs().show(job.id, soon()));
    }
    const auto canceled = jobs().cancel(job.id, soon());
    if (committed) {
      ASSERT_FALSE(canceled) << point;
      EXPECT_EQ(canceled.error().sqlstate, "55000");
      EXPECT_NE(canceled.error().message.find("past its commit and will finish"), std::string::npos);
    } else {
      ASSERT_TRUE(canceled) << point << ": " << canceled.error().to_string();
    }
    start_runner();
    const JobInfo ended = must(jobs().wait(job.id, soon()));
    EXPECT_EQ(ended.state, committed ? JobState::kDone : JobState::kCanceled) << point << "\n" << story(ended);
    EXPECT_EQ(owner_of("b"), committed ? to : from) << point;
    runners_.clear();
    expect_clean();
    if (HasFailure()) FAIL() << "canceled at " << point << "\n" << story(ended);
  }
  expect_all(load);
}

// Whatever somebody sets while a shardlet is handed over, it is so afterwards.
TEST_F(ChaosTest, AStateThatIsSetInTheMidstOfTheHandOverIsKept) {
  bool offline = false;
  for (const char* point : {"move: copied", "move: held", "move: verified", "move: before commit",
                            "move: after commit", "move: online"}) {
    const ShardletState state = (offline = !offline) ? ShardletState::kOffline : ShardletState::kReadOnly;
    const std::string to = other("b");
    const JobInfo job = must(jobs().submit(move_of("b", to), soon()));
    {
      RunnerProcess process(store_dsn(), point);
      ASSERT_TRUE(process.died(kSoonEnough)) << "it did not come by " << point;
    }
    must(change().edit({edit::AlterShardlet{"b", {}, {}, state}}, soon()));
    start_runner();
    const JobInfo ended = must(jobs().wait(job.id, soon()));
    EXPECT_EQ(ended.state, JobState::kDone) << point << "\n" << story(ended);
    EXPECT_EQ(owner_of("b"), to) << point;
    EXPECT_EQ(map()->shardlet("b")->state, state) << point << "\n" << story(ended);
    runners_.clear();
    must(change().edit({edit::AlterShardlet{"b", {}, {}, ShardletState::kOnline}}, soon()));
    expect_clean();
  }
}

TEST_F(ChaosTest, OfflineMovesAreFinishedToo) {
  for (const char* point : {"move: hidden", "move: held", "move: fence raised", "move: copied",
                            "move: verified", "move: after commit", "move: online", "move: cleaned"}) {
    JobRequest request = move_of("b", other("b"));
    request.mode = MoveMode::kOffline;
    const JobInfo job = must(jobs().submit(request, soon()));
    {
      RunnerProcess process(store_dsn(), point);
      ASSERT_TRUE(process.died(kSoonEnough)) << "it did not come by " << point;
    }
    start_runner();
    const JobInfo ended = must(jobs().wait(job.id, soon()));
    ASSERT_EQ(ended.state, JobState::kDone) << point << "\n" << story(ended);
    runners_.clear();
    EXPECT_EQ(all_rows("items").size(), 900U);
    expect_clean();
    if (HasFailure()) FAIL() << "killed at " << point << "\n" << story(ended);
  }
}

TEST_F(ChaosTest, ASplitAndAMergeKilledAroundTheirCommit) {
  JobRequest split;
  split.type = JobType::kSplit;
  split.shardlets = {"b"};
  split.at = {BoundColumn::value("150")};
  JobRequest merge;
  merge.type = JobType::kMerge;
  merge.shardlets = {"b_l", "b_r"};
  merge.into = {"b"};
  for (const char* when : {"before commit", "after commit"}) {
    for (const auto& [request, what] : {std::pair(split, "split: "), std::pair(merge, "merge: ")}) {
      const JobInfo job = must(jobs().submit(request, soon()));
      {
        RunnerProcess process(store_dsn(), std::string(what) + when);
        ASSERT_TRUE(process.died(kSoonEnough)) << "it did not come by " << what << when;
      }
      start_runner();
      const JobInfo ended = must(jobs().wait(job.id, soon()));
      ASSERT_EQ(ended.state, JobState::kDone) << story(ended);
      runners_.clear();
      expect_clean();
    }
  }
  EXPECT_TRUE(map()->shardlet("b"));
}

TEST_F(ChaosTest, AProvisionKilledAnywhereIsFinished) {
  on_both("CREATE TABLE plans (id int PRIMARY KEY); INSERT INTO plans SELECT generate_series(1, 100)");
  must(change().edit({edit::PutTable{Table{"public", "plans", TableKind::kReplicated, "", {}}}}, soon()));
  const std::string third = clusters_[1]->dsn("shard3");
  for (const char* point :
       {"provision: schema", "provision: fenced", "provision: copied", "before commit", "provision: online"}) {
    pgtest::psql(clusters_[1]->dsn(), "DROP DATABASE IF EXISTS shard3 WITH (FORCE);\nCREATE DATABASE shard3");
    must(change().create_shard({"s3", third, shardmap::ShardState::kPreparing}, soon()));
    JobRequest request;
    request.type = JobType::kProvision;
    request.shard = "s3";
    const JobInfo job = must(jobs().submit(request, soon()));
    {
      RunnerProcess process(store_dsn(), point);
      ASSERT_TRUE(process.died(kSoonEnough)) << "it did not come by " << point;
    }
    start_runner();
    const JobInfo ended = must(jobs().wait(job.id, soon()));
    ASSERT_EQ(ended.state, JobState::kDone) << point << "\n" << story(ended);
    runners_.clear();
    EXPECT_EQ(pgtest::psql(third, "SELECT count(*) FROM plans"), "100");
    expect_clean();
    must(change().drop_shard("s3", soon()));
    if (HasFailure()) FAIL() << "killed at " << point << "\n" << story(ended);
  }
}

TEST_F(ChaosTest, KilledWhileUndoingAnotherUndoes) {
  Load load(store_dsn(), 300, 2, 1);
  for (const char* point : {"undo: fence down", "undo: source as it was", "undo: target as it was"}) {
    JobRequest request = move_of("b", "s2");
    request.max_rate = 5000;
    const JobInfo job = must(jobs().submit(request, soon()));
    {
      RunnerProcess process(store_dsn(), point);
      while (must(jobs().show(job.id, soon())).state != JobState::kCopying) std::this_thread::sleep_for(1ms);
      ASSERT_TRUE(jobs().cancel(job.id, soon()));
      ASSERT_TRUE(process.died(kSoonEnough)) << "it did not come by " << point;
    }
    start_runner();
    const JobInfo ended = must(jobs().wait(job.id, soon()));
    ASSERT_EQ(ended.state, JobState::kCanceled) << point << "\n" << story(ended);
    runners_.clear();
    EXPECT_EQ(rows(2, "stock").size(), 0U);
    expect_clean();
    if (HasFailure()) FAIL() << "killed at " << point << "\n" << story(ended);
  }
  expect_all(load);
}

TEST_F(ChaosTest, AFrozenMoverWakesAndDoesNoHarm) {
  Load load(store_dsn(), 300, 2, 1);
  std::mt19937 random(11);
  for (int round = 0; round < 6; ++round) {
    const JobInfo job = must(jobs().submit(move_of("b", other("b")), soon()));
    RunnerProcess process(store_dsn(), "");
    while (must(jobs().show(job.id, soon())).state == JobState::kQueued) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 500));
    process.freeze();
    start_runner();
    std::this_thread::sleep_for(1200ms);
    if (round % 2 == 0) process.thaw();  // while the other is at it
    const JobInfo ended = must(jobs().wait(job.id, soon()));
    ASSERT_EQ(ended.state, JobState::kDone) << story(ended);
    process.thaw();
    std::this_thread::sleep_for(300ms);
    runners_.clear();
    expect_clean();
    if (HasFailure()) FAIL() << story(ended);
  }
  expect_all(load);
}

TEST_F(ChaosTest, AServerThatGoesDownInTheMiddleIsWaitedFor) {
  for (const int which : {0, 1}) {
    JobRequest request = move_of("b", other("b"));
    request.max_rate = 20000;
    start_runner();
    const JobInfo job = must(jobs().submit(request, soon()));
    while (must(jobs().show(job.id, soon())).state != JobState::kCopying) std::this_thread::sleep_for(1ms);
    clusters_[which]->kill();
    std::this_thread::sleep_for(500ms);
    clusters_[which]->start();
    std::optional<JobInfo> ended;
    for (const auto end = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(50ms)) {
      const auto now = jobs().show(job.id, soon());  // the store was down with the first
      if (now && is_final(now->state)) {
        ended = *now;
        break;
      }
    }
    ASSERT_TRUE(ended);
    ASSERT_EQ(ended->state, JobState::kDone) << story(*ended);
    runners_.clear();
    EXPECT_EQ(all_rows("items").size(), 900U);
    expect_clean();
  }
}

}  // namespace kintsugi::splitmerge
