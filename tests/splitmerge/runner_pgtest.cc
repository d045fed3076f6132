// Which jobs run at one time, and what becomes of one that is canceled, in whatever state it is.
#include <functional>
#include <set>

#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class RunnerTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    shop();
    orders_ = all_rows("orders");
  }
  void TearDown() override {
    Moving::TearDown();
    for (int i = 3; i <= 4; ++i) {
      pgtest::psql(clusters_[0]->dsn(), "DROP DATABASE IF EXISTS shard" + std::to_string(i) + " WITH (FORCE)");
    }
  }
  // Two more shards, with the tables of the others.
  void two_more_shards() {
    for (int i = 3; i <= 4; ++i) {
      const std::string name = "shard" + std::to_string(i);
      pgtest::psql(clusters_[0]->dsn(), "CREATE DATABASE " + name);
      const std::string dsn = clusters_[0]->dsn(name);
      pgtest::psql(dsn,
                   "CREATE TABLE orders (tenant bigint NOT NULL, id bigint NOT NULL, note text, at timestamptz "
                   "DEFAULT now(), PRIMARY KEY (tenant, id));"
                   "CREATE TABLE items (id uuid DEFAULT gen_random_uuid(), tenant bigint NOT NULL, body jsonb, "
                   "n numeric);"
                   "CREATE TABLE stock (tenant bigint PRIMARY KEY, amount bigint NOT NULL);");
      must(change().create_shard({"s" + std::to_string(i), dsn}, soon()));
    }
  }
  std::uint64_t submit(const JobRequest& request) { return must(jobs().submit(request, soon())).id; }
  JobInfo now(std::uint64_t id) { return must(jobs().show(id, soon())); }
  JobInfo until(std::uint64_t id, JobState state) {
    for (const Deadline patience = soon();; std::this_thread::sleep_for(1ms)) {
      const JobInfo job = now(id);
      if (job.state == state || is_final(job.state) || patience.passed()) return job;
    }
  }
  static bool comes_true(const std::function<bool()>& condition) {
    for (const Deadline patience = soon(); !patience.passed(); std::this_thread::sleep_for(1ms))
      if (condition()) return true;
    return false;
  }
  // A move of b whose fence comes while `slow`, a transaction on the target, keeps away what tells that the
  // last change has arrived.
  std::uint64_t move_to_a_slow_target(std::chrono::milliseconds drain_first, pgtest::Connection& slow) {
    auto with = options();
    with.tuning.drain_first = drain_first;
    with.tuning.fence_lock_timeout = 30s;
    const std::uint64_t id = move_that_waits(with);
    EXPECT_TRUE(comes_true([&] { return map()->shardlet("b")->state == ShardletState::kHeld; }));
    slow.query("BEGIN");
    slow.query("LOCK TABLE kintsugi.marker IN SHARE MODE");
    writer_->query("COMMIT");
    writer_.reset();
    return id;
  }
  void expect_as_it_was() {
    EXPECT_EQ(owner_of("b"), "s1");
    EXPECT_EQ(map()->shardlet("b")->state, ShardletState::kOnline);
    EXPECT_EQ(rows(1, "orders"), orders_);
    EXPECT_TRUE(rows(2, "orders").empty());
    expect_clean();
  }
  // Canceled by the runner that is at it.
  void expect_canceled_in(std::uint64_t id, JobState state) {
    const JobInfo there = until(id, state);
    ASSERT_EQ(there.state, state) << story(there);
    must(jobs().cancel(id, soon()));
    const JobInfo ended = must(jobs().wait(id, soon()));
    EXPECT_EQ(ended.state, JobState::kCanceled) << story(ended);
    EXPECT_EQ(story(ended).find("committed"), std::string::npos) << story(ended);
  }

  std::vector<std::string> orders_;
};

}  // namespace

