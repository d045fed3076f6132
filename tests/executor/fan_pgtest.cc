// Statements on three shards at once, merged: what the client gets, and how the connections are left.
#include "executor/fan.h"

#include "tests/executor/shards.h"

namespace kintsugi::executor {
namespace {

using planner::Fold;
using planner::Merge;

class FanOut : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Shards::get().sql(
        "DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, name text COLLATE \"C\", v numeric, at "
        "timestamptz);"
        "INSERT INTO t SELECT 3*g + $S, 'n' || (3*g + $S) % 7, (3*g + $S) / 4.0, '2024-01-01 UTC'::timestamptz "
        "+ g * "
        "interval '1 h' FROM generate_series(0, 9) g;"
        "CREATE TABLE r (id int PRIMARY KEY, x int);");
  }
};

// A statement on all shards, with what the client got and how the connections were left.
struct Call {
  std::vector<std::string> texts;  // one: for all
  Merge merge{};
  FanRequest::Describe describe = FanRequest::Describe::kQuery;
  std::vector<std::string> before{};
  std::vector<std::int16_t> formats{};
  std::vector<std::string> values{};
  std::vector<std::uint64_t> steps{0};  // row limits of advance()
  bool stop_then = false;
  std::uint64_t max_message = 1 << 20;
  std::size_t most_kept = SIZE_MAX;
  std::string afterwards{};  // run on every connection, to see that it is usable
  std::optional<FanLook> look{};
};
struct Seen {
  std::string client, outcome, statuses, after;
};

io::Task<Seen> play(io::Waiter* waiter, const Call* call) {
  auto linking = link_up(waiter);
  Links links = co_await std::move(linking);
  Seen seen;
  Outbox client;
  FanRequest request;
  for (int i = 0; i < kShards; ++i) {
    const std::size_t at = call->texts.size() == 1 ? 0 : static_cast<std::size_t>(i);
    request.branches.push_back({links[i], call->texts[at], call->before});
  }
  request.merge = call->merge;
  request.describe = call->describe;
  for (const std::string& value : call->values) request.bind.values.push_back({false, false, value});
  request.bind.result_formats = call->formats;
  request.client = &client;
  request.waiter = waiter;
  request.deadline = patience();
  request.max_message = call->max_message;
  request.most_kept = call->most_kept;
  request.suspendable = call->steps.front() != 0;
  request.look = call->look;
  Fan fan(std::move(request));
  for (const std::uint64_t rows : call->steps) {
    auto advancing = fan.advance(rows);
    const FanStep step = co_await std::move(advancing);
    seen.outcome += seen.outcome.empty() ? "" : ", ";
    if (step.kind == FanStep::kComplete) seen.outcome += step.cut ? "cut" : step.tag;
    if (step.kind == FanStep::kSuspended) {
      seen.outcome += "suspended " + std::to_string(step.rows);
      client.compose() += std::string("s\0\0\0\4", 5);
    }
    if (step.kind == FanStep::kFailed) seen.outcome += step.torn ? "torn" : trace(step.error);
    if (step.kind != FanStep::kSuspended) break;
  }
  if (call->stop_then) {
    auto stopping = fan.stop();
    co_await std::move(stopping);
  }
  seen.client = trace(client.compose());
  client.clear();
  for (auto& backend : links.backends)
    seen.statuses += backend->broken ? 'X' : static_cast<char>(backend->status);
  if (!call->afterwards.empty()) {
    for (auto& backend : links.backends) {
      auto running = run_control_query(backend.get(), call->afterwards, waiter, patience());
      const auto rows = co_await std::move(running);
      seen.after += seen.after.empty() ? "" : " ";
      seen.after += !rows ? rows.error().sqlstate : rows->empty() ? "-" : rows->at(0).at(0).value_or("NULL");
    }
  }
  co_return seen;
}

Seen run(const Call& call) {
  return act(play, &call);
}

Merge ordered(std::vector<planner::SortKey> keys) {
  return {.kind = Merge::Kind::kOrdered, .keys = std::move(keys)};
}

