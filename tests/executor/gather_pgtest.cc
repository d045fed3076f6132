// Rows of three shards brought together on one of them, and nothing left behind.
#include "executor/gather.h"

#include "executor/control_round.h"
#include "executor/fan.h"
#include "executor/two_phase.h"
#include "shardmap/local_map.h"
#include "tests/executor/shards.h"

namespace kintsugi::executor {
namespace {

using planner::GatheredRelation;

class Gather : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Shards::get().sql(
        "CREATE TABLE a (id int, name text, v numeric(10,2), at timestamptz, tags text[]);"
        "INSERT INTO a SELECT 3*g + $S, E'n\\t\\\\' || g, g / 4.0, '2024-01-01 UTC', ARRAY['x', NULL] FROM "
        "generate_series(0, 9) g; INSERT INTO a VALUES (NULL, NULL, NULL, NULL, NULL);"
        // Of another OID on each.
        "CREATE SCHEMA pad; DO $$ BEGIN FOR i IN 1..$S LOOP EXECUTE format('CREATE TYPE pad.t%s AS ENUM "
        "(''x'')', i); "
        "END LOOP; END $$; CREATE TYPE mood AS ENUM ('sad', 'glad');"
        "CREATE TABLE b (id int, m mood, ms mood[]); INSERT INTO b VALUES ($S, 'glad', '{sad,glad}');"
        "CREATE TABLE big (id int, pad text); INSERT INTO big SELECT g, repeat('x', 100) FROM "
        "generate_series(1, 30000) g");
  }
};

struct Case {
  std::vector<GatheredRelation> relations;
  std::string final_statement;
  std::string value{};  // of $1, an int
  std::uint64_t most_bytes = UINT64_MAX;
};
struct Seen {
  GatherResult result;
  std::string rows, statuses, left;
};

GatheredRelation from_all(std::string temporary, std::string of, const std::string& select,
                          std::vector<std::string> columns, std::vector<std::string> types) {
  GatheredRelation relation{std::move(temporary), std::move(of), {}, std::move(columns), std::move(types)};
  for (unsigned i = 1; i <= kShards; ++i) relation.tasks.push_back({i, select});
  return relation;
}

// The finisher is the first shard.
io::Task<Seen> play(io::Waiter* waiter, const Case* the) {
  auto linking = link_up(waiter);
  Links links = co_await std::move(linking);
  Seen seen;
  std::vector<ControlOrder> begin(1, ControlOrder{links[0], "BEGIN"});
  auto beginning = run_on_all(std::move(begin), waiter, patience());
  (void)co_await std::move(beginning);
  GatherRequest request;
  for (const GatheredRelation& relation : the->relations) {
    request.relations.push_back({relation, {}});
    for (const auto& task : relation.tasks)
      request.relations.back().sources.push_back(links[static_cast<int>(task.shard) - 1]);
  }
  request.finisher = links[0];
  if (!the->value.empty()) {
    request.parameter_types = {23};
    request.parameters.push_back({false, false, the->value});
  }
  request.most_bytes = the->most_bytes;
  request.waiter = waiter;
  request.deadline = patience();
  Gathering gathering(std::move(request));
  auto filling = gathering.fill();
  seen.result = co_await std::move(filling);
  if (seen.result.ok) {
    Outbox client;
    FanRequest last;
    last.branches.push_back({links[0], the->final_statement, {}});
    last.client = &client;
    last.waiter = waiter;
    last.deadline = patience();
    Fan fan(std::move(last));
    auto finishing = fan.advance();
    const FanStep step = co_await std::move(finishing);
    seen.rows = trace(client.compose());
    if (step.kind == FanStep::kFailed) seen.rows += trace(step.error);
    client.clear();
    auto dropping = gathering.drop();
    co_await std::move(dropping);
  }
  for (auto& backend : links.backends)
    seen.statuses += backend->broken ? 'X' : static_cast<char>(backend->status);
  if (links[0]->status == wire::TransactionStatus::kFailed) {
    auto rolling = run_control_query(links[0], "ROLLBACK", waiter, patience());
    (void)co_await std::move(rolling);
  }
  auto looking =
      run_control_query(links[0], "SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relkind = 'r'",
                        waiter, patience());
  const auto left = co_await std::move(looking);
  seen.left = left ? *left->at(0).at(0) : left.error().message;
  co_return seen;
}

Seen run(const Case& the) {
  return act(play, &the);
}

