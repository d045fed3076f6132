// Moves between two real servers, undisturbed and under load.
#include "tests/splitmerge/load.h"

namespace kintsugi::splitmerge {
namespace {

class MoveTest : public Moving {
 protected:
  // Two shardlets of `kind` by `types` that together hold every key; `x` is to move.
  void two_of(MapKind kind, const shardmap::KeyTypes& types, const std::vector<std::vector<std::string>>& x,
              const std::vector<std::vector<std::string>>& y, const shardmap::Bound& middle = {}) {
    MapEdit edit{edit::CreateMap{"m", kind, types}};
    shardmap::Bound low(middle.size(), BoundColumn::min());
    shardmap::Bound high(middle.size(), BoundColumn::max());
    edit.operations.emplace_back(edit::CreateShardlet{"m", "y", low, middle, y, "s1", ShardletState::kOnline});
    edit.operations.emplace_back(edit::CreateShardlet{"m", "x", middle, high, x, "s1", ShardletState::kOnline});
    must(change().edit(edit, soon()));
  }
  void expect_moved(const std::string& table, std::size_t on_target) {
    const auto before = all_rows(table);
    start_runner();
    const JobInfo job = done(move_of("x", "s2"));
    ASSERT_EQ(job.state, JobState::kDone) << story(job);
    EXPECT_EQ(all_rows(table), before);
    EXPECT_EQ(rows(2, table).size(), on_target);
    expect_clean();
  }
};

}  // namespace

TEST_F(MoveTest, ARangeMovesWithAllItsTablesAndBack) {
  ranges();
  shop();
  const auto orders = all_rows("orders");
  const auto items = all_rows("items");
  start_runner();
  const JobInfo job = done(move_of("b", "s2"));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(owner_of("b"), "s2");
  EXPECT_EQ(all_rows("orders"), orders);
  EXPECT_EQ(all_rows("items"), items);
  EXPECT_EQ(rows(2, "orders").size(), 1000U);
  EXPECT_EQ(rows(1, "orders", "tenant >= 100 AND tenant < 200").size(), 0U);
  EXPECT_EQ(job.progress.rows, 2100U);
  EXPECT_EQ(job.progress.total, 2100U);
  EXPECT_FALSE(job.started.empty());
  EXPECT_FALSE(job.ended.empty());
  expect_clean();
  const JobInfo back = done(move_of("b", "s1"));
  ASSERT_EQ(back.state, JobState::kDone) << story(back);
  EXPECT_EQ(rows(1, "orders"), orders);
  expect_clean();
}

TEST_F(MoveTest, AListMoves) {
  two_of(MapKind::kList, {KeyType::kText}, {{"de"}, {"o'b\\x"}}, {{"fr"}});
  on_both("CREATE TABLE t (region text NOT NULL, n int)");
  pgtest::psql(
      dsn(1),
      "INSERT INTO t SELECT r, n FROM unnest(ARRAY['de', 'fr', E'o''b\\\\x']) r, generate_series(1, 50) n");
  put_table("t", {"region"}, "m");
  expect_moved("t", 100);
}

TEST_F(MoveTest, AHashRangeMoves) {
  two_of(MapKind::kHash, {KeyType::kUuid}, {}, {}, {BoundColumn::value("0")});
  on_both("CREATE TABLE t (id uuid PRIMARY KEY, n int)");
  pgtest::psql(dsn(1), "INSERT INTO t SELECT md5(n::text)::uuid, n FROM generate_series(1, 500) n");
  put_table("t", {"id"}, "m");
  const auto there = rows(1, "t", "hash_record_extended(ROW(id), 8816678312871386365) >= 0").size();
  EXPECT_GT(there, 100U);
  expect_moved("t", there);
}

TEST_F(MoveTest, ATupleMoves) {
  two_of(MapKind::kRange, {KeyType::kInt, KeyType::kText}, {}, {},
         {BoundColumn::value("5"), BoundColumn::value("m")});
  on_both("CREATE TABLE t (a int NOT NULL, b text NOT NULL, n int, PRIMARY KEY (a, b))");
  pgtest::psql(
      dsn(1), "INSERT INTO t SELECT a, b, a FROM generate_series(1, 9) a, unnest(ARRAY['a', 'm', 'z', 'M']) b");
  put_table("t", {"a", "b"}, "m");
  expect_moved("t", 4 * 4 + 2);
}

TEST_F(MoveTest, TablesOfAllSortsMove) {
  ranges();
  on_both(R"(
    CREATE TABLE parent (tenant bigint, id bigint GENERATED ALWAYS AS IDENTITY, v int,
                         twice int GENERATED ALWAYS AS (v * 2) STORED, PRIMARY KEY (tenant, id));
    CREATE TABLE child (tenant bigint, id bigint, parent bigint, big text, tags text[], PRIMARY KEY (tenant, id),
                        FOREIGN KEY (tenant, parent) REFERENCES parent ON DELETE CASCADE);
    CREATE TABLE "Od""d" ("Ten ant" bigint NOT NULL, "se""lect" text, doc json);
    CREATE TABLE log (tenant bigint NOT NULL, at date NOT NULL, what text) PARTITION BY RANGE (at);
    CREATE TABLE log_old PARTITION OF log FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
    CREATE TABLE log_new PARTITION OF log FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);
    CREATE TABLE bare (tenant bigint NOT NULL, p point, j json, id serial PRIMARY KEY);
    CREATE TABLE secret (tenant bigint PRIMARY KEY, v text);
    ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
    ALTER TABLE secret FORCE ROW LEVEL SECURITY;
    CREATE FUNCTION upset() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := 'trigger'; RETURN NEW; END $$;
  )");
  pgtest::psql(dsn(1), R"(
    INSERT INTO parent (tenant, v) SELECT t, t FROM generate_series(0, 299) t;
    INSERT INTO child SELECT tenant, 1, id, repeat(md5(id::text), 1000), ARRAY['a', NULL, '"'] FROM parent;
    INSERT INTO "Od""d" SELECT t, 'x', '{"a": 1}' FROM generate_series(0, 299) t;
    INSERT INTO log SELECT t, date '2025-12-01' + t % 60, NULL FROM generate_series(0, 299) t;
    INSERT INTO bare (tenant, p, j) SELECT t, point(t, 1), '[1]' FROM generate_series(0, 299) t;
    INSERT INTO secret SELECT t, 's' FROM generate_series(0, 299) t;
  )");
  on_both("CREATE TRIGGER upset BEFORE INSERT OR UPDATE ON secret FOR EACH ROW EXECUTE FUNCTION upset()");
  for (const char* name : {"parent", "child", "log", "bare", "secret"}) put_table(name);
  const std::vector<std::string> names{"parent", "child", "log", "bare", "secret"};
  std::vector<std::vector<std::string>> before;
  for (const std::string& name : names) before.push_back(all_rows(name));
  start_runner();
  const JobInfo job = done(move_of("b", "s2"));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(all_rows(names[i]), before[i]) << names[i];
    EXPECT_EQ(rows(2, names[i]).size(), 100U) << names[i];
  }
  // What the sequences give next is free on the target.
  pgtest::psql(dsn(2),
               "INSERT INTO bare (tenant) VALUES (150); INSERT INTO parent (tenant, v) VALUES (150, 1)");
  EXPECT_EQ(pgtest::psql(dsn(2), "SELECT id FROM bare ORDER BY id DESC LIMIT 1"), "301");
  expect_clean();
}

