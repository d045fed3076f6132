#include "shardmap/map_edit.h"

#include <gtest/gtest.h>

namespace kintsugi::shardmap {
namespace {

Bound bound(const std::string& text) {
  return {BoundColumn::value(text)};
}

edit::CreateShardlet range(const std::string& map, const std::string& name, Bound low, Bound high,
                           const std::string& shard) {
  return {map, name, std::move(low), std::move(high), {}, shard, ShardletState::kOnline};
}
edit::CreateShardlet list(const std::string& map, const std::string& name,
                          std::vector<std::vector<std::string>> values, const std::string& shard) {
  return {map, name, {}, {}, std::move(values), shard, ShardletState::kOnline};
}

// Two shards, a RANGE, a LIST and a HASH map, and a table of each kind.
MapEdit sample_edit() {
  return {edit::CreateShard{"s1", "host=one", "11111111-1111-1111-1111-111111111111", ShardState::kOnline},
          edit::CreateShard{"s2", "host=two", "", ShardState::kOnline},
          edit::CreateMap{"tenants", MapKind::kRange, {KeyType::kBigint}},
          range("tenants", "a", {BoundColumn::min()}, bound("1000"), "s1"),
          range("tenants", "b", bound("1000"), bound("2000"), "s2"),
          edit::CreateMap{"regions", MapKind::kList, {KeyType::kText}},
          list("regions", "eu", {{"fr"}, {"de"}}, "s2"),
          edit::CreateMap{"users", MapKind::kHash, {KeyType::kUuid, KeyType::kInt}},
          range("users", "u1", {BoundColumn::min()}, bound("0"), "s1"),
          range("users", "u2", bound("0"), {BoundColumn::max()}, "s2"),
          edit::PutTable{Table{"public", "orders", TableKind::kSharded, "tenants", {"tenant_id"}}},
          edit::PutTable{Table{"public", "plans", TableKind::kReplicated, "", {}}},
          edit::PutTable{Table{"public", "notes", TableKind::kHome, "", {}}}};
}

MapPtr sample() {
  auto map = apply(*ShardMap::empty("store"), sample_edit());
  if (!map) throw std::runtime_error(map.error().to_string());
  return *map;
}

std::string refused(const ShardMap& map, const MapEdit& edit) {
  const auto next = apply(map, edit);
  return next ? "accepted" : next.error().sqlstate + " " + next.error().message;
}

std::string name_at(const Mapping& mapping, const std::vector<std::string>& key) {
  const auto found = mapping.find(*encode_key(mapping.key_types(), key));
  return found ? std::string(found->name()) : "";
}

}  // namespace

TEST(MapEdit, MakesAMapThatRoutes) {
  const MapPtr map = sample();
  EXPECT_EQ(map->epoch(), 1U);
  EXPECT_EQ(map->store_id(), "store");
  EXPECT_EQ(map->home_shard()->name, "s1");
  const Mapping& tenants = *map->mapping("tenants");
  EXPECT_EQ(name_at(tenants, {"-9223372036854775808"}), "a");
  EXPECT_EQ(name_at(tenants, {"999"}), "a");
  EXPECT_EQ(name_at(tenants, {"1000"}), "b");
  EXPECT_EQ(name_at(tenants, {"2000"}), "");
  const Mapping& regions = *map->mapping("regions");
  EXPECT_EQ(name_at(regions, {"de"}), "eu");
  EXPECT_EQ(name_at(regions, {"d"}), "");
  const Mapping& users = *map->mapping("users");
  EXPECT_NE(name_at(users, {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "1"}), "");
  EXPECT_EQ(map->shardlet("eu")->values.size(), 2U);
  EXPECT_EQ(map->shardlet("eu")->map, "regions");
  EXPECT_FALSE(map->shardlet("nowhere"));
  EXPECT_EQ(map->table("public", "orders")->key, std::vector<std::string>{"tenant_id"});
  EXPECT_EQ(map->table("public", "other"), nullptr);
  ASSERT_EQ(map->tables_of("tenants").size(), 1U);
}

TEST(MapEdit, RoundTripsAsJson) {
  MapEdit edit = sample_edit();
  edit.operations.insert(
      edit.operations.end(),
      {edit::AlterShard{"s1", "s9", "host=nine", "22222222-2222-2222-2222-222222222222", ShardState::kDraining},
       edit::AlterShard{"s2", {}, {}, {}, {}}, edit::DropShard{"s2"}, edit::SetHome{"s2"},
       edit::DropMap{"tenants"},
       edit::AlterShardlet{"a", "it's \"b\" \\ \xc3\xa4", "s2", ShardletState::kReadOnly},
       edit::AlterShardlet{"a", {}, {}, {}}, edit::DropShardlet{"a"}, edit::DropTable{"public", "orders"},
       edit::HideRange{"a", "s2", "17"}, edit::RevealRanges{"17"}, edit::RaiseEpoch{1234567890123},
       list("pairs", "p", {{"MINVALUE", "1"}, {"", "2"}}, "s1"),
       range("pairs", "q", {BoundColumn::value("MAXVALUE"), BoundColumn::max()},
             {BoundColumn::max(), BoundColumn::max()}, "s1")});
  const std::string json = to_json(edit);
  const auto back = map_edit_from_json(json);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, edit);
  EXPECT_EQ(to_json(*back), json);
}

