// Commits over several shards: all or nothing, whoever dies when, and nothing is left behind.
#include "executor/two_phase.h"

#include <sys/wait.h>

#include <atomic>
#include <random>
#include <thread>

#include "executor/control_round.h"
#include "executor/settler.h"
#include "shardmap/local_map.h"
#include "tests/executor/shards.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;

const std::string kStore = "3f0c1a52-0000-4000-8000-000000000001";
constexpr int kAccounts = 4;  // a shard, with 100 each

shardmap::MapPtr the_map() {
  shardmap::ShardMapLoader loader(kStore, 1);
  for (int i = 0; i < kShards; ++i) {
    shardmap::Shard shard;
    shard.id = static_cast<shardmap::ShardId>(i + 1);
    shard.name = Shards::name(i);
    shard.dsn = Shards::get().dsn(i);
    EXPECT_TRUE(loader.add_shard(shard));
  }
  loader.set_home(1, kShards + 1);
  auto map = loader.finish();
  return *map;
}

class TwoPhase : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (int i = 0; i < kShards; ++i) {
      auto local = shardmap::LocalMap::connect(Shards::get().dsn(i), patience());
      ASSERT_TRUE(local) << local.error().to_string();
      const Status claimed = local->claim(kStore, "uuid-" + std::to_string(i), Shards::name(i), patience());
      ASSERT_TRUE(claimed) << claimed.error().message;
    }
    Shards::get().sql(
        "CREATE TABLE bank (id int PRIMARY KEY, balance bigint NOT NULL);"
        "CREATE TABLE strict (id int, CONSTRAINT one UNIQUE (id) DEFERRABLE INITIALLY DEFERRED);"
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
        "  $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NULL; END $$;"
        "CREATE TABLE deadly (id int);"
        "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON deadly DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
        "  EXECUTE FUNCTION die()");
  }
  void SetUp() override {
    Shards::get().sql(
        "TRUNCATE bank, strict, deadly; TRUNCATE kintsugi.txn_decision; INSERT INTO bank SELECT g, 100 "
        "FROM generate_series(1, 4) g");
  }
  // "400 400 400"
  static std::string balances() {
    std::string all;
    for (int i = 0; i < kShards; ++i)
      all += (i > 0 ? " " : "") + Shards::get().on(i, "SELECT sum(balance) FROM bank");
    return all;
  }
  static long total() {
    long sum = 0;
    for (int i = 0; i < kShards; ++i) sum += std::stol(Shards::get().on(i, "SELECT sum(balance) FROM bank"));
    return sum;
  }
  static std::string prepared() { return Shards::get().on(0, "SELECT count(*) FROM pg_prepared_xacts"); }
  static std::string decisions() {
    std::string all;
    for (int i = 0; i < kShards; ++i) all += Shards::get().on(i, "SELECT count(*) FROM kintsugi.txn_decision");
    return all;
  }
  // Until nothing is prepared; a connection that died is noticed by its server in its own time.
  static void settle() {
    SettleRound round;
    for (int i = 0; i < 100; ++i) {
      const SettleReport report = round.run(*the_map(), 0ms, patience());
      for (const Error& error : report.errors) ADD_FAILURE() << error.message;
      if (prepared() == "0") {
        (void)round.run(*the_map(), 0ms, patience());
        return;
      }
      std::this_thread::sleep_for(50ms);
    }
    FAIL() << "something stays prepared";
  }
};

struct Step {
  int shard;
  std::string sql;
  bool wrote = true, must_decide = false;
};

struct Committed {
  CommitOutcome outcome;
  std::string statuses;
};

// BEGIN and a statement on some shards, then the commit.
io::Task<Committed> transact(io::Waiter* waiter, const std::vector<Step>* steps) {
  auto linking = link_up(waiter);
  Links links = co_await std::move(linking);
  std::vector<ControlOrder> orders;
  std::vector<TransactionBranch> branches;
  for (const Step& step : *steps) {
    orders.push_back({links[step.shard], "BEGIN; SET LOCAL lock_timeout = '300ms'; " + step.sql});
    branches.push_back(
        {links[step.shard], static_cast<shardmap::ShardId>(step.shard + 1), step.wrote, step.must_decide});
  }
  auto running = run_on_all(std::move(orders), waiter, patience());
  (void)co_await std::move(running);
  auto committing = commit_on_all(std::move(branches), kStore, false, waiter, patience());
  Committed done;
  done.outcome = co_await std::move(committing);
  for (auto& backend : links.backends)
    done.statuses += backend->broken ? 'X' : static_cast<char>(backend->status);
  co_return done;
}

