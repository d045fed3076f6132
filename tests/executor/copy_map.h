// A map of three shards for tests of COPY: "ranges" by int (below 100, below 200, below 300 and read only from
// there to 400), "pairs" by hash of (text, bigint).
#pragma once

#include "shardmap/map_edit.h"

namespace kintsugi::executor {

inline shardmap::MapPtr copy_map() {
  using namespace shardmap::edit;
  using shardmap::BoundColumn;
  const auto at = [](int key) { return shardmap::Bound{BoundColumn::value(std::to_string(key))}; };
  const std::string third = "3074457345618258602";
  shardmap::MapEdit edit{
      CreateShard{"s1", "dbname=s1", "", shardmap::ShardState::kOnline},
      CreateShard{"s2", "dbname=s2", "", shardmap::ShardState::kOnline},
      CreateShard{"s3", "dbname=s3", "", shardmap::ShardState::kOnline},
      CreateMap{"ranges", shardmap::MapKind::kRange, {shardmap::KeyType::kInt}},
      CreateShardlet{"ranges", "a", {BoundColumn::min()}, at(100), {}, "s1", shardmap::ShardletState::kOnline},
      CreateShardlet{"ranges", "b", at(100), at(200), {}, "s2", shardmap::ShardletState::kOnline},
      CreateShardlet{"ranges", "c", at(200), at(300), {}, "s3", shardmap::ShardletState::kOnline},
      CreateShardlet{"ranges", "d", at(300), at(400), {}, "s3", shardmap::ShardletState::kReadOnly},
      CreateMap{"pairs", shardmap::MapKind::kHash, {shardmap::KeyType::kText, shardmap::KeyType::kBigint}},
      CreateShardlet{"pairs",
                     "x",
                     {BoundColumn::min()},
                     {BoundColumn::value("-" + third)},
                     {},
                     "s1",
                     shardmap::ShardletState::kOnline},
      CreateShardlet{"pairs",
                     "y",
                     {BoundColumn::value("-" + third)},
                     {BoundColumn::value(third)},
                     {},
                     "s2",
                     shardmap::ShardletState::kOnline},
      CreateShardlet{"pairs",
                     "z",
                     {BoundColumn::value(third)},
                     {BoundColumn::max()},
                     {},
                     "s3",
                     shardmap::ShardletState::kOnline},
  };
  auto map = shardmap::apply(*shardmap::ShardMap::empty("3f0c1a52-0000-4000-8000-000000000001"), edit);
  if (!map) std::abort();
  return *map;
}

}  // namespace kintsugi::executor
