// What a move does before it copies, and what it tells while it does; rows that come out differently.
#include <set>

#include "splitmerge/moved_table.h"
#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class PrepareTest : public Moving {
 protected:
  std::vector<std::string> shape(int shard, const std::string& table) {
    const auto session = must(shardmap::PgSession::connect(dsn(shard), true, soon()));
    return must(shape_of(*session, table, soon()));
  }
  // A job that has come to this state, or has ended.
  JobInfo until(std::uint64_t id, JobState state) {
    for (;;) {
      const JobInfo job = must(jobs().show(id, soon()));
      if (job.state >= state) return job;
      std::this_thread::sleep_for(2ms);
    }
  }
  // The target changes what replication brings, as a broken disk would.
  static void spoil_updates() {
    pgtest::psql(
        dsn(2),
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.amount := NEW.amount + 1; "
        "RETURN NEW; END $$; CREATE TRIGGER kintsugi_fence_spoil BEFORE UPDATE ON stock FOR EACH ROW WHEN "
        "(NEW.tenant = 133) EXECUTE FUNCTION spoil(); ALTER TABLE stock ENABLE ALWAYS TRIGGER "
        "kintsugi_fence_spoil");
  }
};

}  // namespace

TEST_F(PrepareTest, ATableThatTheTargetLacksIsMadeThere) {
  ranges();
  shop(200, 3);
  const std::string tables = R"(
    CREATE TABLE "Li""ne" (tenant bigint NOT NULL, id bigserial, "a b" text DEFAULT 'x' CHECK ("a b" <> ''),
                           PRIMARY KEY (tenant, id));
    CREATE INDEX ON "Li""ne" (lower("a b")) WHERE id > 5;
    ALTER TABLE "Li""ne" ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON "Li""ne" USING (tenant > 0);
    CREATE TABLE log (tenant bigint NOT NULL, at date NOT NULL) PARTITION BY RANGE (at);
    CREATE TABLE log_old PARTITION OF log FOR VALUES FROM (MINVALUE) TO ('2026-01-01') PARTITION BY LIST (tenant);
    CREATE TABLE log_rest PARTITION OF log_old DEFAULT;
    CREATE TABLE log_new PARTITION OF log FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);)";
  pgtest::psql(dsn(1), tables);
  pgtest::psql(dsn(1),
               "INSERT INTO \"Li\"\"ne\" (tenant) SELECT generate_series(0, 199); INSERT INTO log SELECT t, "
               "date '2025-12-15' + t % 40 FROM generate_series(0, 199) t");
  put_table("Li\"ne");
  put_table("log");
  // Another move's fence is no matter of the new tables.
  pgtest::psql(dsn(1),
               "CREATE TRIGGER kintsugi_fence_99_in BEFORE INSERT ON log FOR EACH ROW WHEN (NEW.tenant < 0) "
               "EXECUTE FUNCTION kintsugi.refuse_moved('99')");
  start_runner();
  const JobInfo job = done(move_of("b", "s2"));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_NE(story(job).find("made on the target: public.Li\"ne, public.log"), std::string::npos) << story(job);
  for (const char* table : {"\"Li\"\"ne\"", "log"}) {
    EXPECT_EQ(shape(1, table), shape(2, table)) << table;
    EXPECT_EQ(rows(2, table).size(), 100U) << table;
  }
  EXPECT_EQ(pgtest::psql(dsn(2), "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%'"), "0");
  pgtest::psql(dsn(1), "DROP TRIGGER kintsugi_fence_99_in ON log");
  // What the sequences give is free on both.
  for (const int shard : {1, 2}) pgtest::psql(dsn(shard), "INSERT INTO \"Li\"\"ne\" (tenant) VALUES (150)");
  std::set<std::string> ids;
  for (const int shard : {1, 2}) {
    pgtest::Connection pg(dsn(shard));
    for (const auto& row : pg.query("SELECT id FROM \"Li\"\"ne\""))
      EXPECT_TRUE(ids.insert(row[0]).second) << row[0];
  }
  pgtest::psql(dsn(1), "DELETE FROM \"Li\"\"ne\" WHERE tenant = 150");
  expect_clean();
}