TEST_F(FanOut, ConcatGivesAllRowsOnceDescribedOnce) {
  const Seen seen = run({.texts = {"SELECT count(*) AS n, 'x' AS c FROM t"}, .afterwards = "SELECT 1"});
  EXPECT_EQ(seen.client, "T(n:20 c:25) D(10|x) D(10|x) D(10|x)");
  EXPECT_EQ(seen.outcome, "SELECT 3");
  EXPECT_EQ(seen.statuses, "III");
  EXPECT_EQ(seen.after, "1 1 1");
}

TEST_F(FanOut, DescriptionOnlyWhenItIsAskedFor) {
  const Seen none = run({.texts = {"SELECT 1"}, .describe = FanRequest::Describe::kNo});
  EXPECT_EQ(none.client, "D(1) D(1) D(1)");
  const Seen query = run({.texts = {"UPDATE t SET v = v"}});
  EXPECT_EQ(query.client, "");
  EXPECT_EQ(query.outcome, "UPDATE 30");
  const Seen portal = run({.texts = {"UPDATE t SET v = v"}, .describe = FanRequest::Describe::kPortal});
  EXPECT_EQ(portal.client, "n");
}

TEST_F(FanOut, OrderedAcrossShardsWithLimitAndOffset) {
  Merge merge = ordered({{.column = 0, .type = 23}});
  EXPECT_EQ(run({.texts = {"SELECT id FROM t ORDER BY id"}, .merge = merge}).client.substr(0, 40),
            "T(id:23) D(1) D(2) D(3) D(4) D(5) D(6) D");
  merge.limit = 3;
  merge.offset = 4;
  const Seen seen =
      run({.texts = {"SELECT id FROM t ORDER BY id LIMIT 7"}, .merge = merge, .afterwards = "SELECT 1"});
  EXPECT_EQ(seen.client, "T(id:23) D(5) D(6) D(7)");
  EXPECT_EQ(seen.outcome, "SELECT 3");
  EXPECT_EQ(seen.statuses, "III");
  EXPECT_EQ(seen.after, "1 1 1");
  merge.limit = 0;
  EXPECT_EQ(run({.texts = {"SELECT id FROM t ORDER BY id LIMIT 4"}, .merge = merge}).outcome, "SELECT 0");
}

TEST_F(FanOut, OrderedByTwoColumnsOneHiddenAndBinary) {
  Merge merge = ordered(
      {{.column = 1, .type = 1184, .descending = true, .nulls_first = true}, {.column = 0, .type = 23}});
  merge.hidden_columns = 1;
  merge.limit = 4;
  // The hidden timestamp would not be readable in this style.
  const Seen seen = run({.texts = {"SELECT id, at FROM t ORDER BY at DESC, id LIMIT 4"},
                         .merge = merge,
                         .before = {"BEGIN", "SET LOCAL DateStyle = 'SQL, DMY'"}});
  EXPECT_EQ(seen.client, "T(id:23) D(28) D(29) D(30) D(25)");
  EXPECT_EQ(seen.statuses, "TTT");
}

TEST_F(FanOut, DistinctKeepsOneOfEqualNeighbours) {
  Merge merge = ordered({{.column = 0, .type = 25}});
  merge.distinct = true;
  const Seen seen = run({.texts = {"SELECT DISTINCT name FROM t ORDER BY name"}, .merge = merge});
  EXPECT_EQ(seen.client, "T(name:25) D(n0) D(n1) D(n2) D(n3) D(n4) D(n5) D(n6)");
  EXPECT_EQ(seen.outcome, "SELECT 7");
}

TEST_F(FanOut, AStreamOutOfOrderIsAnErrorThatNamesTheShard) {
  const Merge merge = ordered({{.column = 0, .type = 23}});
  const Seen seen = run({.texts = {"SELECT id FROM t ORDER BY id", "SELECT id FROM t ORDER BY id DESC",
                                   "SELECT id FROM t ORDER BY id"},
                         .merge = merge,
                         .afterwards = "SELECT 1"});
  EXPECT_EQ(seen.outcome, "E(XX001 shard s2 sent rows that are not in the order asked for)");
  EXPECT_EQ(seen.after, "1 1 1");
}