Committed commit(const std::vector<Step>& steps) {
  return act(transact, &steps);
}

std::vector<Step> transfer(int from, int to, int account = 1) {
  const std::string where = " WHERE id = " + std::to_string(account);
  return {{from, "UPDATE bank SET balance = balance - 10" + where},
          {to, "UPDATE bank SET balance = balance + 10" + where}};
}

TEST_F(TwoPhase, NamesSayWhoDecides) {
  const TransactionName name = TransactionName::next(kStore, 7);
  EXPECT_EQ(TransactionName::parse(name.to_string()), name);
  EXPECT_EQ(TransactionName::parse(name.of_branch(3)), name);
  EXPECT_NE(TransactionName::next(kStore, 7), name);
  EXPECT_LT(name.of_branch(1000).size(), 200u);
  EXPECT_FALSE(TransactionName::parse("kintsugi:a:b:1"));
  EXPECT_FALSE(TransactionName::parse("kintsugi:a:b:x:1"));
  EXPECT_FALSE(TransactionName::parse("other:a:b:1:1"));
}

TEST_F(TwoPhase, WritesOnTwoShardsBothHappen) {
  const Committed done = commit({{0, "UPDATE bank SET balance = 50 WHERE id = 1"},
                                 {1, "UPDATE bank SET balance = 150 WHERE id = 1"},
                                 {2, "SELECT 1", false}});
  EXPECT_EQ(done.outcome.kind, CommitOutcome::kCommitted) << trace(done.outcome.error);
  EXPECT_TRUE(done.outcome.unsettled.empty());
  EXPECT_EQ(done.statuses, "III");
  EXPECT_EQ(balances(), "350 450 400");
  EXPECT_EQ(prepared(), "0");
  EXPECT_EQ(decisions(), "100");
  EXPECT_EQ(Shards::get().on(0, "SELECT participants, owner FROM kintsugi.txn_decision"), "2|postgres");
  settle();
  EXPECT_EQ(decisions(), "000");
}

// What the newest script in sql/shard makes, without which a shard is one of the version before.
constexpr const char* kUndoNewest = "DROP FUNCTION kintsugi.refuse_placing()";
constexpr const char* kNewest = "SELECT count(*) FROM pg_proc WHERE proname = 'refuse_placing'";

// A router of this version on shards of the one before: nothing of the map changes, and what statements and
// commits over several shards lock there has to come all the same.
TEST_F(TwoPhase, TheFirstRoundBringsWhatAnOlderProgramDidNotHave) {
  Shards::get().sql(std::string(kUndoNewest) +
                    "; DELETE FROM kintsugi.schema_version "
                    "WHERE version = (SELECT max(version) FROM kintsugi.schema_version)");
  const SettleReport report = SettleRound().run(*the_map(), 0ms, patience());
  for (const Error& error : report.errors) ADD_FAILURE() << error.message;
  EXPECT_EQ(report.clean.size(), static_cast<std::size_t>(kShards));
  for (int i = 0; i < kShards; ++i) EXPECT_EQ(Shards::get().on(i, kNewest), "1");
}

TEST_F(TwoPhase, ARoundThatCouldNotBringItIsFollowedByOneThatCan) {
  // In the way of the last script: what it makes is there.
  Shards::get().sql(
      "DELETE FROM kintsugi.schema_version WHERE version = (SELECT max(version) FROM kintsugi.schema_version)");
  SettleRound round;
  SettleReport report = round.run(*the_map(), 0ms, patience());
  EXPECT_EQ(report.errors.size(), static_cast<std::size_t>(kShards));
  EXPECT_TRUE(report.clean.empty());
  Shards::get().sql(kUndoNewest);
  report = round.run(*the_map(), 0ms, patience());
  for (const Error& error : report.errors) ADD_FAILURE() << error.message;
  EXPECT_EQ(report.clean.size(), static_cast<std::size_t>(kShards));
  for (int i = 0; i < kShards; ++i) EXPECT_EQ(Shards::get().on(i, kNewest), "1");
}

TEST_F(TwoPhase, OneWriterCommitsPlainly) {
  const Committed done = commit({{0, "SELECT 1", false}, {1, "UPDATE bank SET balance = 50 WHERE id = 1"}});
  EXPECT_EQ(done.outcome.kind, CommitOutcome::kCommitted);
  EXPECT_EQ(done.outcome.gid, "");
  EXPECT_EQ(balances(), "400 350 400");
  EXPECT_EQ(decisions(), "000");
}

