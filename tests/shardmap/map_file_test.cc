#include "shardmap/map_file.h"

#include <gtest/gtest.h>

#include <random>

namespace kintsugi::shardmap {
namespace {

Bound bound(const std::string& text) {
  return {BoundColumn::value(text)};
}

MapPtr varied_map() {
  MapEdit edit{edit::CreateShard{"s1", "host=one password='x y'", "11111111-1111-1111-1111-111111111111",
                                 ShardState::kOnline},
               edit::CreateShard{"s2", "host=two", "", ShardState::kOnline},
               edit::CreateShard{"s3", "host=three", "", ShardState::kOnline}, edit::DropShard{"s3"},
               edit::SetHome{"s2"}};
  auto& ops = edit.operations;
  ops.emplace_back(edit::CreateMap{"pairs", MapKind::kRange, {KeyType::kText, KeyType::kTimestamptz}});
  ops.emplace_back(edit::CreateShardlet{"pairs",
                                        "p1",
                                        {BoundColumn::min(), BoundColumn::min()},
                                        {BoundColumn::value("MAXVALUE"), BoundColumn::max()},
                                        {},
                                        "s1",
                                        ShardletState::kReadOnly});
  ops.emplace_back(edit::CreateShardlet{"pairs",
                                        "p\"2\n",
                                        {BoundColumn::value("\xc3\xa9"), BoundColumn::value("-infinity")},
                                        {BoundColumn::max(), BoundColumn::max()},
                                        {},
                                        "s2",
                                        ShardletState::kOffline});
  ops.emplace_back(edit::CreateMap{"numbers", MapKind::kList, {KeyType::kNumeric}});
  std::mt19937_64 random(5);
  for (int i = 0; i < 900; ++i) {
    ops.emplace_back(edit::CreateShardlet{"numbers",
                                          "n" + std::to_string(i),
                                          {},
                                          {},
                                          {{std::to_string(i) + "." + std::to_string(random() % 1000)},
                                           {"-" + std::to_string(i + 1000) + "e" + std::to_string(i % 3)}},
                                          i % 2 == 0 ? "s1" : "s2",
                                          ShardletState::kOnline});
  }
  ops.emplace_back(edit::CreateMap{"hashes", MapKind::kHash, {KeyType::kUuid}});
  ops.emplace_back(
      edit::CreateShardlet{"hashes", "h", {BoundColumn::min()}, bound("-5"), {}, "s1", ShardletState::kHeld});
  ops.emplace_back(edit::PutTable{Table{"public", "Orders", TableKind::kSharded, "hashes", {"user id"}}});
  ops.emplace_back(edit::PutTable{Table{"app", "plans", TableKind::kReplicated, "", {}}});
  ops.emplace_back(edit::HideRange{"h", "s2", "7"});
  ops.emplace_back(edit::HideRange{"n1", "s1", "8"});
  ops.emplace_back(edit::AlterShard{"s2", {}, {}, {}, ShardState::kDraining});
  auto map = apply(*ShardMap::empty("aaaaaaaa-0000-0000-0000-000000000000"), edit);
  if (!map) throw std::runtime_error(map.error().to_string());
  return *map;
}

std::string problem(const std::string& text) {
  const auto map = import_map(text);
  return map ? "" : map.error().message;
}

}  // namespace

TEST(MapFile, RoundTripIsExact) {
  const MapPtr map = varied_map();
  const std::string text = export_map(*map);
  const auto back = import_map(text);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(export_map(**back), text);
  EXPECT_EQ((*back)->epoch(), map->epoch());
  EXPECT_EQ((*back)->next_shard(), 4U);
  EXPECT_EQ((*back)->mapping("numbers")->shardlet_count(), 900U);
  EXPECT_EQ((*back)->mapping("numbers")->entry_count(), 1800U);
  EXPECT_EQ((*back)->shardlet("n7"), map->shardlet("n7"));
  EXPECT_EQ((*back)->mapping("hashes")->hidden(), map->mapping("hashes")->hidden());
  // It goes on from there as the first would have.
  const MapEdit next{edit::DropShardlet{"n7"}, edit::CreateShard{"s4", "host=four", "", ShardState::kOnline}};
  EXPECT_EQ(export_map(**apply(**back, next)), export_map(**apply(*map, next)));
}

TEST(MapFile, TheMakingEditMakesTheSameMap) {
  const MapPtr map = varied_map();
  const auto edit = edit_that_makes(*map);
  ASSERT_TRUE(edit);
  const auto made = apply(*ShardMap::empty(map->store_id()), *edit);
  ASSERT_TRUE(made) << made.error().to_string();
  for (const Mapping* mapping : map->mappings()) {
    for (const Shardlet& shardlet : map->shardlets_of(*mapping)) {
      EXPECT_EQ((*made)->shardlet(shardlet.name)->low, shardlet.low);
      EXPECT_EQ((*made)->shardlet(shardlet.name)->values, shardlet.values);
    }
  }
  EXPECT_EQ((*made)->home_shard()->name, "s2");
  EXPECT_EQ((*made)->shard_named("s2")->state, ShardState::kDraining);
}

TEST(MapFile, MistakesNameTheLine) {
  const std::string head = R"({"kintsugi_map":1,"store":"x","epoch":3,"home":"s1","next_shard":2})"
                           "\n"
                           R"({"shard":"s1","id":1,"dsn":"d","identity":"","state":"online"})"
                           "\n"
                           R"({"map":"m","kind":"range","key":["bigint"]})"
                           "\n";
  EXPECT_EQ(problem(""), "the file is empty");
  EXPECT_EQ(problem("{\"kintsugi_map\":2,\"store\":\"x\",\"epoch\":3,\"home\":\"\",\"next_shard\":2}"),
            "line 1: the file has format 2, which is not known");
  EXPECT_EQ(problem(head + R"({"shardlet":"a","from":["1"],"to":["x"],"shard":"s1","state":"online"})"),
            "line 4: invalid input syntax for type bigint: \"x\"");
  EXPECT_EQ(problem(head + R"({"shardlet":"a","from":["1"],"to":["2"],"shard":"s9","state":"online"})"),
            "line 4: shard \"s9\" is not in the file");
  EXPECT_EQ(problem(head + R"({"shardlet":"a","to":["2"],"shard":"s1","state":"online"})"),
            "line 4: the line has no \"from\"");
  EXPECT_EQ(problem(head + R"({"shardlet":"a","from":["1"],"to":["3"],"shard":"s1","state":"online"})"
                           "\n"
                           R"({"shardlet":"b","from":["2"],"to":["4"],"shard":"s1","state":"online"})"),
            "shardlet \"b\" would overlap shardlet \"a\"");
  EXPECT_EQ(problem(head + "[]"), "line 4: the line is neither a shard, a map, a shardlet nor a table");
}

}  // namespace kintsugi::shardmap