TEST_F(FanOut, FoldsPartialResults) {
  Merge merge{.kind = Merge::Kind::kFold};
  merge.columns = {{Fold::kSum, 20}, {Fold::kSum, 1700}, {Fold::kMin, 23}, {Fold::kMax, 25}, {Fold::kAnd, 16}};
  const std::string text = "SELECT count(*), sum(v), min(id), max(name), bool_and(id > 2) FROM t";
  const Seen seen = run({.texts = {text}, .merge = merge});
  EXPECT_EQ(seen.client,
            "T(count:20 sum:1700 min:23 max:25 bool_and:16) D(30|116.25000000000000000000|1|n6|f)");
  EXPECT_EQ(seen.outcome, "SELECT 1");
  merge.columns = {{Fold::kSum, 20}};
  const Seen large = run({.texts = {"SELECT 9223372036854775807"}, .merge = merge, .afterwards = "SELECT 1"});
  EXPECT_EQ(large.outcome, "E(22003 bigint out of range)");
  EXPECT_EQ(large.after, "1 1 1");
}

TEST_F(FanOut, ParametersAndBinaryResults) {
  const Merge merge = ordered({{.column = 0, .type = 23}});
  const Seen seen = run({.texts = {"SELECT id FROM t WHERE id < $1 ORDER BY id"},
                         .merge = merge,
                         .formats = {1},
                         .values = {"3"}});
  EXPECT_EQ(seen.client, "T(id:23) " + std::string("D(\0\0\0\1) D(\0\0\0\2)", 15));
}

TEST_F(FanOut, WritesCountTheRowsOfAllShardsAndCopiesAgree) {
  EXPECT_EQ(run({.texts = {"INSERT INTO r VALUES (1, 1)", "INSERT INTO r VALUES (2, 1), (3, 1)",
                           "INSERT INTO r VALUES (4, 1)"}})
                .outcome,
            "INSERT 0 4");
  Merge one{.kind = Merge::Kind::kOne};
  EXPECT_EQ(run({.texts = {"DELETE FROM r WHERE id < 0 RETURNING id"}, .merge = one}).outcome, "DELETE 0");
  const Seen differing = run({.texts = {"DELETE FROM r WHERE id = 1"}, .merge = one});
  EXPECT_EQ(differing.outcome.substr(0, 47), "E(XX001 the copies of a replicated table differ");
  const Seen copies = run({.texts = {"INSERT INTO r VALUES (9, 2) RETURNING id, x"}, .merge = one});
  EXPECT_EQ(copies.client, "T(id:23 x:23) D(9|2)");
  EXPECT_EQ(copies.outcome, "INSERT 0 1");
}

TEST_F(FanOut, ReturnedRowsStandWhereTheyWereGiven) {
  Shards::get().sql("TRUNCATE r");
  Merge merge{.kind = Merge::Kind::kPlaced, .placement = {2, 0, 0, 1, 2}};
  const Seen seen = run(
      {.texts = {"INSERT INTO r VALUES (2, 1), (3, 1) RETURNING id", "INSERT INTO r VALUES (4, 1) RETURNING id",
                 "INSERT INTO r VALUES (1, 1), (5, 1) RETURNING id"},
       .merge = merge});
  EXPECT_EQ(seen.client, "T(id:23) D(1) D(2) D(3) D(4) D(5)");
  EXPECT_EQ(seen.outcome, "INSERT 0 5");
}

TEST_F(FanOut, TheFirstErrorWinsAndNamesItsShard) {
  const Seen seen = run({.texts = {"SELECT 1", "SELECT 1/0", "SELECT 1"}, .afterwards = "SELECT 1"});
  EXPECT_NE(seen.outcome.find("E(22012 division by zero @ shard s2)"), std::string::npos) << seen.outcome;
  EXPECT_EQ(seen.statuses, "III");
  EXPECT_EQ(seen.after, "1 1 1");
  const Seen within = run({.texts = {"SELECT 1", "SELECT 1/0", "SELECT 1"}, .before = {"BEGIN"}});
  EXPECT_EQ(within.statuses, "TET");
}

TEST_F(FanOut, NothingRunsWhenWhatComesBeforeFails) {
  const Seen seen = run({.texts = {"INSERT INTO r VALUES (77, 1)"},
                         .before = {"BEGIN", "SELECT nonsense"},
                         .afterwards = "ROLLBACK; SELECT count(*) FROM r WHERE id = 77"});
  EXPECT_EQ(seen.outcome.substr(0, 8), "E(42703 ");
  EXPECT_EQ(seen.statuses, "EEE");
  EXPECT_EQ(seen.after, "0 0 0");
}