TEST_F(TwoPhase, WhatAShardRefusesHappensNowhere) {
  const std::string twice = "INSERT INTO strict VALUES (1), (1)";
  // On the one that decides, on one that prepares, and on both.
  for (const auto& [first, second] :
       {std::pair{twice, std::string("INSERT INTO strict VALUES (2)")},
        std::pair{std::string("INSERT INTO strict VALUES (2)"), twice}, std::pair{twice, twice}}) {
    const Committed done = commit({{0, first}, {1, second}});
    EXPECT_EQ(done.outcome.kind, CommitOutcome::kRolledBack);
    EXPECT_EQ(done.outcome.sqlstate, "23505");
    EXPECT_NE(trace(done.outcome.error).find("@ shard s"), std::string::npos);
    EXPECT_EQ(done.statuses, "III");
    EXPECT_EQ(prepared(), "0");
    EXPECT_EQ(
        Shards::get().on(0, "SELECT count(*) FROM strict") + Shards::get().on(1, "SELECT count(*) FROM strict"),
        "00");
  }
}

TEST_F(TwoPhase, AFailedTransactionIsRolledBackWithoutAnError) {
  const Committed done = commit({{0, "UPDATE bank SET balance = 0"}, {1, "SELECT 1/0"}});
  EXPECT_EQ(done.outcome.kind, CommitOutcome::kRolledBack);
  EXPECT_EQ(done.outcome.error, "");
  EXPECT_EQ(balances(), "400 400 400");
  EXPECT_EQ(done.statuses, "III");
}

TEST_F(TwoPhase, WhoHasTemporaryTablesDecides) {
  const std::string temporary = "CREATE TEMP TABLE x (a int); UPDATE bank SET balance = 99 WHERE id = 1";
  const std::vector<Step> steps = {{0, "UPDATE bank SET balance = 1 WHERE id = 1"}, {1, temporary, true, true}};
  EXPECT_EQ(commit(steps).outcome.kind, CommitOutcome::kCommitted);
  EXPECT_EQ(balances(), "301 399 400");
  const Committed two = commit({{0, temporary, true, true}, {1, temporary, true, true}});
  EXPECT_EQ(two.outcome.sqlstate, "0A000");
  EXPECT_EQ(two.statuses, "III");
  const Committed wrong = commit({{0, "SELECT 1", true}, {1, temporary, true, false}});
  EXPECT_EQ(wrong.outcome.sqlstate, "0A000");
  EXPECT_EQ(balances(), "301 399 400");
}

TEST_F(TwoPhase, AConnectionLostAtTheDecisionIsSettledLater) {
  const Committed done = commit({{0, "INSERT INTO deadly VALUES (1)"}, {1, "UPDATE bank SET balance = 1"}});
  EXPECT_EQ(done.outcome.kind, CommitOutcome::kUnknown);
  EXPECT_EQ(done.outcome.sqlstate, "08007");
  EXPECT_EQ(done.outcome.unsettled, std::vector<std::string>{"s2"});
  EXPECT_EQ(done.statuses, "XII");
  EXPECT_EQ(prepared(), "1");
  settle();
  EXPECT_EQ(balances(), "400 400 400");
}

TEST_F(TwoPhase, AConnectionLostWhilePreparingRollsBack) {
  const Committed done = commit({{0, "UPDATE bank SET balance = 1"}, {1, "INSERT INTO deadly VALUES (1)"}});
  EXPECT_EQ(done.outcome.kind, CommitOutcome::kRolledBack);
  EXPECT_EQ(done.outcome.sqlstate, "KG005");
  EXPECT_EQ(done.statuses, "IXI");
  settle();
  EXPECT_EQ(balances(), "400 400 400");
}

TEST_F(TwoPhase, AnOpenDecisionIsNobodyElsesBusiness) {
  pgtest::psql(Shards::get().dsn(1), "BEGIN; UPDATE bank SET balance = 0; PREPARE TRANSACTION 'kintsugi:" +
                                         kStore + ":router:1:1:1'");
  SettleRound round;
  {
    // The deciding transaction: its row is made, and it is open.
    struct Stage {
      static io::Task<bool> play(io::Waiter* waiter, SettleRound* settling) {
        auto linking = link_up(waiter);
        Links links = co_await std::move(linking);
        auto beginning = run_control_query(
            links[0],
            "BEGIN; INSERT INTO kintsugi.txn_decision (gid) VALUES ('kintsugi:" + kStore + ":router:1:1')",
            waiter, patience());
        (void)co_await std::move(beginning);
        const SettleReport report = settling->run(*the_map(), 0ms, patience());
        co_return report.alive == 1 && report.rolled_back == 0 && report.committed == 0;
      }
    };
    EXPECT_TRUE(act(Stage::play, &round));
  }
  EXPECT_EQ(round.run(*the_map(), std::chrono::minutes(10), patience()).young, 1);
  settle();
  EXPECT_EQ(balances(), "400 400 400");
}