TEST(MapEdit, AnUnknownThingInJsonIsAnError) {
  EXPECT_EQ(map_edit_from_json("{").error().message, "this is not JSON");
  EXPECT_EQ(map_edit_from_json("{}").error().message, "an edit is not an array of operations");
  EXPECT_EQ(map_edit_from_json(R"([{"do":"fly"}])").error().message, "an operation does the unknown \"fly\"");
  EXPECT_EQ(map_edit_from_json(R"([{"do":"drop map"}])").error().message, "an operation has no \"name\"");
  EXPECT_EQ(map_edit_from_json(R"([{"do":"drop map","name":"a","now":1}])").error().message,
            "an operation has the unknown member \"now\"");
  EXPECT_EQ(map_edit_from_json(R"([{"do":"drop map","name":7}])").error().message,
            "an operation has a \"name\" that is not a string");
  EXPECT_EQ(
      map_edit_from_json(R"([{"do":"create map","name":"m","kind":"tree","key":["int"]}])").error().message,
      "an operation has the unknown kind \"tree\"");
  EXPECT_EQ(
      map_edit_from_json(R"([{"do":"create map","name":"m","kind":"list","key":["json"]}])").error().message,
      "an operation has a bad \"key\": type \"json\" cannot be a sharding key");
}

TEST(MapEdit, EachMistakeHasAClearError) {
  const MapPtr map = sample();
  EXPECT_EQ(refused(*map, {range("tenants", "c", bound("1500"), bound("2500"), "s1")}),
            "42P17 shardlet \"c\" would overlap shardlet \"b\", from (1000) to (2000)");
  EXPECT_EQ(refused(*map, {range("tenants", "c", bound("-5"), {BoundColumn::max()}, "s1")}),
            "42P17 shardlet \"c\" would overlap shardlet \"a\", from (MINVALUE) to (1000)");
  EXPECT_EQ(refused(*map, {list("regions", "all", {{"it"}, {"fr"}}, "s1")}),
            "42P17 shardlet \"all\" would overlap shardlet \"eu\" at ('fr')");
  EXPECT_EQ(refused(*map, {list("regions", "x", {{"it"}, {"it"}}, "s1")}),
            "42P17 shardlet \"x\" names ('it') twice");
  EXPECT_EQ(refused(*map, {range("tenants", "c", bound("9"), bound("9"), "s1")}),
            "42P17 shardlet \"c\" would have no keys: its range goes from (9) to (9)");
  EXPECT_EQ(refused(*map, {range("tenants", "eu", bound("2000"), bound("2001"), "s1")}),
            "42710 shardlet \"eu\" already exists in map \"regions\"");
  EXPECT_EQ(refused(*map, {range("tenants", "c", bound("x"), bound("2001"), "s1")}),
            "22P02 invalid input syntax for type bigint: \"x\"");
  EXPECT_EQ(refused(*map, {range("nomap", "c", bound("1"), bound("2"), "s1")}),
            "42704 shard map \"nomap\" does not exist");
  EXPECT_EQ(refused(*map, {range("tenants", "c", bound("2000"), bound("2001"), "s3")}),
            "42704 shard \"s3\" does not exist");
  EXPECT_EQ(refused(*map, {list("tenants", "c", {{"1"}}, "s1")}),
            "42P17 map \"tenants\" is by RANGE: a shardlet of it has a range, not values");
  EXPECT_EQ(refused(*map, {range("regions", "c", bound("1"), bound("2"), "s1")}),
            "42P17 map \"regions\" is by LIST: a shardlet of it has values, not a range");
  EXPECT_EQ(refused(*map, {edit::DropShard{"s2"}}),
            "2BP01 shard \"s2\" still has shardlets of map \"regions\"");
  EXPECT_EQ(refused(*map, {edit::DropMap{"tenants"}}),
            "2BP01 table public.orders is sharded by map \"tenants\"");
  EXPECT_EQ(refused(*map, {edit::CreateShard{"s1", "host=x", "", ShardState::kOnline}}),
            "42710 shard \"s1\" already exists");
  EXPECT_EQ(refused(*map, {edit::CreateShard{"s3", "x", "11111111-1111-1111-1111-111111111111",
                                             ShardState::kOnline}}),
            "42710 that database is already in the map as shard \"s1\"");
  EXPECT_EQ(refused(*map, {edit::CreateMap{"m", MapKind::kRange, {KeyType::kBoolean}}}),
            "0A000 boolean can be in the key of a LIST map only");
  EXPECT_EQ(refused(*map, {edit::AlterShard{"s2", {}, {}, {}, ShardState::kDraining},
                           edit::AlterShardlet{"a", {}, "s2", {}}}),
            "55000 shard \"s2\" is draining and cannot be given shardlets");
  EXPECT_EQ(refused(*map, {edit::AlterShard{"s2", {}, {}, {}, ShardState::kOffline},
                           edit::AlterShardlet{"a", {}, "s2", {}}}),
            "55000 shard \"s2\" is offline and cannot be given shardlets");
  EXPECT_EQ(refused(*map, {edit::PutTable{Table{"public", "t", TableKind::kSharded, "users", {"id"}}}}),
            "22023 table public.t names 1 key columns, but map \"users\" has a key of 2: (uuid, integer)");
  EXPECT_EQ(refused(*map, {edit::DropShardlet{"zz"}}), "42704 shardlet \"zz\" does not exist");
  EXPECT_EQ(refused(*map, {edit::CreateMap{"", MapKind::kRange, {KeyType::kInt}}}),
            "42602 a shard map must have a name");
  EXPECT_EQ(map->epoch(), 1U);
}