TEST_F(Gather, RowsOfAllShardsStandInOneTable) {
  const Seen seen =
      run({.relations = {from_all("g1", "public.a",
                                  "SELECT id, name, v, at, tags FROM a WHERE id IS NULL OR id < $1",
                                  {"id", "na\"me", "v", "at", "tags"},
                                  {"integer", "text", "numeric(10,2)", "timestamp with time zone", "text[]"}),
                         from_all("g2", "public.a", "SELECT id FROM a WHERE id < $1", {"id"}, {"integer"})},
           .final_statement =
               "SELECT count(*), sum(g1.id), min(\"na\"\"me\"), sum(v), max(extract(epoch from at))::int, "
               "count(tags), (SELECT count(*) FROM g2) FROM g1",
           .value = "10"});
  ASSERT_TRUE(seen.result.ok) << trace(seen.result.error);
  EXPECT_EQ(seen.rows, "D(12|45|n\t\\0|2.25|1704067200|9|9)");
  EXPECT_EQ(seen.statuses, "TII");
  EXPECT_EQ(seen.left, "0");
  EXPECT_GT(seen.result.bytes, 100u);
  EXPECT_EQ(seen.result.rows, 14u);  // those of the finisher itself did not travel
}

TEST_F(Gather, TypesThatDifferFromShardToShardGoAsText) {
  const Seen seen =
      run({.relations = {from_all("g1", "public.b", "SELECT id, m, ms, E'a\\\\b\\nc\\t', NULL::mood FROM b",
                                  {"id", "m", "ms", "t", "n"}, {"integer", "mood", "mood[]", "text", "mood"})},
           .final_statement = "SELECT sum(id), count(*) FROM g1 WHERE m = 'glad' AND ms[1] = 'sad' AND "
                              "t = E'a\\\\b\\nc\\t' AND n IS NULL"});
  ASSERT_TRUE(seen.result.ok) << trace(seen.result.error);
  EXPECT_EQ(seen.rows, "D(6|3)");
}

// Text as the session's settings have it would not be read as the value that was written.
TEST_F(Gather, WhatGoesAsTextKeepsItsDigitsAndZones) {
  Shards::get().sql(
      "DROP TABLE IF EXISTS c; CREATE TABLE c (m mood, f float8, r float4, at timestamptz, fs float8[], rs "
      "float4[], ats timestamptz[]); INSERT INTO c VALUES "
      "('sad', 1.0/3, 1.0/3, '2024-07-01 12:00:00.000001Z', ARRAY[1.0/3, NULL, 'NaN'], '[0:1]={0.1,0.2}', "
      "'{}'), ('sad', '-Infinity', 'NaN', '-infinity', ARRAY[[1.0/3, 2], [3.0, '-Infinity'::float8]], '{}', "
      "ARRAY[NULL, '2024-07-01 12:00:00.000001Z'::timestamptz, 'infinity']), "
      "('glad', 1e300, -1e-30, '0044-03-15 12:00Z BC', '{}', ARRAY[1.0/3], ARRAY[['0044-03-15 12:00Z "
      "BC'::timestamptz]]);"
      "ALTER ROLE CURRENT_USER SET extra_float_digits = -10; ALTER ROLE CURRENT_USER SET datestyle = 'SQL, "
      "DMY'; "
      "ALTER ROLE CURRENT_USER SET timezone = 'Asia/Kolkata'");
  const Seen seen = run(
      {.relations = {from_all("g1", "public.c", "SELECT m, f, r, at, fs, rs, ats FROM c",
                              {"m", "f", "r", "at", "fs", "rs", "ats"},
                              {"mood", "double precision", "real", "timestamp with time zone",
                               "double precision[]", "real[]", "timestamp with time zone[]"})},
       .final_statement = "SELECT count(*), count(DISTINCT (f, r, at, fs, rs, ats)) FROM g1 WHERE (m, f, r, "
                          "at, fs, rs, ats) IN (TABLE c)"});
  Shards::get().sql("ALTER ROLE CURRENT_USER RESET ALL");
  ASSERT_TRUE(seen.result.ok) << trace(seen.result.error);
  EXPECT_EQ(seen.rows, "D(9|3)");
}

TEST_F(Gather, ManyRowsStreamAndAreAnalysed) {
  const Seen seen =
      run({.relations = {from_all("g1", "public.big", "SELECT id, pad FROM big", {"id", "pad"},
                                  {"integer", "text"})},
           .final_statement = "SELECT count(*), sum(length(pad)), (SELECT reltuples FROM pg_class WHERE "
                              "relname = 'g1') FROM g1"});
  ASSERT_TRUE(seen.result.ok) << trace(seen.result.error);
  EXPECT_EQ(seen.rows, "D(90000|9000000|90000)");
}

TEST_F(Gather, TooManyBytesAreRefusedByTheTablesName) {
  const Seen seen = run({.relations = {from_all("g1", "public.big", "SELECT id, pad FROM big", {"id", "pad"},
                                                {"integer", "text"})},
                         .final_statement = "SELECT 1",
                         .most_bytes = 1'000'000});
  EXPECT_FALSE(seen.result.ok);
  EXPECT_EQ(
      trace(seen.result.error),
      "E(53400 the statement would gather more than 1000000 bytes on one shard: it was reading public.big)");
  EXPECT_EQ(seen.statuses, "EII");
  EXPECT_EQ(seen.left, "0");
}

