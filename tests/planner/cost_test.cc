// Planning a statement that goes to one shard allocates nothing, and costs the same for a map of any size.
#include <gtest/gtest.h>

#include "tests/allocations.h"
#include "tests/planner/fixture.h"

namespace kintsugi::planner::testing {
namespace {

std::size_t allocations_of(std::string_view text, std::vector<Parameter> parameters = {}) {
  const World& world = golden_world();
  Planning planning(world);
  const auto analysis = planning.analyse_text(text);
  EXPECT_TRUE(analysis) << text;
  const Values values{&planning.normal, 0, parameters};
  (void)make_plan(**analysis, values, *world.map);  // buffers grow
  const std::size_t before = kintsugi::testing::allocations;
  const auto plan = make_plan(**analysis, values, *world.map);
  const std::size_t after = kintsugi::testing::allocations;
  EXPECT_TRUE(plan && std::holds_alternative<Route>(*plan)) << text;
  return after - before;
}

TEST(PlanningCost, APointRouteAllocatesNothing) {
  EXPECT_EQ(allocations_of("SELECT * FROM orders WHERE tenant_id = 42"), 0U);
  EXPECT_EQ(allocations_of("SELECT * FROM customers WHERE region = 'de'"), 0U);
  EXPECT_EQ(allocations_of("SELECT * FROM accounts WHERE id = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'"), 0U);
  EXPECT_EQ(allocations_of("SELECT * FROM cells WHERE x = 3 AND y = 'a'"), 0U);
  EXPECT_EQ(allocations_of("UPDATE orders SET status = 'x' WHERE tenant_id = 42 AND id = 7"), 0U);
  EXPECT_EQ(allocations_of("INSERT INTO orders (tenant_id, id) VALUES (42, 7)"), 0U);
  EXPECT_EQ(allocations_of("SELECT * FROM orders WHERE tenant_id = $1", {{20, false, false, "42"}}), 0U);
  EXPECT_EQ(allocations_of("SELECT * FROM orders WHERE tenant_id = $1",
                           {{20, true, false, std::string_view("\0\0\0\0\0\0\0\x2a", 8)}}),
            0U);
  EXPECT_EQ(
      allocations_of("SELECT * FROM orders o JOIN items i ON o.tenant_id = i.tenant_id WHERE o.tenant_id = 42"),
      0U);
  EXPECT_EQ(allocations_of("SELECT 1"), 0U);
}

// The same key in every form in which drivers send it.
TEST(Parameters, EveryFormOfAKeyFindsItsShardlet) {
  using namespace std::string_view_literals;
  const auto shardlet = [](std::string_view text, Parameter parameter) -> std::string {
    Planning planning(golden_world());
    planning.parameters = {parameter};
    const auto plan = planning.plan(text);
    if (!plan) return plan.error().message;
    const auto* route = std::get_if<Route>(&*plan);
    return route == nullptr ? "several" : std::string(route->shardlet);
  };
  const std::string_view by_bigint = "SELECT * FROM orders WHERE tenant_id = $1";
  EXPECT_EQ(shardlet(by_bigint, {20, false, false, "150"}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {20, true, false, "\0\0\0\0\0\0\0\x96"sv}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {23, false, false, "150"}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {23, true, false, "\0\0\0\x96"sv}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {21, true, false, "\0\x96"sv}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {1700, false, false, "150.0"}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {1700, true, false, "\0\1\0\0\0\0\0\0\0\x96"sv}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {705, false, false, " 150 "}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {0, false, false, "150"}), "t2");
  EXPECT_EQ(shardlet(by_bigint, {701, false, false, "150"}), "several");
  EXPECT_EQ(shardlet(by_bigint, {20, false, false, "x"}), "several");
  const std::string_view by_text = "SELECT * FROM customers WHERE region = $1";
  for (const std::uint32_t type : {0U, 25U, 705U, 1043U}) {
    EXPECT_EQ(shardlet(by_text, {type, false, false, "us"}), "us");
    if (type == 25 || type == 1043) {
      EXPECT_EQ(shardlet(by_text, {type, true, false, "us"}), "us");
    }
  }
  const std::string_view by_uuid = "SELECT * FROM accounts WHERE id = $1";
  const std::string found = shardlet(by_uuid, {2950, false, false, "6ba7b810-9dad-11d1-80b4-00c04fd430c8"});
  EXPECT_EQ(found, "u2");
  EXPECT_EQ(shardlet(by_uuid,
                     {2950, true, false, "\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\0\xc0\x4f\xd4\x30\xc8"sv}),
            found);
  const std::string_view by_date = "SELECT * FROM events WHERE day = $1";
  EXPECT_EQ(shardlet(by_date, {1082, false, false, "2024-03-01"}), "new");
  EXPECT_EQ(shardlet(by_date, {1082, true, false, "\0\0\0\0"sv}), "old");  // 2000-01-01
}

// One analysis serves every text of its normal form.
TEST(Analysis, HoldsForOtherTextsOfTheSameForm) {
  const World& world = golden_world();
  Planning planning(world);
  const auto analysis = planning.analyse_text(
      "SELECT id FROM orders WHERE id IN (1, 2) AND tenant_id = 5 ORDER BY id LIMIT 3 OFFSET 1");
  ASSERT_TRUE(analysis);
  const std::string other =
      "select id  from orders where id in (1, 2, 3, 4, 5) AND tenant_id = 150 ORDER BY id LIMIT 4 OFFSET 1";
  parser::Normaliser normal;
  ASSERT_TRUE(normal.read(other, {0, static_cast<std::uint32_t>(other.size())}));
  ASSERT_EQ(normal.key(), planning.normal.key());
  const auto plan = make_plan(**analysis, {&normal, 0, {}}, *world.map);
  ASSERT_TRUE(plan);
  EXPECT_EQ(std::get<Route>(*plan).shardlet, "t2");

  const auto wide =
      planning.analyse_text("SELECT id FROM orders WHERE tenant_id IN (1, 150) ORDER BY id LIMIT 3 OFFSET 1");
  ASSERT_TRUE(wide);
  const std::string wider =
      "SELECT /* here */ id FROM orders WHERE tenant_id IN (1,  150, 350) ORDER BY id LIMIT 4  OFFSET 10";
  ASSERT_TRUE(normal.read(wider, {0, static_cast<std::uint32_t>(wider.size())}));
  ASSERT_EQ(normal.key(), planning.normal.key());
  const auto fan = make_plan(**wide, {&normal, 0, {}}, *world.map);
  ASSERT_TRUE(fan);
  const auto& tasks = std::get<FanOut>(*fan).tasks;
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].text,
            "SELECT /* here */ id FROM orders WHERE tenant_id IN (1,  150, 350) ORDER BY id LIMIT 14");
  EXPECT_EQ(std::get<FanOut>(*fan).merge.limit, 4U);
  EXPECT_EQ(std::get<FanOut>(*fan).merge.offset, 10U);

  // Rows of an INSERT, more than were analysed.
  const auto insert = planning.analyse_text("INSERT INTO orders (id, tenant_id) VALUES (1, 5), (2, 6)");
  ASSERT_TRUE(insert);
  const std::string rows = "INSERT INTO orders (id, tenant_id) VALUES (1, 5), (2, -6), (3, 150), ('4', '350')";
  ASSERT_TRUE(normal.read(rows, {0, static_cast<std::uint32_t>(rows.size())}));
  ASSERT_EQ(normal.key(), planning.normal.key());
  const auto split = make_plan(**insert, {&normal, 0, {}}, *world.map);
  ASSERT_TRUE(split);
  const auto& parts = std::get<FanOut>(*split).tasks;
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].text, "INSERT INTO orders (id, tenant_id) VALUES (1, 5), (2, -6)");
  EXPECT_EQ(parts[2].text, "INSERT INTO orders (id, tenant_id) VALUES ('4', '350')");
}

}  // namespace
}  // namespace kintsugi::planner::testing