TEST_F(MoveTest, ATableWithoutKeyAndWithoutEqualityIsRefusedOnlineAndMovesOffline) {
  ranges();
  on_both("CREATE TABLE \"Od\"\"d\" (\"Ten ant\" bigint NOT NULL, \"se\"\"lect\" text, doc json)");
  pgtest::psql(dsn(1), "INSERT INTO \"Od\"\"d\" SELECT t, 'x', '{\"a\": 1}' FROM generate_series(0, 299) t");
  put_table("Od\"d", {"Ten ant"});
  JobRequest request = move_of("b", "s2");
  const auto refused = jobs().submit(request, soon());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no primary key"), std::string::npos) << refused.error().to_string();
  request.mode = MoveMode::kOffline;
  const auto before = all_rows("\"Od\"\"d\"");
  start_runner();
  const JobInfo job = done(request);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(all_rows("\"Od\"\"d\""), before);
  EXPECT_EQ(rows(2, "\"Od\"\"d\"").size(), 100U);
  expect_clean();
}

TEST_F(MoveTest, EverythingThatSpeaksAgainstItIsToldAtOnceAndNothingIsTouched) {
  ranges();
  shop(50, 1);
  pgtest::psql(clusters_[0]->dsn(),
               "SELECT pg_create_logical_replication_slot('s' || n, 'pgoutput') FROM "
               "generate_series(1, 10) n");
  pgtest::psql(dsn(2), "ALTER TABLE orders ADD extra int; DROP TABLE items; INSERT INTO stock VALUES (7, 7)");
  const auto refused = jobs().submit(move_of("a", "s2"), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "55000");
  for (const char* reason :
       {"no free replication slot", "public.orders differs", "extra", "public.stock on the target has rows"}) {
    EXPECT_NE(refused.error().detail.find(reason), std::string::npos)
        << reason << ": " << refused.error().detail;
  }
  pgtest::psql(clusters_[0]->dsn(), "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots");
  // A table that is not there is made, once nothing else is in the way.
  EXPECT_EQ(refused.error().detail.find("public.items"), std::string::npos) << refused.error().detail;
  EXPECT_EQ(jobs().submit(move_of("none", "s2"), soon()).error().sqlstate, "42704");
  EXPECT_EQ(jobs().submit(move_of("a", "s9"), soon()).error().sqlstate, "42704");
  EXPECT_EQ(jobs().submit(move_of("a", "s1"), soon()).error().sqlstate, "55000");
  EXPECT_TRUE(must(jobs().list(soon())).empty());
}

