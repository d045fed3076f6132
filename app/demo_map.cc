#include "app/demo_map.h"

#include <algorithm>

#include "app/demo_sample.h"
#include "shardmap/map_commands.h"

namespace kintsugi::app {
namespace {

using shardmap::BoundColumn;

constexpr const char* kMap = "tenants";
constexpr std::chrono::seconds kPatience{30};

Status prepare_shards(shardmap::MapStore& store, const std::vector<DemoMapShard>& shards) {
  shardmap::MapCommands commands(store);
  KG_TRY(const shardmap::StoredMap stored, store.load(Deadline::in(kPatience)));
  for (const DemoMapShard& shard : shards) {
    const shardmap::Shard* known = stored.map->shard_named(shard.name);
    if (known == nullptr) {
      KG_CHECK(commands.create_shard({shard.name, shard.dsn}, Deadline::in(kPatience)));
    } else if (known->dsn != shard.dsn) {
      KG_CHECK(commands.alter_shard({.name = shard.name, .dsn = shard.dsn}, Deadline::in(kPatience)));
    }
  }
  return {};
}

// A shardlet a part of the sample.
shardmap::MapEdit first_map(const std::vector<DemoMapShard>& shards, int parts) {
  shardmap::MapEdit edit{
      shardmap::edit::CreateMap{kMap, shardmap::MapKind::kRange, {shardmap::KeyType::kBigint}}};
  const auto bound = [parts](int part) {
    if (part == 0) return BoundColumn::min();
    return part == parts ? BoundColumn::max()
                         : BoundColumn::value(std::to_string(demo_part_begins(part, parts)));
  };
  for (int part = 0; part < parts; ++part) {
    shardmap::edit::CreateShardlet shardlet{.map = kMap, .name = "t" + std::to_string(part + 1)};
    shardlet.low = {bound(part)};
    shardlet.high = {bound(part + 1)};
    shardlet.shard = shards[static_cast<std::size_t>(part)].name;
    edit.operations.emplace_back(std::move(shardlet));
  }
  for (const auto& [table, key] : kDemoTables) {
    edit.operations.emplace_back(
        shardmap::edit::PutTable{{"public", table, shardmap::TableKind::kSharded, kMap, {key}}});
  }
  return edit;
}

}  // namespace

Status prepare_demo_map(const std::string& store_name, const std::vector<DemoMapShard>& shards, int spread) {
  KG_TRY(const std::unique_ptr<shardmap::MapStore> store,
         shardmap::open_store(store_name, "", Deadline::in(kPatience)));
  KG_CHECK(prepare_shards(*store, shards));
  KG_TRY(const shardmap::StoredMap stored, store->load(Deadline::in(kPatience)));
  // Whoever has made maps of his own knows what he does.
  if (!stored.map->mappings().empty()) return {};
  shardmap::MapChange change(*store);
  KG_CHECK(change.edit(first_map(shards, std::max(spread, 1)), Deadline::in(kPatience)));
  return {};
}

}  // namespace kintsugi::app
