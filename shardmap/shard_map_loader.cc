#include <algorithm>
#include <unordered_set>

#include "shardmap/shard_map.h"

namespace kintsugi::shardmap {

struct ShardMapLoader::State {
  std::shared_ptr<ShardMap> map{new ShardMap};
  std::shared_ptr<Mapping> mapping;  // being filled
  std::shared_ptr<ChunkRegister> chunks = std::make_shared<ChunkRegister>();
  std::vector<std::uint64_t> name_pairs;
  std::unordered_set<std::string> list_names;
  std::string last_low, last_high;

  void close_mapping() {
    if (!mapping) return;
    mapping->index_.finish();
    mapping->shardlets_ = mapping->kind_ == MapKind::kList ? list_names.size() : mapping->index_.size();
    map->mappings_.push_back(std::move(mapping));
    mapping.reset();
    list_names.clear();
    last_low.clear();
    last_high.clear();
  }
};

ShardMapLoader::ShardMapLoader(std::string store_id, std::uint64_t epoch) : state_(std::make_unique<State>()) {
  state_->map->store_id_ = std::move(store_id);
  state_->map->epoch_ = epoch;
}
ShardMapLoader::~ShardMapLoader() = default;

Status ShardMapLoader::add_shard(Shard shard) {
  if (shard.id == 0 || shard.id > kShardIdMax)
    return fail("XX001", "the stored map has a shard without a number");
  state_->map->shards_.push_back(std::make_shared<const Shard>(std::move(shard)));
  return {};
}

void ShardMapLoader::set_home(ShardId home, ShardId next_shard) {
  state_->map->home_ = home;
  state_->map->next_shard_ = next_shard;
}

Status ShardMapLoader::add_mapping(std::string name, MapKind kind, KeyTypes types) {
  state_->close_mapping();
  if (types.empty()) return fail("XX001", "the stored map " + name + " has no key type");
  state_->mapping = std::make_shared<Mapping>();
  state_->mapping->name_ = std::move(name);
  state_->mapping->placed_ = state_->map->epoch_;  // it may have been the last change
  state_->mapping->kind_ = kind;
  state_->mapping->key_types_ = std::move(types);
  return {};
}

Status ShardMapLoader::add_entry(const Entry& entry) {
  State& state = *state_;
  if (!state.mapping) return fail("XX001", "a stored shardlet belongs to no map");
  Mapping& mapping = *state.mapping;
  const bool list = mapping.kind_ == MapKind::kList;
  const bool in_order =
      mapping.index_.size() == 0 || (list ? state.last_low < entry.low : state.last_high <= entry.low);
  if (!in_order || (list ? !entry.high.empty() : entry.high <= entry.low) || entry.low.empty()) {
    return fail("XX001",
                "the stored map " + mapping.name_ + " is damaged at shardlet " + std::string(entry.name));
  }
  mapping.index_.append(entry, *state.chunks, state.name_pairs);
  mapping.count_entries(entry.shard, entry.state, 1);
  if (list) state.list_names.emplace(entry.name);
  state.last_low.assign(entry.low);
  state.last_high.assign(entry.high);
  return {};
}

Status ShardMapLoader::add_hidden(HiddenRange hidden) {
  if (!state_->mapping) return fail("XX001", "a stored hidden range belongs to no map");
  state_->mapping->hidden_.push_back(std::move(hidden));
  return {};
}

Status ShardMapLoader::add_table(Table table) {
  state_->map->tables_.push_back(std::make_shared<const Table>(std::move(table)));
  return {};
}

Result<MapPtr> ShardMapLoader::finish() {
  State& state = *state_;
  state.close_mapping();
  ShardMap& map = *state.map;
  std::sort(map.shards_.begin(), map.shards_.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
  std::sort(map.mappings_.begin(), map.mappings_.end(),
            [](const auto& a, const auto& b) { return a->name() < b->name(); });
  std::sort(map.tables_.begin(), map.tables_.end(), [](const auto& a, const auto& b) {
    return std::tie(a->schema, a->name) < std::tie(b->schema, b->name);
  });
  for (const auto& mapping : map.mappings_) {
    for (const auto& [shard, entries] : mapping->shards()) {
      if (map.shard(shard) == nullptr) {
        return fail("XX001", "the stored map " + mapping->name() + " names shard number " +
                                 std::to_string(shard) + ", which is not there");
      }
    }
  }
  for (const auto& table : map.tables_) {
    if (table->kind == TableKind::kSharded && map.mapping(table->map) == nullptr) {
      return fail("XX001",
                  "the stored table " + table->display() + " names map " + table->map + ", which is not there");
    }
  }
  state.chunks->names.assign(std::move(state.name_pairs));
  map.chunks_ = state.chunks;
  return MapPtr(state.map);
}

}  // namespace kintsugi::shardmap