TEST_F(TwoPhase, AShardWithoutPreparedTransactionsIsToldApart) {
  pgtest::Cluster without(pgtest::ClusterOptions{{"max_prepared_transactions = 0"}});
  pgtest::psql(without.dsn(), "CREATE TABLE bank (id int, balance bigint)");
  struct Stage {
    static io::Task<CommitOutcome> play(io::Waiter* waiter, const pgtest::Cluster* cluster) {
      auto linking = link_up(waiter);
      Links links = co_await std::move(linking);
      auto login = ShardLogin::make("s9", *Dsn::parse(cluster->dsn()), "", "", std::nullopt);
      auto connecting = connect_shard(*login, Settings::none(), waiter, patience());
      auto backend = co_await std::move(connecting);
      std::vector<ControlOrder> orders;
      orders.push_back({links[0], "BEGIN; UPDATE bank SET balance = 0"});
      orders.push_back({backend->get(), "BEGIN; INSERT INTO bank VALUES (1, 1)"});
      auto running = run_on_all(std::move(orders), waiter, patience());
      (void)co_await std::move(running);
      std::vector<TransactionBranch> branches;
      branches.push_back({links[0], 1, true});
      branches.push_back({backend->get(), 9, true});
      auto committing = commit_on_all(std::move(branches), kStore, false, waiter, patience());
      co_return co_await std::move(committing);
    }
  };
  const CommitOutcome outcome = act(Stage::play, static_cast<const pgtest::Cluster*>(&without));
  EXPECT_EQ(outcome.kind, CommitOutcome::kRolledBack);
  EXPECT_EQ(trace(outcome.error).substr(0, 124),
            "E(55000 shard s9 cannot take part in a transaction that writes on several shards: its "
            "max_prepared_transactions is 0)");
  EXPECT_EQ(balances(), "400 400 400");
}

// A router that dies at each step of the commit, and one that dies while it settles what the first left.
TEST_F(TwoPhase, ARouterMayDieAnywhere) {
  const auto in_a_process_that_dies_at = [](const char* point, const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("KINTSUGI_FAILPOINT", point, 1);
      work();
      _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << point;
  };
  std::string expected = "400 400 400";
  for (const char* point : {"txn.announced", "txn.prepared", "txn.decided", "txn.followed"}) {
    SCOPED_TRACE(point);
    in_a_process_that_dies_at(point, [] { (void)commit(transfer(0, 1)); });
    if (point == std::string("txn.prepared") || point == std::string("txn.decided")) {
      EXPECT_EQ(prepared(), "1");
      in_a_process_that_dies_at("settle.known", [] { settle(); });
    }
    settle();
    if (point == std::string("txn.decided")) expected = "390 410 400";
    if (point == std::string("txn.followed")) expected = "380 420 400";
    EXPECT_EQ(balances(), expected);
    EXPECT_EQ(prepared(), "0");
    EXPECT_EQ(decisions(), "000");
  }
}

// Settlers that spare nobody run beside it all the time.
TEST_F(TwoPhase, TheBanksSumIsAlwaysRight) {
  std::atomic<bool> stop{false};
  std::atomic<int> committed{0}, rolled_back{0}, strange{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    threads.emplace_back([seed, &stop, &committed, &rolled_back, &strange] {
      std::minstd_rand random(seed);
      for (int i = 0; i < 40 && !stop; ++i) {
        const int from = static_cast<int>(random() % kShards);
        const int to = (from + 1 + static_cast<int>(random() % (kShards - 1))) % kShards;
        const Committed done = commit(transfer(from, to, 1 + static_cast<int>(random() % kAccounts)));
        if (done.outcome.kind == CommitOutcome::kCommitted) ++committed;
        if (done.outcome.kind == CommitOutcome::kRolledBack) ++rolled_back;
        // A branch may be left unsettled: a settler has it in hand at that moment ("is busy"), and ends it.
        if (done.outcome.kind == CommitOutcome::kUnknown) ++strange;
      }
    });
  }
  std::thread settling([&stop] {
    SettleRound round;
    while (!stop) (void)round.run(*the_map(), 0ms, patience());
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  settling.join();
  EXPECT_EQ(total(), 1200);
  EXPECT_GT(committed, 30);
  EXPECT_EQ(strange, 0);
  settle();
  EXPECT_EQ(prepared(), "0");
  EXPECT_EQ(total(), 1200);
  EXPECT_EQ(decisions(), "000");
}

}  // namespace
}  // namespace kintsugi::executor
