// COPY into three shards and out of them, against what one PostgreSQL makes of the same bytes.
#include "executor/control_round.h"
#include "executor/copy_in.h"
#include "executor/copy_out.h"
#include "tests/executor/copy_map.h"
#include "tests/executor/shards.h"

namespace kintsugi::executor {
namespace {

using planner::CopyIn;

class Copy : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Shards::get().sql("DROP TABLE IF EXISTS t; CREATE TABLE t (id int CHECK (id <> 13), name text)");
  }
  void SetUp() override { Shards::get().sql("TRUNCATE t"); }
};

struct In {
  std::string text;
  CopyIn plan;
  std::vector<std::string> pieces;
  std::string fail_with{};
};
struct Seen {
  std::string response, outcome, statuses, client;
  std::vector<std::string> messages;  // of copied data
  int early = -1;                     // after how many pieces it had failed
};

io::Task<Seen> play_in(io::Waiter* waiter, const In* in) {
  auto linking = link_up(waiter);
  Links links = co_await std::move(linking);
  std::vector<ControlOrder> orders;
  for (auto& backend : links.backends) orders.push_back({backend.get(), "BEGIN"});
  auto beginning = run_on_all(orders, waiter, patience());
  (void)co_await std::move(beginning);
  CopyInRequest request;
  request.plan = in->plan;
  for (auto& backend : links.backends) request.backends.push_back(backend.get());
  request.text = in->text;
  request.map = copy_map();
  request.waiter = waiter;
  request.deadline = patience();
  CopyInRun copy(std::move(request));
  Seen seen;
  auto starting = copy.start();
  FanStep step = co_await std::move(starting);
  if (step.kind == FanStep::kSuspended) {
    seen.response = trace(copy.response());
    for (const std::string& piece : in->pieces) {
      copy.feed(piece);
      if (copy.full()) {
        auto making = copy.make_room(nullptr);
        co_await std::move(making);
      }
      if (copy.failed()) {
        seen.early = static_cast<int>(&piece - in->pieces.data());
        break;
      }
    }
    if (in->fail_with.empty()) {
      auto finishing = copy.finish();
      step = co_await std::move(finishing);
    } else {
      auto giving_up = copy.give_up(in->fail_with);
      step = co_await std::move(giving_up);
    }
  }
  seen.outcome = step.kind == FanStep::kComplete ? step.tag : trace(step.error);
  for (auto& backend : links.backends)
    seen.statuses += backend->broken ? 'X' : static_cast<char>(backend->status);
  for (auto& order : orders) order.sql = "COMMIT";
  auto committing = run_on_all(std::move(orders), waiter, patience());
  (void)co_await std::move(committing);
  co_return seen;
}

Seen copy_in(const In& in) {
  return act(play_in, &in);
}

std::string rows() {
  std::string all;
  for (int i = 0; i < kShards; ++i)
    all += (i > 0 ? " " : "") + Shards::get().on(i, "SELECT count(*) || ':' || coalesce(sum(id), 0) FROM t");
  return all;
}

CopyIn text_plan() {
  CopyIn plan;
  plan.map = "ranges";
  plan.key_columns = {0};
  plan.shards = {1, 2, 3};
  return plan;
}

TEST_F(Copy, RowsArriveWhereTheyBelong) {
  const Seen seen =
      copy_in({.text = "COPY t FROM STDIN", .plan = text_plan(), .pieces = {"1\ta\n15", "0\tb\n2\tc", ""}});
  EXPECT_EQ(seen.response, "G");
  EXPECT_EQ(seen.outcome, "COPY 3");
  EXPECT_EQ(seen.statuses, "TTT");
  EXPECT_EQ(rows(), "2:3 1:150 0:0");
}