TEST_F(FanOut, DifferentSchemasAreToldApart) {
  const Seen seen = run({.texts = {"SELECT 1 AS a", "SELECT 1 AS a", "SELECT 1::bigint AS a"}});
  EXPECT_EQ(seen.outcome,
            "E(55000 the schemas of the shards s1 and s3 differ: column \"a\" is of another type)");
  const Seen name = run({.texts = {"SELECT 1 AS a", "SELECT 1 AS b", "SELECT 1 AS a"}});
  EXPECT_EQ(name.outcome, "E(55000 the schemas of the shards s1 and s2 differ: column \"a\" is called \"b\")");
}

TEST_F(FanOut, SuspendedPortalsGoOnAndLeaveTheConnectionsFree) {
  const Merge merge = ordered({{.column = 0, .type = 23}});
  const Seen seen = run({.texts = {"SELECT id FROM t WHERE id < 10 ORDER BY id"},
                         .merge = merge,
                         .before = {"BEGIN"},
                         .steps = {4, 5, 5},
                         .afterwards = "SELECT count(*) FROM pg_cursors"});
  EXPECT_EQ(seen.outcome, "suspended 4, suspended 5, SELECT 0");
  EXPECT_EQ(seen.client, "T(id:23) D(1) D(2) D(3) D(4) s D(5) D(6) D(7) D(8) D(9) s");
  EXPECT_EQ(seen.statuses, "TTT");
  EXPECT_EQ(seen.after, "0 0 0");
}

TEST_F(FanOut, ASuspendedFanMayBeStopped) {
  for (const bool transaction : {false, true}) {
    const Seen seen =
        run({.texts = {"SELECT id FROM t ORDER BY id"},
             .merge = ordered({{.column = 0, .type = 23}}),
             .before = transaction ? std::vector<std::string>{"BEGIN"} : std::vector<std::string>{},
             .steps = {2},
             .stop_then = true,
             .afterwards = "SELECT count(*) FROM pg_cursors"});
    EXPECT_EQ(seen.outcome, "suspended 2");
    EXPECT_EQ(seen.statuses, transaction ? "TTT" : "III");
    EXPECT_EQ(seen.after, "0 0 0");
  }
}