// Jobs that need the same shard are done one after the other, whoever takes them.
TEST_F(RunnerTest, TwoRunnersDoNotBeginTwoJobsOnOneShard) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::uint64_t> ids;
    const std::string to = round % 2 == 0 ? "s2" : "s1";
    for (const char* name : {"a", "b", "c"}) ids.push_back(submit(move_of(name, to)));
    for (const char* router : {"r1", "r2", "r3"}) {
      auto with = options(router);
      with.parallel = 8;
      start_runner(with);
    }
    std::vector<JobInfo> jobs_done;
    for (const std::uint64_t id : ids) jobs_done.push_back(must(jobs().wait(id, soon())));
    std::sort(jobs_done.begin(), jobs_done.end(),
              [](const JobInfo& a, const JobInfo& b) { return a.started < b.started; });
    for (std::size_t i = 0; i < jobs_done.size(); ++i) {
      ASSERT_EQ(jobs_done[i].state, JobState::kDone) << story(jobs_done[i]);
      if (i > 0) {
        EXPECT_GE(jobs_done[i].started, jobs_done[i - 1].ended) << story(jobs_done[i]);
      }
    }
    runners_.clear();
    expect_clean();
  }
}

TEST_F(RunnerTest, JobsOnDifferentShardsRunSideBySideUpToTheLimit) {
  two_more_shards();
  start_runner();
  ASSERT_EQ(done(move_of("c", "s3")).state, JobState::kDone);
  runners_.clear();
  JobRequest first = move_of("b", "s2");
  JobRequest second = move_of("c", "s4");
  first.max_rate = second.max_rate = 4000;  // bytes a second: both are still copying when the other is
  // One at a time.
  auto with = options();
  with.parallel = 1;
  start_runner(with);
  std::uint64_t one = submit(first);
  std::uint64_t other = submit(second);
  until(one, JobState::kCopying);
  EXPECT_EQ(now(other).state, JobState::kQueued);
  must(jobs().cancel(one, soon()));
  const JobInfo ended = must(jobs().wait(one, soon()));
  until(other, JobState::kCopying);
  EXPECT_GE(now(other).started, ended.ended);
  must(jobs().cancel(other, soon()));
  must(jobs().wait(other, soon()));
  runners_.clear();
  // Two, also where it is one runner.
  with.parallel = 2;
  start_runner(with);
  one = submit(first);
  other = submit(second);
  until(one, JobState::kCopying);
  until(other, JobState::kCopying);
  EXPECT_EQ(now(one).state, JobState::kCopying) << story(now(one));
  EXPECT_EQ(now(other).state, JobState::kCopying) << story(now(other));
  for (const std::uint64_t id : {one, other}) must(jobs().cancel(id, soon()));
  for (const std::uint64_t id : {one, other})
    EXPECT_EQ(must(jobs().wait(id, soon())).state, JobState::kCanceled);
  expect_clean();
}

TEST_F(RunnerTest, CanceledWhileItIsQueued) {
  const std::uint64_t id = submit(move_of("b", "s2"));
  must(jobs().cancel(id, soon()));
  start_runner();
  const JobInfo ended = must(jobs().wait(id, soon()));
  EXPECT_EQ(ended.state, JobState::kCanceled) << story(ended);
  EXPECT_EQ(story(ended).find("copying"), std::string::npos) << story(ended);
  expect_as_it_was();
}

// A slot waits for transactions that have written.
TEST_F(RunnerTest, CanceledWhileItPrepares) {
  pgtest::Connection writer(dsn(1));
  writer.query("BEGIN");
  writer.query("UPDATE stock SET amount = amount WHERE tenant = 250");
  start_runner();
  const std::uint64_t id = submit(move_of("b", "s2"));
  until(id, JobState::kPreparing);
  pgtest::Connection look(dsn(1));
  while (look.query("SELECT count(*) FROM pg_publication")[0][0] == "0") std::this_thread::sleep_for(1ms);
  expect_canceled_in(id, JobState::kPreparing);
  writer.query("COMMIT");
  expect_as_it_was();
}

TEST_F(RunnerTest, CanceledWhileItCatchesUp) {
  auto with = options();
  with.tuning.lag_max = -1ms;  // never near enough
  start_runner(with);
  expect_canceled_in(submit(move_of("b", "s2")), JobState::kCatchingUp);
  expect_as_it_was();
}