TEST_F(Copy, CsvWithAHeaderAndReplicatedRows) {
  CopyIn plan = text_plan();
  plan.format = CopyIn::Format::kCsv;
  plan.delimiter = ',';
  plan.null_text = "";
  plan.header = true;
  EXPECT_EQ(copy_in({.text = "COPY t FROM STDIN (FORMAT csv, HEADER match)",
                     .plan = plan,
                     .pieces = {"id,name\n1,\"a\nb\"\n", "250,\n"}})
                .outcome,
            "COPY 2");
  EXPECT_EQ(rows(), "1:1 0:0 1:250");
  CopyIn all = text_plan();
  all.map = "";
  EXPECT_EQ(copy_in({.text = "COPY t FROM STDIN", .plan = all, .pieces = {"7\tx\n8\ty\n"}}).outcome, "COPY 2");
  EXPECT_EQ(rows(), "3:16 2:15 3:265");
}

TEST_F(Copy, ErrorsOfShardsAndOfKeysFailItEverywhere) {
  const Seen check = copy_in({.text = "COPY t FROM STDIN", .plan = text_plan(), .pieces = {"150\tb\n13\tx\n"}});
  EXPECT_EQ(check.outcome.substr(0, 9), "E(23514 n");
  EXPECT_NE(check.outcome.find("shard s1"), std::string::npos);
  EXPECT_EQ(check.statuses[0], 'E');
  EXPECT_EQ(rows().substr(0, 3), "0:0");
  Shards::get().sql("TRUNCATE t");
  const Seen key =
      copy_in({.text = "COPY t FROM STDIN", .plan = text_plan(), .pieces = {"150\tb\n", "999\tx\n", "1\tx\n"}});
  EXPECT_EQ(key.outcome, "E(KG001 no shardlet of map \"ranges\" holds the key (999))");
  EXPECT_EQ(key.early, 1);
  EXPECT_EQ(key.statuses, "EEE");
  EXPECT_EQ(rows(), "0:0 0:0 0:0");
  const Seen client =
      copy_in({.text = "COPY t FROM STDIN", .plan = text_plan(), .pieces = {"1\ta\n"}, .fail_with = "no more"});
  EXPECT_EQ(client.outcome.substr(0, 48), "E(57014 COPY from stdin failed: no more @ COPY t");
  EXPECT_EQ(client.statuses, "EEE");
  const Seen wrong = copy_in({.text = "COPY nothing FROM STDIN", .plan = text_plan(), .pieces = {}});
  EXPECT_EQ(wrong.outcome.substr(0, 8), "E(42P01 ");
  EXPECT_EQ(wrong.statuses, "EEE");
}

TEST_F(Copy, ManyRowsUnderBackPressure) {
  In in{.text = "COPY t FROM STDIN", .plan = text_plan(), .pieces = {}};
  for (int i = 0; i < 200'000; ++i) {
    if (i % 1000 == 0) in.pieces.emplace_back();
    in.pieces.back() += std::to_string(i % 3 * 100 + 20) + "\t" + std::string(60, 'x') + "\n";
  }
  EXPECT_EQ(copy_in(in).outcome, "COPY 200000");
  EXPECT_EQ(rows(), "66667:1333340 66667:8000040 66666:14666520");
}