TEST_F(FanOut, ALargeLimitStopsTheShardsEarlyAndFailsNoTransaction) {
  Merge merge{.limit = 20'000};
  const Seen seen = run({.texts = {"SELECT 1 FROM generate_series(1, 10000) a, generate_series(1, 10000) b"},
                         .merge = merge,
                         .describe = FanRequest::Describe::kNo,
                         .before = {"BEGIN"},
                         .afterwards = "SELECT 5"});
  EXPECT_EQ(seen.outcome, "SELECT 20000");
  EXPECT_EQ(seen.statuses, "TTT");
  EXPECT_EQ(seen.after, "5 5 5");
}

// What the sums are while another connection takes 100 from each row of `r`, at the moment when all have
// looked.
std::string sums_around_a_write(bool in_steps, const std::vector<std::string>& before, std::uint64_t rows = 0) {
  Shards::get().sql("TRUNCATE r; INSERT INTO r SELECT g, 1000 FROM generate_series(1, 10) g");
  const FanLook look{.one_moment =
                         [] {
                           Shards::get().sql("UPDATE r SET x = x - 100");
                           return true;
                         },
                     .in_steps = in_steps};
  const Seen seen = run({.texts = {"SELECT sum(x) AS n FROM r"},
                         .describe = FanRequest::Describe::kNo,
                         .before = before,
                         .steps = {rows},
                         .afterwards = "SELECT sum(x) FROM r",
                         .look = look});
  return seen.client + " " + seen.outcome + " " + seen.statuses + " " + seen.after;
}

TEST_F(FanOut, InStepsAllSnapshotsAreTakenBeforeAnythingRuns) {
  EXPECT_EQ(sums_around_a_write(true, {}), "D(10000) D(10000) D(10000) SELECT 3 III 9000 9000 9000");
  EXPECT_EQ(sums_around_a_write(true, {"BEGIN"}), "D(10000) D(10000) D(10000) SELECT 3 TTT 9000 9000 9000");
  EXPECT_EQ(sums_around_a_write(true, {"BEGIN ISOLATION LEVEL REPEATABLE READ"}),
            "D(10000) D(10000) D(10000) SELECT 3 TTT 10000 10000 10000");
  EXPECT_EQ(sums_around_a_write(true, {"BEGIN"}, 9), "D(10000) D(10000) D(10000) SELECT 3 TTT 9000 9000 9000");
}

TEST_F(FanOut, WhatIsTornHasToldNothingAndFailsNoTransaction) {
  for (const bool in_steps : {false, true}) {
    for (const std::vector<std::string>& before : {std::vector<std::string>{}, {"BEGIN"}}) {
      for (const std::uint64_t rows : {0, 2}) {
        const Seen seen = run({.texts = {"SELECT id FROM t ORDER BY id"},
                               .merge = ordered({{.column = 0, .type = 23}}),
                               .before = before,
                               .steps = {rows},
                               .afterwards = "SELECT count(*) FROM pg_cursors",
                               .look = FanLook{.one_moment = [] { return false; }, .in_steps = in_steps}});
        EXPECT_EQ(seen.outcome, "torn");
        EXPECT_EQ(seen.client, "");
        EXPECT_EQ(seen.statuses, before.empty() ? "III" : "TTT");
        EXPECT_EQ(seen.after, "0 0 0");
      }
    }
  }
}

TEST_F(FanOut, InStepsAnErrorIsTheStatementsOwn) {
  int asked = 0;
  const FanLook look{.one_moment = [&asked] { return ++asked > 0; }, .in_steps = true};
  const Seen wrong = run(
      {.texts = {"SELECT 1 AS a", "SELECT nonsense", "SELECT 1 AS a"}, .afterwards = "SELECT 1", .look = look});
  EXPECT_EQ(wrong.outcome.substr(0, 8), "E(42703 ");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(wrong.statuses, "III");
  EXPECT_EQ(wrong.after, "1 1 1");
  const Seen late = run({.texts = {"SELECT 1/id - 1/id AS a FROM (SELECT id * 0 AS id FROM t) t"},
                         .before = {"BEGIN"},
                         .look = look});
  EXPECT_NE(late.outcome.find("E(22012 "), std::string::npos) << late.outcome;
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(late.statuses.find('I'), std::string::npos);
}

TEST_F(FanOut, RowsThatAreKeptHaveABound) {
  const std::string many = "SELECT g, repeat('x', 100) FROM generate_series(1, 100000) g";
  for (const std::vector<std::string>& before : {std::vector<std::string>{}, {"BEGIN"}}) {
    const Seen cut = run({.texts = {many}, .before = before, .most_kept = 100'000, .afterwards = "SELECT 1"});
    EXPECT_EQ(cut.outcome, "cut");
    EXPECT_LT(cut.client.size(), 1'000'000u);  // what a branch has read ahead comes with it
    EXPECT_EQ(cut.statuses, before.empty() ? "III" : "TTT");
    EXPECT_EQ(cut.after, "1 1 1");
  }
  const Seen whole = run({.texts = {"SELECT 1 FROM t"}, .most_kept = 100'000});
  EXPECT_EQ(whole.outcome, "SELECT 30");
}

TEST_F(FanOut, ARowBeyondTheLimitIsRefused) {
  const Seen seen =
      run({.texts = {"SELECT 'x'::text AS a", "SELECT repeat('x', 5000) AS a", "SELECT 'x'::text AS a"},
           .max_message = 4000});
  EXPECT_EQ(seen.outcome, "E(54000 shard s2 sent a message of 5010 bytes that has to be read whole)");
  EXPECT_EQ(seen.statuses, "IXI");
  const Seen large = run({.texts = {"SELECT repeat('x', 1000000)"}, .describe = FanRequest::Describe::kNo});
  EXPECT_EQ(large.client.size(), 3u * 1'000'003 + 2);
  EXPECT_EQ(large.statuses, "III");
}

TEST_F(FanOut, NoticesPassAndThoseOfCopiesOnce) {
  const std::string text = "DROP TABLE IF EXISTS nothing_here";
  const std::string notice = "N(00000 table \"nothing_here\" does not exist, skipping)";
  EXPECT_EQ(run({.texts = {text}, .merge = {.kind = Merge::Kind::kOne}}).client, notice);
  EXPECT_EQ(run({.texts = {text}}).client, notice + " " + notice + " " + notice);
}

}  // namespace
}  // namespace kintsugi::executor
