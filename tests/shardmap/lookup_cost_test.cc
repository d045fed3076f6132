// A lookup allocates nothing, an entry costs at most 64 bytes beyond its key, an edit copies little.
#include <gtest/gtest.h>

#include "shardmap/map_edit.h"
#include "shardmap/pg_hash.h"
#include "tests/allocations.h"

namespace kintsugi::shardmap {
namespace {

constexpr int kShardlets = 100000;

MapPtr large_map(MapKind kind, const KeyTypes& types, std::size_t& key_bytes) {
  ShardMapLoader loader("store", 1);
  EXPECT_TRUE(loader.add_shard({1, "s1", "d", "", ShardState::kOnline}));
  loader.set_home(1, 2);
  EXPECT_TRUE(loader.add_mapping("m", kind, types));
  const auto key = [&](int n) {
    std::string digits = std::to_string(n);
    return types[0] == KeyType::kText
               ? *encode_key(types, {"t-" + std::string(9 - digits.size(), '0') + digits})
               : *encode_key(types, {std::to_string(n)});
  };
  for (int i = 0; i < kShardlets; ++i) {
    const std::string low = key(3 * i);
    const std::string high = kind == MapKind::kList ? "" : key(3 * i + 3);
    key_bytes += low.size();
    EXPECT_TRUE(loader.add_entry({low, high, "shardlet-" + std::to_string(i), 1, ShardletState::kOnline}));
  }
  return *loader.finish();
}

}  // namespace

TEST(LookupCost, ALookupAllocatesNothingAndAnEntryIsSmall) {
  for (const KeyType type : {KeyType::kBigint, KeyType::kText}) {
    for (const MapKind kind : {MapKind::kRange, MapKind::kList}) {
      std::size_t key_bytes = 0;
      const MapPtr map = large_map(kind, {type}, key_bytes);
      EXPECT_LE(static_cast<double>(map->bytes() - key_bytes) / kShardlets, 64.0);
      const Mapping& mapping = *map->mapping("m");
      std::string key;
      key.reserve(64);
      const std::size_t before = kintsugi::testing::allocations;
      int found = 0;
      for (int i = 0; i < 1000; ++i) {
        key.clear();
        const std::string_view text = type == KeyType::kText ? "t-000000300" : "300";
        ASSERT_TRUE(append_text(type, text, key));
        found += mapping.find(key) ? 1 : 0;
        for (const ShardletView view : mapping.overlapping(key, {})) {
          found += view.shard() == 1 ? 0 : 1;
          break;
        }
      }
      EXPECT_EQ(kintsugi::testing::allocations, before);
      EXPECT_EQ(found, 1000);
    }
  }
}

TEST(LookupCost, AHashLookupAllocatesNothing) {
  const auto map =
      apply(*ShardMap::empty("s"),
            {edit::CreateShard{"s1", "d", "", ShardState::kOnline},
             edit::CreateMap{"h", MapKind::kHash, {KeyType::kText, KeyType::kNumeric}},
             edit::CreateShardlet{
                 "h", "all", {BoundColumn::min()}, {BoundColumn::max()}, {}, "s1", ShardletState::kOnline}});
  ASSERT_TRUE(map);
  const std::string key = *encode_key({KeyType::kText, KeyType::kNumeric}, {"tenant", "-12345.678"});
  const Mapping& mapping = *(*map)->mapping("h");
  const std::size_t before = kintsugi::testing::allocations;
  EXPECT_TRUE(mapping.find(key));
  EXPECT_EQ(kintsugi::testing::allocations, before);
}

}  // namespace kintsugi::shardmap
