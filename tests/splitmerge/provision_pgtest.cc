// A new shard becomes like the others before it may receive anything.
#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class ProvisionTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
    on_both(
        "CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE SCHEMA aux; CREATE SEQUENCE aux.numbers;"
        "CREATE FUNCTION aux.twice(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 2';"
        "CREATE TABLE orders (tenant bigint NOT NULL, id bigint NOT NULL, m mood, PRIMARY KEY (tenant, id));"
        "CREATE TABLE tickets (tenant bigint NOT NULL, id bigserial, n serial, PRIMARY KEY (tenant, id));"
        "CREATE INDEX ON orders (m) WHERE id > 5; CREATE TABLE plans (id serial PRIMARY KEY, name text)");
    pgtest::psql(dsn(1), "CREATE TABLE at_home (id int)");
    on_both("INSERT INTO plans (name) SELECT 'plan ' || n FROM generate_series(1, 50) n");
    pgtest::psql(dsn(1), "INSERT INTO orders SELECT t, 1, 'sad' FROM generate_series(0, 299) t");
    pgtest::psql(dsn(1), "INSERT INTO tickets SELECT 150 FROM generate_series(1, 5000)");
    put_table("orders");
    put_table("tickets");
    must(change().edit({edit::PutTable{Table{"public", "plans", TableKind::kReplicated, "", {}}}}, soon()));
    pgtest::psql(clusters_[1]->dsn(), "DROP DATABASE IF EXISTS shard3 WITH (FORCE);\nCREATE DATABASE shard3");
    must(change().create_shard({"s3", third(), shardmap::ShardState::kPreparing}, soon()));
  }
  static std::string third() { return clusters_[1]->dsn("shard3"); }
  static JobRequest provision() {
    JobRequest request;
    request.type = JobType::kProvision;
    request.shard = "s3";
    return request;
  }
};

}  // namespace

TEST_F(ProvisionTest, ANewShardGetsTheSchemaAndTheReplicatedRowsAndIsThenUsed) {
  start_runner();
  EXPECT_EQ(jobs().submit(move_of("b", "s3"), soon()).error().sqlstate, "55000");
  const JobInfo job = done(provision());
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(map()->shard_named("s3")->state, shardmap::ShardState::kOnline);
  EXPECT_EQ(pgtest::psql(third(), "SELECT count(*), max(name) FROM plans"), "50|plan 9");
  EXPECT_EQ(pgtest::psql(third(), "SELECT aux.twice(4), nextval('aux.numbers'), 'happy'::mood"), "8|1|happy");
  EXPECT_EQ(pgtest::psql(third(), "INSERT INTO plans (name) VALUES ('new') RETURNING id"), "51");
  EXPECT_EQ(pgtest::psql(third(), "SELECT to_regclass('public.at_home') IS NULL"), "t");
  expect_clean();
  const JobInfo moved = done(move_of("b", "s3"));
  ASSERT_EQ(moved.state, JobState::kDone) << story(moved);
  EXPECT_EQ(pgtest::psql(third(), "SELECT count(*) FROM orders"), "100");
  EXPECT_EQ(jobs().submit(provision(), soon()).error().sqlstate, "55000");
  expect_clean();
}

// A remainder of its own for each shard, also behind the rows that a move has brought.
TEST_F(ProvisionTest, SequencesOfShardedTablesCountApartFromThenOn) {
  start_runner();
  const JobInfo job = done(provision());
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  const std::string next =
      "INSERT INTO tickets VALUES (150) RETURNING id % 4096, n % 128, id > 5000 AND n > 5000";
  const auto own = [this](const char* shard) {
    const std::string id = std::to_string(map()->shard_named(shard)->id);
    return id + "|" + id + "|t";
  };
  EXPECT_EQ(pgtest::psql(dsn(1), next), own("s1"));
  EXPECT_EQ(pgtest::psql(dsn(2), next), own("s2"));
  EXPECT_EQ(pgtest::psql(third(), next), own("s3"));
  pgtest::psql(dsn(2), "DELETE FROM tickets");
  pgtest::psql(third(), "DELETE FROM tickets");
  pgtest::psql(dsn(1), "INSERT INTO tickets SELECT 150 FROM generate_series(1, 50)");
  const JobInfo moved = done(move_of("b", "s3"));
  ASSERT_EQ(moved.state, JobState::kDone) << story(moved);
  EXPECT_EQ(pgtest::psql(third(), next), own("s3"));
  EXPECT_EQ(pgtest::psql(third(), "SELECT max(id) = (SELECT last_value FROM tickets_id_seq) FROM tickets"),
            "t");
  expect_clean();
}