TEST_F(RunnerTest, CanceledWhileItWaitsForTheFence) {
  start_runner();
  JobRequest request = move_of("b", "s2");
  request.max_rate = 200000;
  const std::uint64_t id = submit(request);
  until(id, JobState::kCopying);
  pgtest::Connection writer(dsn(1));
  writer.query("BEGIN");
  writer.query("UPDATE stock SET amount = amount WHERE tenant = 250");
  expect_canceled_in(id, JobState::kFenced);
  writer.query("COMMIT");
  expect_as_it_was();
}

// Writes wait for the whole copy then; canceled, they go on at once.
TEST_F(RunnerTest, CanceledWhileItCopiesOffline) {
  start_runner();
  JobRequest request = move_of("b", "s2");
  request.mode = MoveMode::kOffline;
  request.max_rate = 2000;
  expect_canceled_in(submit(request), JobState::kCopying);
  pgtest::psql(dsn(1), "UPDATE stock SET amount = amount WHERE tenant = 150");
  expect_as_it_was();
}

// Writers wait for it: a target that is too slow for its last changes is tried again, with more patience.
TEST_F(RunnerTest, AFenceThatTakesTooLongIsLoweredAndTriedAgain) {
  pgtest::Connection slow(dsn(2));
  const std::uint64_t id = move_to_a_slow_target(20ms, slow);
  EXPECT_TRUE(comes_true([&] {
    return story(now(id)).find("the fence was lowered again") != std::string::npos;
  })) << story(now(id));
  pgtest::psql(dsn(1), "UPDATE stock SET amount = 7 WHERE tenant = 150");  // nobody waits
  slow.query("COMMIT");
  const JobInfo job = end_of(id);
  EXPECT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(owner_of("b"), "s2");
  EXPECT_EQ(rows(2, "stock", "tenant = 150 AND amount = 7").size(), 1U);
  expect_clean();
}

// A client that has written another row of the table there, and whose next statement waits at its router for
// the map to say where b is: to open the fence would be to wait for it.
TEST_F(RunnerTest, WhoHoldsTheTableAndWaitsForTheMapIsToldBeforeTheFenceOpens) {
  pgtest::Connection slow(dsn(2));
  const std::uint64_t id = move_to_a_slow_target(2s, slow);
  ASSERT_TRUE(comes_true([&] { return pgtest::psql(dsn(1), "SELECT count(*) FROM kintsugi.fence") != "0"; }));
  pgtest::Connection client(dsn(1));
  client.query("BEGIN");
  for (const char* table : {"orders", "items", "stock"})
    client.query("UPDATE " + std::string(table) + " SET tenant = tenant WHERE tenant = 50");
  EXPECT_EQ(map()->shardlet("b")->state, ShardletState::kHeld);
  EXPECT_TRUE(comes_true([&] { return map()->shardlet("b")->state == ShardletState::kOnline; }))
      << story(now(id));
  EXPECT_THROW(client.query("UPDATE stock SET amount = 7 WHERE tenant = 150"), std::exception)
      << "the fence is up";
  client.query("ROLLBACK");
  slow.query("COMMIT");
  const JobInfo job = end_of(id);
  EXPECT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(owner_of("b"), "s2");
  expect_clean();
}

// DISABLE TRIGGER ALL opens the fence, and a write that goes past all routers comes through: it travels, too.
TEST_F(RunnerTest, AFenceThatSomebodyOpensIsRaisedAgain) {
  pgtest::Connection slow(dsn(2));
  const std::uint64_t id = move_to_a_slow_target(30s, slow);
  EXPECT_TRUE(comes_true([&] { return pgtest::psql(dsn(1), "SELECT count(*) FROM kintsugi.fence") != "0"; }));
  pgtest::psql(dsn(1),
               "ALTER TABLE stock DISABLE TRIGGER ALL; UPDATE stock SET amount = 7 WHERE tenant = 150; "
               "ALTER TABLE stock ENABLE TRIGGER ALL");
  slow.query("COMMIT");
  const JobInfo job = end_of(id);
  EXPECT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("somebody has disabled or enabled the triggers of \"public\".\"stock\""),
            std::string::npos)
      << story(job);
  EXPECT_EQ(rows(2, "stock", "tenant = 150 AND amount = 7").size(), 1U);
  expect_clean();
}

