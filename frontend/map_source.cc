#include "frontend/map_source.h"

#include "shardmap/map_edit.h"

namespace kintsugi::frontend {
namespace {

class FixedMap final : public MapSource {
 public:
  explicit FixedMap(shardmap::MapPtr map) : map_(std::move(map)) {}

  [[nodiscard]] shardmap::MapPtr current() const override { return map_; }
  void taken(std::uint64_t) override {}
  [[nodiscard]] bool lease_valid() const override { return true; }
  [[nodiscard]] bool store_reachable() const override { return true; }

 private:
  shardmap::MapPtr map_;
};

}  // namespace

Result<std::shared_ptr<MapSource>> fixed_map(const Config& config) {
  shardmap::MapEdit edit;
  for (const ShardConfig& shard : config.shards) {
    edit.operations.emplace_back(
        shardmap::edit::CreateShard{shard.name, shard.dsn, "", shardmap::ShardState::kOnline});
  }
  KG_TRY(shardmap::MapPtr map, shardmap::apply(*shardmap::ShardMap::empty(""), edit));
  return std::shared_ptr<MapSource>(std::make_shared<FixedMap>(std::move(map)));
}

}  // namespace kintsugi::frontend