TEST_F(MoveTest, TwoShardsOfOneServerAreAsGoodAsTwoServers) {
  ranges();
  shop();
  pgtest::psql(clusters_[0]->dsn(),
               "DROP DATABASE IF EXISTS neighbour WITH (FORCE);\nCREATE DATABASE neighbour");
  const std::string neighbour = clusters_[0]->dsn("neighbour");
  pgtest::psql(neighbour,
               "CREATE TABLE orders (tenant bigint NOT NULL, id bigint NOT NULL, note text, at timestamptz "
               "DEFAULT now(), PRIMARY KEY (tenant, id)); CREATE TABLE items (id uuid DEFAULT "
               "gen_random_uuid(), tenant bigint NOT NULL, body jsonb, n numeric); CREATE TABLE stock "
               "(tenant bigint PRIMARY KEY, amount bigint NOT NULL)");
  must(change().create_shard({"s3", neighbour}, soon()));
  start_runner();
  const JobInfo job = done(move_of("b", "s3"));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(story(job).find("08006"), std::string::npos) << story(job);
  EXPECT_EQ(pgtest::psql(neighbour, "SELECT count(*) FROM items"), "1000");
  expect_clean();
}

TEST_F(MoveTest, UnderLoadNoWriteIsLostAndNoCountIsEverWrong) {
  ranges();
  shop();
  pgtest::psql(dsn(1), "TRUNCATE orders");
  start_runner();
  Load load(store_dsn(), 300, 4, 1);
  const char* target = "s2";
  for (int i = 0; i < 4; ++i) {
    const JobInfo job = done(move_of("b", target));
    ASSERT_EQ(job.state, JobState::kDone) << story(job);
    target = i % 2 == 0 ? "s1" : "s2";
  }
  EXPECT_EQ(load.stop(), "");
  EXPECT_GT(load.writes(), 100U);
  EXPECT_GT(load.counts(), 10U);
  load.expect_all_there(pairs("SELECT tenant, amount FROM stock"), pairs("SELECT tenant, id FROM orders"));
  std::sort(load.waits.begin(), load.waits.end());
  std::printf("%zu writes, %d met the fence, longest wait %.1f ms, 99.9th percentile %.1f ms, %zu counts\n",
              static_cast<std::size_t>(load.writes()), load.bounced(), load.waits.back(),
              load.waits[load.waits.size() * 999 / 1000], static_cast<std::size_t>(load.counts()));
  expect_clean();
}

