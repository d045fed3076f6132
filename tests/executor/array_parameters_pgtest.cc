// Rows that go to PostgreSQL as arrays come out of it as they went in: values, NULLs, types, lengths and
// collations.
#include "executor/array_parameters.h"

#include "executor/fan.h"
#include "tests/executor/shards.h"

namespace kintsugi::executor {
namespace {

struct Case {
  std::string select;                 // of the second shard
  std::vector<std::int16_t> formats;  // asked for
  std::string over;                   // the final statement, over r
  std::string name{};                 // of the type that is not built in
};

io::Task<std::string> ask(io::Waiter* waiter, Backend* backend, std::string text,
                          std::vector<std::uint32_t> types, wire::BindValues bind, std::string* description) {
  Outbox client;
  FanRequest request;
  request.branches.push_back({backend, std::move(text), {}});
  request.parameter_types = std::move(types);
  request.bind = std::move(bind);
  request.client = &client;
  request.waiter = waiter;
  request.deadline = patience();
  Fan fan(std::move(request));
  auto running = fan.advance();
  const FanStep step = co_await std::move(running);
  if (step.kind == FanStep::kFailed) co_return step.error;
  *description = fan.description();
  co_return std::string(client.compose());
}

struct Answer {
  std::string direct, through;
};

io::Task<Answer> play(io::Waiter* waiter, const Case* the) {
  auto linking = link_up(waiter);
  Links links = co_await std::move(linking);
  Answer answer;
  std::string description, shown;
  auto direct = ask(waiter, links[1], "WITH r AS (" + the->select + ") " + the->over, {}, {}, &shown);
  answer.direct = trace(co_await std::move(direct));
  auto types_of = [](const std::string& body) {
    std::string text;
    const auto columns = wire::read_row_description(body);
    for (const auto& each : *columns)
      text += " " + std::string(each.name) + ":" + std::to_string(each.type_oid) + "/" +
              std::to_string(each.type_modifier);
    return text;
  };
  answer.direct += types_of(shown);
  wire::BindValues partial;
  partial.result_formats = the->formats;
  auto reading = ask(waiter, links[1], the->select, {}, partial, &description);
  const std::string rows = co_await std::move(reading);
  std::vector<ArrayColumn> columns;
  std::vector<std::string> names;
  const auto described = wire::read_row_description(description);
  for (std::size_t i = 0; i < described->size(); ++i) {
    columns.push_back(array_column((*described)[i]));
    columns.back().binary = the->formats[i] != 0;  // a statement's description says nothing of formats
    if (columns.back().array == 0) columns.back().name = the->name;
    names.emplace_back((*described)[i].name);
    EXPECT_TRUE(has_known_modifier(columns.back()));
  }
  std::string others;
  const auto arrays = arrays_of(rows, columns, others);
  EXPECT_TRUE(arrays) << arrays.error().message;
  EXPECT_EQ(others, "");
  wire::BindValues last;
  std::vector<std::uint32_t> types;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    types.push_back(parameter_type(columns[i]));
    last.values.push_back({.binary = true, .bytes = (*arrays)[i]});
  }
  auto finishing = ask(waiter, links[1], relation_of_arrays("r", names, the->select, columns, 1) + the->over,
                       types, last, &shown);
  answer.through = trace(co_await std::move(finishing)) + types_of(shown);
  co_return answer;
}

class ArrayParameters : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Shards::get().sql(
        "CREATE TYPE colour AS ENUM ('red', 'green', 'not, \"so\" {simple}\\');"
        "CREATE TABLE paints (c colour, v varchar(7), b char(4), n numeric(10,2), t text COLLATE \"C\");"
        "INSERT INTO paints VALUES ('green', 'ab', 'x', 1.5, 'a'), ('not, \"so\" {simple}\\', '', NULL, NULL, "
        "'B'),"
        " ('red', NULL, 'yy', 2.25, '')");
  }
};

void same(const Case& the) {
  const Answer answer = act(play, &the);
  EXPECT_EQ(answer.direct, answer.through) << the.select;
  EXPECT_NE(answer.direct, "");
}

TEST_F(ArrayParameters, ValuesOfBuiltInTypesComeBack) {
  const std::string over = "SELECT * FROM r";
  for (const std::int16_t format : {0, 1}) {
    same(
        {"SELECT 1::int2 AS a, 2::int4 AS b, 3::int8 AS c, 1.5::float4 AS d, 'NaN'::float8 AS e, "
         "'Infinity'::numeric AS f",
         std::vector<std::int16_t>(6, format), over});
    same(
        {"SELECT E'a\"\\\\,{}' AS a, ''::text AS b, 'NULL'::text AS c, NULL::text AS d, E'\\\\x00ff'::bytea AS "
         "e, true AS f",
         std::vector<std::int16_t>(6, format), over});
    same(
        {"SELECT '2024-02-29'::date AS a, 'infinity'::timestamptz AS b, '24:00'::time AS c, '1 mon -3 "
         "days'::interval AS d, "
         "'00000000-0000-0000-0000-00000000000a'::uuid AS e, '[1, {\"a\": null}]'::jsonb AS f",
         std::vector<std::int16_t>(6, format), over});
    same({"SELECT g AS a, nullif(g % 3, 0)::numeric / 7 AS b FROM generate_series(1, 500) g",
          {format, format},
          "SELECT count(*), sum(a), sum(b), count(b) FROM r"});
    same({"SELECT 1 AS a WHERE false", {format}, "SELECT count(*), max(a) FROM r"});
  }
}

TEST_F(ArrayParameters, LengthsAndCollationsAreThoseOfTheQuery) {
  for (const std::int16_t format : {0, 1}) {
    const std::vector<std::int16_t> formats(4, format);
    same({"SELECT v AS a, b AS b, n AS c, t AS d FROM paints", formats, "SELECT * FROM r ORDER BY d"});
    same(
        {"SELECT '2024-01-01 10:00:00.123'::timestamp(1) AS a, '10:00:00.55'::time(1) AS b, 'x'::varchar(3) AS "
         "c, "
         "1::numeric(5,-2) AS d",
         formats, "SELECT * FROM r"});
  }
  same({"SELECT x AS a FROM (VALUES ('a'), ('B'), ('c')) AS v (x)",
        {1},
        "SELECT a FROM r ORDER BY a COLLATE \"C\""});
}

TEST_F(ArrayParameters, TypesOfUsersGoAsText) {
  same({"SELECT c AS a, n AS b FROM paints",
        {0, 1},
        "SELECT a, sum(b) FROM r GROUP BY a ORDER BY a DESC",
        "colour"});
}

TEST_F(ArrayParameters, WhatIsNoRowIsHandedOn) {
  std::string messages, others;
  wire::append_notice(messages, {.severity = "NOTICE", .sqlstate = "00000", .message = "hello"});
  const std::string notice = messages;
  const std::vector<std::optional<std::string_view>> values{"7"};
  wire::append_data_row(messages, values);
  const auto arrays = arrays_of(messages, {{.type = 23, .array = 1007}}, others);
  ASSERT_TRUE(arrays);
  EXPECT_EQ(arrays->at(0), std::string("\0\0\0\1\0\0\0\0\0\0\0\x19\0\0\0\1\0\0\0\1\0\0\0\1"
                                       "7",
                                       25));
  EXPECT_EQ(others, notice);
  EXPECT_FALSE(arrays_of(messages, {{.type = 23}, {.type = 23}}, others));
}

}  // namespace
}  // namespace kintsugi::executor