TEST_F(ProvisionTest, WritesToReplicatedTablesDoNotGetByTheNewShard) {
  // A living router that does not know of the new shard yet.
  ASSERT_TRUE(store_->put_notes({{"router", "slow", R"({"epoch":1,"lease_ms":600000})", {}}}, soon()));
  start_runner();
  const JobInfo job = must(jobs().submit(provision(), soon()));
  while (must(jobs().show(job.id, soon())).state != JobState::kCleaning) std::this_thread::sleep_for(2ms);
  int refused = 0;
  for (int i = 1; i <= 2; ++i) {
    try {
      pgtest::Connection(dsn(i)).query("UPDATE plans SET name = 'lost' WHERE id = 1");
    } catch (const std::exception& problem) {
      EXPECT_NE(std::string(problem.what()).find("kintsugi: shardlet moved"), std::string::npos)
          << problem.what();
      ++refused;
    }
  }
  EXPECT_EQ(refused, 1);  // enough: such a write is one transaction on all shards
  ASSERT_TRUE(store_->put_notes({{"router", "slow", {}, {}}}, soon()));
  EXPECT_EQ(must(jobs().wait(job.id, soon())).state, JobState::kDone);
  EXPECT_NO_THROW(pgtest::psql(dsn(1), "UPDATE plans SET name = 'x' WHERE id = 1"));
  EXPECT_NO_THROW(pgtest::psql(dsn(2), "UPDATE plans SET name = 'x' WHERE id = 1"));
  expect_clean();
}

TEST_F(ProvisionTest, AReaderThatStaysKeepsNobodyFromWriting) {
  pgtest::Connection readers[]{pgtest::Connection(dsn(1)), pgtest::Connection(dsn(2))};
  for (auto& reader : readers) {
    reader.query("BEGIN");
    reader.query("SELECT count(*) FROM plans");
  }
  JobRunnerOptions with = options();
  with.tuning.fence_retry_after = 10ms;
  start_runner(with);
  const JobInfo job = done(provision());
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  for (int i = 1; i <= 2; ++i) pgtest::psql(dsn(i), "UPDATE plans SET name = 'new' WHERE id = 1");
  for (auto& reader : readers) reader.query("COMMIT");
  expect_clean();
}

// Not the tables alone: whatever pg_dump tells of.
TEST_F(ProvisionTest, WhatIsNotAsOnTheOthersIsNamed) {
  on_both(
      "COMMENT ON TABLE orders IS 'the orders'; CREATE VIEW sad AS SELECT * FROM orders WHERE m = 'sad'; "
      "CREATE DOMAIN "
      "percent AS int CHECK (VALUE BETWEEN 0 AND 100); CREATE TYPE place AS (street text, n percent); GRANT "
      "SELECT ON "
      "orders TO PUBLIC");
  // A move's fence on the other shard does not come along.
  for (int i = 1; i <= 2; ++i)
    pgtest::psql(
        dsn(i),
        "CREATE TRIGGER kintsugi_fence_99_in BEFORE INSERT ON orders FOR EACH ROW WHEN (NEW.tenant < 0) "
        "EXECUTE FUNCTION kintsugi.refuse_moved('99')");
  pgtest::psql(third(), "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'");
  start_runner();
  const JobInfo job = done(provision());
  ASSERT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_NE(job.error->detail.find("CREATE FUNCTION public.mine() RETURNS integer (on s3 only)"),
            std::string::npos)
      << story(job);
  EXPECT_EQ(map()->shard_named("s3")->state, shardmap::ShardState::kPreparing);
  pgtest::psql(
      third(),
      "DROP FUNCTION mine(); DROP VIEW sad; COMMENT ON TABLE orders IS 'others'; REVOKE SELECT ON orders "
      "FROM PUBLIC");
  ASSERT_TRUE(jobs().resume(job.id, soon()));
  const JobInfo second = must(jobs().wait(job.id, soon()));
  ASSERT_EQ(second.state, JobState::kFailed) << story(second);
  for (const char* line : {"CREATE VIEW public.sad", "COMMENT ON TABLE public.orders IS 'others'; (on s3 only)",
                           "GRANT SELECT ON TABLE public.orders TO PUBLIC;"})
    EXPECT_NE(second.error->detail.find(line), std::string::npos) << line << "\n" << story(second);
  pgtest::psql(
      third(),
      "CREATE VIEW sad AS SELECT * FROM orders WHERE m = 'sad'; COMMENT ON TABLE orders IS 'the orders'; "
      "GRANT SELECT ON orders TO PUBLIC");
  ASSERT_TRUE(jobs().resume(job.id, soon()));
  const JobInfo third_time = must(jobs().wait(job.id, soon()));
  ASSERT_EQ(third_time.state, JobState::kDone) << story(third_time);
  EXPECT_EQ(pgtest::psql(third(), "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%'"), "0");
  for (int i = 1; i <= 2; ++i) pgtest::psql(dsn(i), "DROP TRIGGER kintsugi_fence_99_in ON orders");
  expect_clean();
}

TEST_F(ProvisionTest, ADatabaseThatIsNotEmptyIsLeftAsItIs) {
  pgtest::psql(third(), "CREATE TABLE orders (mine int); INSERT INTO orders VALUES (1)");
  start_runner();
  const JobInfo job = done(provision());
  ASSERT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_NE(job.error->detail.find("already exists"), std::string::npos) << story(job);
  EXPECT_EQ(map()->shard_named("s3")->state, shardmap::ShardState::kPreparing);
  EXPECT_EQ(pgtest::psql(third(), "SELECT * FROM orders"), "1");
  pgtest::psql(third(), "DROP TABLE orders");
  ASSERT_TRUE(jobs().resume(job.id, soon()));
  const JobInfo again = must(jobs().wait(job.id, soon()));
  ASSERT_EQ(again.state, JobState::kDone) << story(again);
  expect_clean();
}

}  // namespace kintsugi::splitmerge