TEST_F(PrepareTest, WhatATableNeedsAndTheTargetLacksIsNamed) {
  ranges();
  shop(200, 1);
  pgtest::psql(dsn(1),
               "CREATE TYPE mood AS ENUM ('good'); CREATE TABLE moods (tenant bigint PRIMARY KEY, m mood); "
               "INSERT INTO moods SELECT generate_series(0, 199), 'good'");
  put_table("moods");
  start_runner();
  const JobInfo job = done(move_of("b", "s2"));
  ASSERT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_NE(job.error->message.find("table public.moods is missing on shard \"s2\""), std::string::npos)
      << story(job);
  EXPECT_NE(job.error->message.find("mood"), std::string::npos) << story(job);
  EXPECT_NE(job.error->hint.find("pg_dump"), std::string::npos) << story(job);
  EXPECT_EQ(owner_of("b"), "s1");
  EXPECT_EQ(rows(2, "stock").size(), 0U);
  // Made, and tried again.
  pgtest::psql(dsn(2), "CREATE TYPE mood AS ENUM ('good')");
  ASSERT_TRUE(jobs().resume(job.id, soon()));
  const JobInfo again = must(jobs().wait(job.id, soon()));
  EXPECT_EQ(again.state, JobState::kDone) << story(again);
  EXPECT_EQ(rows(2, "moods").size(), 100U);
  expect_clean();
}

TEST_F(PrepareTest, ProgressIsInRowsAndBytesAndTimeLeftAndEndsAtTheWhole) {
  ranges();
  shop(300, 10);
  pgtest::psql(dsn(1), "UPDATE pg_class SET reltuples = -1 WHERE relname IN ('orders', 'items', 'stock')");
  JobRequest request = move_of("b", "s2");
  request.max_rate = 40000;
  start_runner();
  const JobInfo submitted = must(jobs().submit(request, soon()));
  until(submitted.id, JobState::kCopying);
  const auto began = std::chrono::steady_clock::now();
  struct Sample {
    double at_s;
    JobProgress progress;
  };
  std::vector<Sample> samples;
  double ended_s = 0;
  for (;; std::this_thread::sleep_for(20ms)) {
    const JobInfo job = must(jobs().show(submitted.id, soon()));
    const double at = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (job.state != JobState::kCopying) {
      ended_s = at;
      break;
    }
    if (job.progress.rows > 0 && (samples.empty() || samples.back().progress != job.progress))
      samples.push_back({at, job.progress});
  }
  ASSERT_GT(samples.size(), 4U) << "too fast to see anything";
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const JobProgress& now = samples[i].progress;
    EXPECT_EQ(now.total, 2100U) << "counted, not guessed";
    EXPECT_LE(now.rows, now.total);
    EXPECT_GT(now.bytes, 0U);
    if (i > 0) {
      EXPECT_GE(now.rows, samples[i - 1].progress.rows);
    }
  }
  // In the middle of it the time left is about what it then takes.
  const Sample& middle = samples[samples.size() / 2];
  ASSERT_TRUE(middle.progress.eta_s);
  const double took = ended_s - middle.at_s;
  EXPECT_LT(*middle.progress.eta_s, 3 * took + 1);
  EXPECT_GT(*middle.progress.eta_s, took / 3 - 1);
  const JobInfo ended = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(ended.state, JobState::kDone) << story(ended);
  EXPECT_EQ(ended.progress.rows, 2100U);
  EXPECT_EQ(ended.progress.total, 2100U);
  EXPECT_FALSE(ended.progress.eta_s);
  expect_clean();
}

TEST_F(PrepareTest, ADifferenceThatReplicationMakesAbortsUnderTheFence) {
  ranges();
  shop();
  spoil_updates();
  JobRequest request = move_of("b", "s2");
  request.max_rate = 200000;
  JobRunnerOptions with = options();
  with.tuning.verify_in_fence = 60s;  // however slow this machine is
  start_runner(with);
  const JobInfo submitted = must(jobs().submit(request, soon()));
  until(submitted.id, JobState::kCopying);
  pgtest::psql(dsn(1), "UPDATE stock SET amount = 5 WHERE tenant = 133");
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_NE(job.error->detail.find("key (133) on the source only"), std::string::npos) << story(job);
  EXPECT_EQ(story(job).find("committed"), std::string::npos) << story(job);
  EXPECT_EQ(owner_of("b"), "s1");
  pgtest::psql(dsn(2), "DROP TRIGGER kintsugi_fence_spoil ON stock");
  pgtest::psql(dsn(1), "UPDATE stock SET amount = 6 WHERE tenant = 133");
  expect_clean();
}

}  // namespace kintsugi::splitmerge