TEST(MapEdit, ASplitIsOneEditAndTheOldMapStays) {
  const MapPtr map = sample();
  auto left = creation_of(*map, "b");
  ASSERT_TRUE(left);
  EXPECT_EQ(left->low, bound("1000"));
  auto right = *left;
  left->name = "b1";
  left->high = bound("1500");
  right.name = "b2";
  right.low = bound("1500");
  right.shard = "s1";
  const auto next = apply(*map, {edit::DropShardlet{"b"}, *left, right});
  ASSERT_TRUE(next) << next.error().to_string();
  EXPECT_EQ((*next)->epoch(), 2U);
  EXPECT_EQ(name_at(*(*next)->mapping("tenants"), {"1499"}), "b1");
  EXPECT_EQ(name_at(*(*next)->mapping("tenants"), {"1500"}), "b2");
  EXPECT_FALSE((*next)->shardlet("b"));
  EXPECT_EQ(name_at(*map->mapping("tenants"), {"1500"}), "b");
  EXPECT_FALSE(map->shardlet("b1"));
  // What the edit did not touch is the very same object.
  EXPECT_EQ((*next)->mapping("regions"), map->mapping("regions"));
}

TEST(MapEdit, HiddenRangesComeAndGoWithTheirJob) {
  const MapPtr map = sample();
  const auto hidden = apply(*map, {edit::HideRange{"b", "s1", "17"}, edit::HideRange{"eu", "s1", "17"}});
  ASSERT_TRUE(hidden) << hidden.error().to_string();
  ASSERT_EQ((*hidden)->mapping("tenants")->hidden().size(), 1U);
  EXPECT_EQ((*hidden)->mapping("tenants")->hidden()[0].low, map->shardlet("b")->low);
  EXPECT_EQ((*hidden)->mapping("regions")->hidden().size(), 2U);
  const auto revealed = apply(**hidden, {edit::RevealRanges{"17"}});
  EXPECT_TRUE((*revealed)->mapping("tenants")->hidden().empty());
  EXPECT_TRUE((*revealed)->mapping("regions")->hidden().empty());
}

// Whoever hands it over finds it by its name.
TEST(MapEdit, AShardletThatIsHeldKeepsItsName) {
  const auto held = apply(*sample(), {edit::AlterShardlet{"b", {}, {}, ShardletState::kHeld}});
  ASSERT_TRUE(held) << held.error().to_string();
  EXPECT_EQ(refused(**held, {edit::AlterShardlet{"b", "other", {}, {}}}),
            "55006 shardlet \"b\" is being handed over to another shard");
  EXPECT_TRUE(apply(**held, {edit::AlterShardlet{"b", "b", {}, ShardletState::kOnline}}));
}

TEST(MapEdit, TheShardletStateReachesEveryKeyOfAList) {
  const MapPtr map = sample();
  const auto next = apply(*map, {edit::AlterShardlet{"eu", "europe", "s1", ShardletState::kReadOnly}});
  ASSERT_TRUE(next) << next.error().to_string();
  const Mapping& regions = *(*next)->mapping("regions");
  for (const char* value : {"fr", "de"}) {
    const auto found = regions.find(*encode_key({KeyType::kText}, {value}));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name(), "europe");
    EXPECT_EQ(found->state(), ShardletState::kReadOnly);
    EXPECT_EQ((*next)->shard(found->shard())->name, "s1");
  }
  EXPECT_EQ(regions.shards().size(), 1U);
  EXPECT_EQ(regions.shardlet_count(), 1U);
  EXPECT_EQ(regions.entry_count(), 2U);
}

}  // namespace kintsugi::shardmap