TEST_F(Gather, ASourcesErrorIsTheStatements) {
  GatheredRelation relation = from_all("g1", "public.a", "SELECT id FROM a", {"id"}, {"integer"});
  relation.tasks[2].text = "SELECT 1/(id-6) FROM a WHERE id > 5";
  const Seen seen = run({.relations = {relation}, .final_statement = "SELECT 1"});
  EXPECT_EQ(trace(seen.result.error), "E(22012 division by zero @ shard s3)");
  EXPECT_EQ(seen.result.sqlstate, "22012");
  EXPECT_EQ(seen.statuses, "EII");
  // On the finisher itself.
  std::swap(relation.tasks[2].text, relation.tasks[0].text);
  relation.tasks[0].text = "SELECT 1/(id-7) FROM a WHERE id > 5";
  const Seen local = run({.relations = {relation}, .final_statement = "SELECT 1"});
  EXPECT_EQ(trace(local.result.error), "E(22012 division by zero @ shard s1)");
}

// It comes with the rows, in one piece: what was read before it is not an answer.
TEST_F(Gather, AnErrorBehindTheRowsIsTheStatements) {
  const Seen seen = run(
      {.relations = {from_all("g1", "public.a", "SELECT 1 / (24 - id) AS id FROM a WHERE id < 25 ORDER BY a.id",
                              {"id"}, {"integer"})},
       .final_statement = "SELECT count(*) FROM g1"});
  EXPECT_FALSE(seen.result.ok);
  EXPECT_EQ(seen.result.sqlstate, "22012");
}

TEST_F(Gather, TheFinishersErrorEndsTheStreams) {
  GatheredRelation relation =
      from_all("g1", "public.big", "SELECT id, pad FROM big", {"id", "id"}, {"integer", "text"});
  const Seen seen = run({.relations = {relation}, .final_statement = "SELECT 1"});
  EXPECT_EQ(seen.result.sqlstate, "42701");
  EXPECT_EQ(seen.statuses, "EII");
}

TEST_F(Gather, AWrongTypeIsNotReadAsWhatItIsNot) {
  const Seen seen = run({.relations = {from_all("g1", "public.a", "SELECT id FROM a", {"id"}, {"bigint"})},
                         .final_statement = "SELECT 1"});
  EXPECT_EQ(seen.result.sqlstate, "55000");
  EXPECT_EQ(seen.statuses, "EII");
}

// The finisher's transaction cannot be prepared, so it decides, whoever wrote first.
io::Task<std::string> write_and_gather(io::Waiter* waiter, const Case* the) {
  auto linking = link_up(waiter);
  Links links = co_await std::move(linking);
  std::vector<ControlOrder> begin;
  for (auto& backend : links.backends)
    begin.push_back({backend.get(), "BEGIN; INSERT INTO written VALUES (1)"});
  auto beginning = run_on_all(std::move(begin), waiter, patience());
  (void)co_await std::move(beginning);
  GatherRequest request;
  request.relations.push_back({the->relations[0], {links[0], links[1], links[2]}});
  request.finisher = links[1];
  request.waiter = waiter;
  request.deadline = patience();
  Gathering gathering(std::move(request));
  auto filling = gathering.fill();
  const GatherResult filled = co_await std::move(filling);
  auto dropping = gathering.drop();
  co_await std::move(dropping);
  std::vector<TransactionBranch> branches;
  for (int i = 0; i < kShards; ++i) branches.push_back({links[i], static_cast<shardmap::ShardId>(i + 1), true});
  auto committing = commit_on_all(std::move(branches), "store", false, waiter, patience());
  const CommitOutcome outcome = co_await std::move(committing);
  co_return filled.ok && !links[1]->has_temporaries ? outcome.gid + " " + trace(outcome.error) : "not filled";
}

TEST_F(Gather, ItsTransactionIsTheOneThatDecides) {
  Shards::get().sql("CREATE TABLE written (a int)");
  for (int i = 0; i < kShards; ++i) {
    auto local = shardmap::LocalMap::connect(Shards::get().dsn(i), patience());
    ASSERT_TRUE(local->claim("3f0c1a52-0000-4000-8000-000000000001", "uuid-" + std::to_string(i),
                             Shards::name(i), patience()));
  }
  Case the;
  the.relations.push_back(from_all("g1", "public.a", "SELECT id FROM a", {"id"}, {"integer"}));
  const std::string decided = act(write_and_gather, static_cast<const Case*>(&the));
  EXPECT_NE(decided.find(":2 "), std::string::npos) << decided;
  EXPECT_EQ(decided.find("E("), std::string::npos) << decided;
  EXPECT_EQ(Shards::get().on(2, "SELECT count(*) FROM written"), "1");
}

}  // namespace
}  // namespace kintsugi::executor