TEST_F(MoveTest, ALongTransactionDelaysTheFenceAndNotTheWriters) {
  ranges();
  shop();
  pgtest::Connection slow(dsn(1));
  start_runner();
  const JobInfo job = must(jobs().submit(move_of("b", "s2"), soon()));
  while (must(jobs().show(job.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  slow.query("BEGIN");
  slow.query("UPDATE stock SET amount = 7 WHERE tenant = 150");
  pgtest::Connection quick(dsn(1));
  const auto end = std::chrono::steady_clock::now() + 3s;
  double longest = 0;
  while (std::chrono::steady_clock::now() < end) {
    const auto began = std::chrono::steady_clock::now();
    quick.query("UPDATE stock SET amount = amount + 1 WHERE tenant = 5");
    longest = std::max(
        longest, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(is_final(must(jobs().show(job.id, soon())).state));
  EXPECT_LT(longest, 500.0);
  slow.query("COMMIT");
  const JobInfo ended = must(jobs().wait(job.id, soon()));
  ASSERT_EQ(ended.state, JobState::kDone) << story(ended);
  EXPECT_EQ(pgtest::psql(dsn(2), "SELECT amount FROM stock WHERE tenant = 150"), "7");
  expect_clean();
}

// DROP TRIGGER and a change of the replica identity wait for everybody who has read the table. The job does
// not.
TEST_F(MoveTest, AReaderThatStaysDelaysNeitherTheJobNorTheWritersAndWhatIsLeftGoesWhenItHasGone) {
  ranges();
  shop();
  pgtest::Connection reader(dsn(1));
  JobRunnerOptions with = options();
  with.tuning.fence_retry_after = 10ms;
  start_runner(with);
  JobRequest request = move_of("b", "s2");
  request.max_rate = 200000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  while (must(jobs().show(submitted.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  reader.query("BEGIN");
  reader.query("SELECT count(*) FROM stock, items");
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("left behind"), std::string::npos) << story(job);
  const std::string enabled =
      "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%' AND tgenabled <> 'D'";
  const std::string left = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%'";
  EXPECT_EQ(pgtest::psql(dsn(1), enabled), "0");
  EXPECT_NE(pgtest::psql(dsn(1), left), "0");
  pgtest::psql(dsn(1), "INSERT INTO stock VALUES (150, 1); DELETE FROM stock WHERE tenant = 150");
  EXPECT_EQ(pgtest::psql(dsn(1), "SELECT relreplident FROM pg_class WHERE relname = 'items'"), "f");
  // The shards are free for others, also for one that comes back while that is so; what it needs is not taken
  // from it.
  const JobInfo back = done(move_of("b", "s1"));
  ASSERT_EQ(back.state, JobState::kDone) << story(back);
  EXPECT_EQ(rows(1, "stock").size(), 300U);
  reader.query("COMMIT");
  expect_clean();
  EXPECT_NE(story(must(jobs().show(job.id, soon()))).find("nothing is left behind"), std::string::npos);
}

TEST_F(MoveTest, TriggersGoAlsoWhereOneReaderFollowsTheOther) {
  ranges();
  shop();
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&stop] {
      pgtest::Connection pg(dsn(1));
      while (!stop) {
        pg.query("BEGIN");
        pg.query("SELECT count(*) FROM stock");
        std::this_thread::sleep_for(60ms);
        pg.query("COMMIT");
      }
    });
  }
  start_runner();
  const JobInfo job = done(move_of("b", "s2"));
  EXPECT_EQ(job.state, JobState::kDone) << story(job);
  expect_clean();  // while they read
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_F(MoveTest, AFailedMoveLeavesItsTriggersToBeRemovedToo) {
  ranges();
  shop();
  pgtest::psql(
      dsn(2),
      "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE public.stock SET amount = -1 "
      "WHERE tenant = 140; RETURN NEW; END $$; CREATE TRIGGER late BEFORE INSERT ON kintsugi.marker FOR EACH "
      "ROW EXECUTE FUNCTION late(); ALTER TABLE kintsugi.marker ENABLE ALWAYS TRIGGER late");
  pgtest::Connection reader(dsn(1));
  reader.query("BEGIN");
  reader.query("SELECT count(*) FROM stock");
  JobRunnerOptions with = options();
  with.tuning.fence_retry_after = 10ms;
  with.tuning.verify_in_fence = 60s;  // however slow this machine is
  start_runner(with);
  const JobInfo job = done(move_of("b", "s2"));
  EXPECT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_NE(story(job).find("left behind"), std::string::npos) << story(job);
  pgtest::psql(dsn(1), "UPDATE stock SET amount = 3 WHERE tenant = 150");
  EXPECT_EQ(jobs().resume(job.id, soon()).error().sqlstate, "55006");
  reader.query("COMMIT");
  expect_clean();
  pgtest::psql(dsn(2), "DROP TRIGGER late ON kintsugi.marker; DROP FUNCTION late()");
  ASSERT_TRUE(jobs().resume(job.id, soon()));
  EXPECT_EQ(must(jobs().wait(job.id, soon())).state, JobState::kDone);
  expect_clean();
}

TEST_F(MoveTest, ADifferenceAbortsAndNamesTheRows) {
  ranges();
  shop();
  // The target changes what it is given, as a broken disk would.
  pgtest::psql(
      dsn(2),
      "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.tenant = 133 THEN "
      "NEW.amount := "
      "-1; END IF; RETURN NEW; END $$; CREATE TRIGGER kintsugi_fence_spoil BEFORE INSERT ON stock FOR EACH ROW "
      "EXECUTE FUNCTION spoil(); ALTER TABLE stock ENABLE ALWAYS TRIGGER kintsugi_fence_spoil");
  start_runner();
  const JobInfo job = done(move_of("b", "s2"));
  ASSERT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_NE(job.error->message.find("public.stock"), std::string::npos) << story(job);
  EXPECT_NE(job.error->detail.find("key (133) on the source only"), std::string::npos) << story(job);
  pgtest::psql(dsn(2), "DROP TRIGGER kintsugi_fence_spoil ON stock");
  EXPECT_EQ(rows(2, "stock").size(), 0U);
  EXPECT_EQ(owner_of("b"), "s1");
  expect_clean();
  // Resumed, it succeeds.
  ASSERT_TRUE(jobs().resume(job.id, soon()));
  EXPECT_EQ(must(jobs().wait(job.id, soon())).state, JobState::kDone);
  expect_clean();
}

TEST_F(MoveTest, WhatWritesOnTheSourceAfterTheCommitIsRefusedByPostgres) {
  ranges();
  shop();
  pgtest::Connection stale(dsn(1));
  stale.query("SELECT count(*) FROM stock");
  pgtest::Connection old_snapshot(dsn(1));
  old_snapshot.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  old_snapshot.query("SELECT 1 FROM pg_class LIMIT 1");
  // A living router that has not seen the commit: the move waits for it, and no write is let through meanwhile.
  const std::string seen = std::to_string(map()->epoch() + 2);
  ASSERT_TRUE(
      store_->put_notes({{"router", "slow", R"({"epoch":)" + seen + R"(,"lease_ms":600000})", {}}}, soon()));
  start_runner();
  const JobInfo job = must(jobs().submit(move_of("b", "s2"), soon()));
  while (must(jobs().show(job.id, soon())).state != JobState::kCommitted) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(map()->shardlet("b")->state, ShardletState::kHeld);
  EXPECT_EQ(owner_of("b"), "s2");
  for (pgtest::Connection* connection : {&stale, &old_snapshot}) {
    try {
      connection->query("UPDATE stock SET amount = 0 WHERE tenant = 150");
      ADD_FAILURE() << "a write went to the old shard";
    } catch (const std::exception& problem) {
      EXPECT_NE(std::string(problem.what()).find("kintsugi: shardlet moved"), std::string::npos)
          << problem.what();
    }
  }
  // The others' rows are as free as ever, and the shard says that maps of before are not to be trusted.
  stale.query("UPDATE stock SET amount = 1 WHERE tenant = 50");
  EXPECT_EQ(stale.query("SELECT kintsugi.holds(1000000)")[0][0], "f");
  const std::string now = std::to_string(map()->epoch());
  ASSERT_TRUE(store_->put_notes(
      {{"router", "slow", R"({"epoch":1,"seen":)" + now + R"(,"lease_ms":600000})", {}}}, soon()));
  while (must(jobs().show(job.id, soon())).state != JobState::kCleaning) std::this_thread::sleep_for(1ms);
  // Seen is enough for writes; cleaning waits until the old statements have ended.
  EXPECT_EQ(map()->shardlet("b")->state, ShardletState::kOnline);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(rows(1, "stock", "tenant = 150").size(), 1U);
  EXPECT_EQ(stale.query("SELECT kintsugi.holds(" + now + " - 1)")[0][0], "f");
  EXPECT_EQ(stale.query("SELECT kintsugi.holds(" + std::to_string(map()->epoch()) + ")")[0][0], "t");
  // It dies. Its connections are ended before the fence goes.
  ASSERT_TRUE(store_->put_notes({{"router", "slow", R"({"epoch":1,"seen":1,"lease_ms":1})", {}}}, soon()));
  const JobInfo ended = must(jobs().wait(job.id, soon()));
  ASSERT_EQ(ended.state, JobState::kDone) << story(ended);
  EXPECT_THROW(old_snapshot.query("SELECT 1"), std::runtime_error);
  ASSERT_TRUE(store_->put_notes({{"router", "slow", {}, {}}}, soon()));
  expect_clean();
}

}  // namespace kintsugi::splitmerge
