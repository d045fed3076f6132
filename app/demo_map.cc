#include "app/demo_map.h"

#include "shardmap/map_commands.h"

namespace kintsugi::app {
namespace {

using shardmap::BoundColumn;

constexpr const char* kMap = "tenants";
constexpr std::chrono::seconds kPatience{30};

// The sample's tables with the column that says whose a row is.
constexpr std::pair<const char*, const char*> kTables[] = {
    {"tenants", "id"}, {"users", "tenant_id"}, {"orders", "tenant_id"}, {"order_items", "tenant_id"}};

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

// One shardlet that is everything, where the data is.
shardmap::MapEdit first_map(const std::string& shard) {
  shardmap::MapEdit edit{
      shardmap::edit::CreateMap{kMap, shardmap::MapKind::kRange, {shardmap::KeyType::kBigint}}};
  edit.operations.emplace_back(shardmap::edit::CreateShardlet{kMap,
                                                              "tenants_1",
                                                              {BoundColumn::min()},
                                                              {BoundColumn::max()},
                                                              {},
                                                              shard,
                                                              shardmap::ShardletState::kOnline});
  for (const auto& [table, key] : kTables) {
    edit.operations.emplace_back(
        shardmap::edit::PutTable{{"public", table, shardmap::TableKind::kSharded, kMap, {key}}});
  }
  return edit;
}

}  // namespace

Status prepare_demo_map(const std::string& store_name, const std::vector<DemoMapShard>& shards) {
  KG_TRY(const std::unique_ptr<shardmap::MapStore> store,
         shardmap::open_store(store_name, "", Deadline::in(kPatience)));
  KG_CHECK(prepare_shards(*store, shards));
  KG_TRY(const shardmap::StoredMap stored, store->load(Deadline::in(kPatience)));
  // Whoever has made maps of his own knows what he does.
  if (!stored.map->mappings().empty()) return {};
  shardmap::MapChange change(*store);
  KG_CHECK(change.edit(first_map(shards.front().name), Deadline::in(kPatience)));
  return {};
}

}  // namespace kintsugi::app