// Its notices have to be taken, or it takes no rows.
TEST_F(Copy, AShardThatTalksMuchIsListenedTo) {
  Shards::get().on(
      0,
      "CREATE OR REPLACE FUNCTION talk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', "
      "repeat('x', 500); RETURN NEW; END $$; CREATE TRIGGER talk BEFORE INSERT ON t FOR EACH ROW EXECUTE "
      "FUNCTION talk()");
  In in{.text = "COPY t FROM STDIN", .plan = text_plan(), .pieces = {""}};
  for (int i = 0; i < 40'000; ++i) in.pieces.back() += "1\tx\n";
  EXPECT_EQ(copy_in(in).outcome, "COPY 40000");
  Shards::get().on(0, "DROP TRIGGER talk ON t");
}

struct Out {
  std::vector<std::string> texts;
  bool header = false, binary = false;
};

io::Task<Seen> play_out(io::Waiter* waiter, const Out* out) {
  auto linking = link_up(waiter);
  Links links = co_await std::move(linking);
  Outbox client;
  CopyOutRequest request;
  for (int i = 0; i < kShards; ++i) {
    const std::size_t at = out->texts.size() == 1 ? 0 : static_cast<std::size_t>(i);
    request.branches.push_back({links[i], out->texts[at], {}});
  }
  request.header = out->header;
  request.binary = out->binary;
  request.client = &client;
  request.waiter = waiter;
  request.deadline = patience();
  auto copying = copy_out(std::move(request));
  const FanStep step = co_await std::move(copying);
  Seen seen;
  seen.outcome = step.kind == FanStep::kComplete ? step.tag : trace(step.error);
  std::string_view bytes = client.compose();
  while (!bytes.empty()) {
    const wire::Frame frame = **wire::peek_frame(bytes, UINT32_MAX);
    if (frame.type == 'd') {
      seen.client += frame.body;
      seen.messages.emplace_back(frame.body);
    } else {
      seen.response += frame.type;
    }
    bytes.remove_prefix(frame.size());
  }
  client.clear();
  for (auto& backend : links.backends)
    seen.statuses += backend->broken ? 'X' : static_cast<char>(backend->status);
  co_return seen;
}

Seen copy_out_of(const Out& out) {
  return act(play_out, &out);
}

TEST_F(Copy, DataOfAllShardsHaveOneHeaderAndOneEnd) {
  Shards::get().sql("INSERT INTO t VALUES ($S, 'n$S')");
  const Seen text = copy_out_of({.texts = {"COPY t TO STDOUT"}});
  EXPECT_EQ(text.response, "Hc");
  EXPECT_EQ(text.client.size(), 15u);
  EXPECT_EQ(text.outcome, "COPY 3");
  EXPECT_EQ(text.statuses, "III");
  const Seen csv = copy_out_of({.texts = {"COPY t TO STDOUT (FORMAT csv, HEADER)"}, .header = true});
  EXPECT_EQ(csv.client.substr(0, 8), "id,name\n");
  EXPECT_EQ(csv.client.find("id,name", 1), std::string::npos);
  EXPECT_EQ(csv.client.size(), 8u + 15u);
  Shards::get().on(1, "DELETE FROM t");
  const Seen binary = copy_out_of({.texts = {"COPY t TO STDOUT (FORMAT binary)"}, .binary = true});
  EXPECT_EQ(binary.outcome, "COPY 2");
  // A message for each row, the header with the first, as PostgreSQL has it: psycopg takes a message for a row.
  ASSERT_EQ(binary.messages.size(), 3u);
  EXPECT_TRUE(binary.messages[0].starts_with("PGCOPY\n"));
  EXPECT_EQ(binary.messages[0].size(), 19 + binary.messages[1].size());
  EXPECT_EQ(binary.messages[2], "\xff\xff");
  const Seen none =
      copy_out_of({.texts = {"COPY (SELECT 1 WHERE false) TO STDOUT (FORMAT binary)"}, .binary = true});
  ASSERT_EQ(none.messages.size(), 1u);
  EXPECT_EQ(none.messages[0].size(), 21u);
  // It can be read again.
  CopyIn plan = text_plan();
  plan.format = CopyIn::Format::kBinary;
  EXPECT_EQ(
      copy_in({.text = "COPY t FROM STDIN (FORMAT binary)", .plan = plan, .pieces = {binary.client}}).outcome,
      "COPY 2");
  EXPECT_EQ(rows(), "3:5 0:0 1:3");
}

TEST_F(Copy, AnErrorWhileCopyingOutIsTheStatements) {
  const Seen seen =
      copy_out_of({.texts = {"COPY t TO STDOUT", "COPY (SELECT 1/0, 'x') TO STDOUT", "COPY t TO STDOUT"}});
  EXPECT_EQ(seen.outcome, "E(22012 division by zero @ shard s2)");
  EXPECT_EQ(seen.statuses, "III");
  const Seen differ =
      copy_out_of({.texts = {"COPY t TO STDOUT", "COPY (SELECT 1) TO STDOUT", "COPY t TO STDOUT"}});
  EXPECT_EQ(differ.outcome.substr(0, 52), "E(55000 the schemas of the shards s1 and s2 differ: ");
  EXPECT_EQ(differ.statuses, "III");
}

}  // namespace
}  // namespace kintsugi::executor
