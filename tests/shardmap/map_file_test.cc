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

// Values of every type that a text form could spoil, in the order of their keys.
const std::vector<std::pair<KeyType, std::vector<std::string>>>& awkward_values() {
  static const std::vector<std::pair<KeyType, std::vector<std::string>>> all = {
      {KeyType::kSmallint, {"-32768", "-1", "0", "32767"}},
      {KeyType::kInt, {"-2147483648", "0", "2147483647"}},
      {KeyType::kBigint,
       {"-9223372036854775808", "-9007199254740993", "0", "9007199254740993", "9223372036854775807"}},
      {KeyType::kNumeric,
       {"-Infinity", "-1e200", "-0.00000000000000000000000000000000000001", "0", "1e-300", "0.1",
        "9007199254740993.000000000000000000001", "123456789012345678901234567890123456789", "Infinity",
        "NaN"}},
      {KeyType::kUuid,
       {"00000000-0000-0000-0000-000000000000", "0a0b0c0d-0000-4000-8000-00000000000f",
        "ffffffff-ffff-ffff-ffff-ffffffffffff"}},
      {KeyType::kText,
       {"", "\x01\x1f", "\t\r\n", " ", "\"'; DROP TABLE x; --", "MAXVALUE", "MINVALUE", "NULL", "[\"a\"]",
        "\\x00\\", "null", "{\"bound\":\"MINVALUE\"}", std::string(3000, '~'), "\x7f", "\xc3\xa9",
        "\xe2\x80\xa8", "\xef\xbf\xbf", "\xf0\x9f\x98\x80"}},
      {KeyType::kBytea, {"\\x", "\\x00", "\\x0000", "\\x00ff", "\\x22", "\\xff", "\\xff00"}},
      {KeyType::kDate,
       {"-infinity", "4713-01-01 BC", "0001-12-31 BC", "0001-01-01", "2000-02-29", "5874897-12-31",
        "infinity"}},
      {KeyType::kTimestamp,
       {"-infinity", "4713-01-01 00:00:00 BC", "1999-12-31 23:59:59.999999", "2000-01-01 00:00:00",
        "294276-12-31 23:59:59.999999", "infinity"}},
      {KeyType::kTimestamptz,
       {"-infinity", "4713-01-02 00:00:00+00 BC", "2025-10-26 02:30:00+02", "2025-10-26 02:30:00+01",
        "294276-12-31 23:59:59.999999+00", "infinity"}},
      {KeyType::kBoolean, {"false", "true"}}};
  return all;
}

// What is between MINVALUE and MAXVALUE in a RANGE map, each value of a LIST map, alone and beside another
// column.
TEST(MapFile, RoundTripIsExactForAwkwardValuesOfEveryType) {
  MapEdit edit{edit::CreateShard{"s\"1\\", "host=one password='\\'x\\\\y\\''", "", ShardState::kOnline}};
  auto& ops = edit.operations;
  int names = 0;
  const auto name = [&names] { return "shardlet \"\\\n\xc3\xa9 " + std::to_string(++names); };
  for (const auto& [type, values] : awkward_values()) {
    const std::string kind(name_of(type));
    ops.emplace_back(edit::CreateMap{"list of " + kind, MapKind::kList, {type}});
    ops.emplace_back(edit::CreateMap{"pairs of " + kind, MapKind::kList, {type, KeyType::kText}});
    for (const std::string& value : values) {
      ops.emplace_back(
          edit::CreateShardlet{"list of " + kind, name(), {}, {}, {{value}}, "s\"1\\", ShardletState::kOnline});
      ops.emplace_back(edit::CreateShardlet{"pairs of " + kind,
                                            name(),
                                            {},
                                            {},
                                            {{value, value}, {value, value + "\"MINVALUE"}},
                                            "s\"1\\",
                                            ShardletState::kOffline});
    }
    if (type == KeyType::kBoolean) continue;
    ops.emplace_back(edit::CreateMap{"range of " + kind, MapKind::kRange, {type}});
    ops.emplace_back(edit::CreateMap{"tuples of " + kind, MapKind::kRange, {type, KeyType::kBytea}});
    for (std::size_t i = 0; i <= values.size(); ++i) {
      const BoundColumn low = i == 0 ? BoundColumn::min() : BoundColumn::value(values[i - 1]);
      const BoundColumn high = i == values.size() ? BoundColumn::max() : BoundColumn::value(values[i]);
      ops.emplace_back(edit::CreateShardlet{
          "range of " + kind, name(), {low}, {high}, {}, "s\"1\\", ShardletState::kReadOnly});
      // What follows MINVALUE is MINVALUE, and of MAXVALUE likewise.
      const BoundColumn second = i % 2 == 0 ? BoundColumn::min() : BoundColumn::value("\\x00");
      ops.emplace_back(edit::CreateShardlet{"tuples of " + kind,
                                            name(),
                                            {low, i == 0 ? BoundColumn::min() : BoundColumn::max()},
                                            {high, i == values.size() ? BoundColumn::max() : second},
                                            {},
                                            "s\"1\\",
                                            ShardletState::kOnline});
    }
  }
  const auto map = apply(*ShardMap::empty("aaaaaaaa-0000-0000-0000-000000000000"), edit);
  ASSERT_TRUE(map) << map.error().to_string();
  const std::string text = export_map(**map);
  const auto back = import_map(text);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(export_map(**back), text);
  const auto edit_of_it = edit_that_makes(**back);
  ASSERT_TRUE(edit_of_it);
  const auto read = map_edit_from_json(to_json(*edit_of_it));  // as the store keeps it
  ASSERT_TRUE(read) << read.error().to_string();
  const auto again = apply(*ShardMap::empty("aaaaaaaa-0000-0000-0000-000000000000"), *read);
  ASSERT_TRUE(again) << again.error().to_string();
  std::size_t compared = 0;
  for (const Mapping* mapping : (*map)->mappings()) {
    for (const Shardlet& shardlet : (*map)->shardlets_of(*mapping)) {
      for (const MapPtr& other : {*back, *again})
        EXPECT_EQ(other->shardlet(shardlet.name), shardlet) << shardlet.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, static_cast<std::size_t>(names));
  // What PostgreSQL would not store as text is no key, so that a file is always text.
  const auto broken = apply(
      **map,
      {edit::CreateShardlet{"list of text", "broken", {}, {}, {{"\xff"}}, "s\"1\\", ShardletState::kOnline}});
  EXPECT_FALSE(broken);
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