// A move that copies behind its fence is not tried again: nothing follows what has come through.
TEST_F(RunnerTest, AnOfflineMoveWhoseFenceSomebodyOpensIsGivenUp) {
  start_runner();
  JobRequest request = move_of("b", "s2");
  request.mode = MoveMode::kOffline;
  request.max_rate = 50000;
  const std::uint64_t id = submit(request);
  ASSERT_EQ(until(id, JobState::kCopying).state, JobState::kCopying);
  pgtest::psql(dsn(1), "ALTER TABLE stock DISABLE TRIGGER ALL; UPDATE stock SET amount = 7 WHERE tenant = 150");
  const JobInfo job = must(jobs().wait(id, soon()));
  EXPECT_EQ(job.state, JobState::kFailed) << story(job);
  ASSERT_TRUE(job.error) << story(job);
  EXPECT_EQ(job.error->sqlstate, "55000") << story(job);
  EXPECT_NE(job.error->message.find("somebody has disabled"), std::string::npos) << story(job);
  EXPECT_EQ(owner_of("b"), "s1");
  EXPECT_EQ(rows(1, "stock", "tenant = 150 AND amount = 7").size(), 1U);
  EXPECT_TRUE(rows(2, "stock").empty());
  expect_clean();
}

// The home shard gives its shardlets away like any other; the tables that it is the home of stay, and it.
TEST_F(RunnerTest, ADrainOfTheHomeShardLeavesItsOwnTables) {
  ASSERT_EQ(map()->home_shard()->name, "s1");
  pgtest::psql(dsn(1), "CREATE TABLE notes (id int); INSERT INTO notes VALUES (1), (2)");
  must(change().edit({edit::PutTable{Table{"public", "notes", TableKind::kHome, "", {}}}}, soon()));
  start_runner();
  JobRequest request;
  request.type = JobType::kDrain;
  request.shard = "s1";
  const JobInfo drained = done(request);
  ASSERT_EQ(drained.state, JobState::kDone) << story(drained);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(owner_of(name), "s2");
  EXPECT_TRUE(rows(1, "orders").empty());
  EXPECT_EQ(rows(1, "notes").size(), 2U);
  EXPECT_EQ(map()->home_shard()->name, "s1");
  const auto refused = change().drop_shard("s1", soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "2BP01");
  EXPECT_NE(refused.error().message.find("is the home of tables"), std::string::npos)
      << refused.error().message;
  expect_clean();
}

// Drained, checked empty, let go.
TEST_F(RunnerTest, AShardIsLetGoWhenItIsDrainedAndEmpty) {
  start_runner();
  ASSERT_EQ(done(move_of("c", "s2")).state, JobState::kDone);
  const auto used = change().drop_shard("s2", soon());
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().sqlstate, "2BP01");
  EXPECT_EQ(used.error().hint, "DRAIN SHARD moves them to the others.");
  JobRequest request;
  request.type = JobType::kDrain;
  request.shard = "s2";
  const JobInfo drained = done(request);
  ASSERT_EQ(drained.state, JobState::kDone) << story(drained);
  // A row that somebody has brought there past all routers.
  pgtest::psql(dsn(2), "INSERT INTO stock VALUES (250, 1)");
  const auto not_empty = change().drop_shard("s2", soon());
  ASSERT_FALSE(not_empty);
  EXPECT_EQ(not_empty.error().sqlstate, "2BP01");
  EXPECT_NE(not_empty.error().message.find("there are rows in public.stock"), std::string::npos)
      << not_empty.error().message;
  EXPECT_NE(map()->shard_named("s2"), nullptr);
  pgtest::psql(dsn(2), "DELETE FROM stock");
  expect_clean();
  must(change().drop_shard("s2", soon()));
  EXPECT_EQ(map()->shard_named("s2"), nullptr);
  EXPECT_EQ(rows(1, "orders"), orders_);
  EXPECT_EQ(pgtest::psql(dsn(2), "SELECT count(*) FROM pg_namespace WHERE nspname = 'kintsugi'"), "0");
}

}  // namespace kintsugi::splitmerge
