#include "shardmap/shard_map.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace kintsugi::shardmap {

std::string_view name_of(ShardState state) {
  switch (state) {
    case ShardState::kPreparing: return "preparing";
    case ShardState::kOnline: return "online";
    case ShardState::kDraining: return "draining";
    case ShardState::kOffline: return "offline";
  }
  return "";
}

std::string_view name_of(TableKind kind) {
  switch (kind) {
    case TableKind::kSharded: return "sharded";
    case TableKind::kReplicated: return "replicated";
    case TableKind::kHome: return "home";
  }
  return "";
}

std::optional<ShardState> shard_state_named(std::string_view name) {
  for (ShardState state :
       {ShardState::kPreparing, ShardState::kOnline, ShardState::kDraining, ShardState::kOffline}) {
    if (name == name_of(state)) return state;
  }
  return std::nullopt;
}

std::optional<TableKind> table_kind_named(std::string_view name) {
  for (TableKind kind : {TableKind::kSharded, TableKind::kReplicated, TableKind::kHome}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

MapPtr ShardMap::empty(std::string store_id) {
  auto map = std::shared_ptr<ShardMap>(new ShardMap);
  map->store_id_ = std::move(store_id);
  map->chunks_ = std::make_shared<const ChunkRegister>();
  return map;
}

const Shard* ShardMap::shard(ShardId id) const {
  const auto at = std::lower_bound(shards_.begin(), shards_.end(), id,
                                   [](const auto& shard, ShardId wanted) { return shard->id < wanted; });
  return at != shards_.end() && (*at)->id == id ? at->get() : nullptr;
}

const Shard* ShardMap::shard_named(std::string_view name) const {
  for (const auto& shard : shards_) {
    if (shard->name == name) return shard.get();
  }
  return nullptr;
}

std::vector<const Shard*> ShardMap::shards() const {
  std::vector<const Shard*> all;
  for (const auto& shard : shards_) all.push_back(shard.get());
  return all;
}

const Mapping* ShardMap::mapping(std::string_view name) const {
  const auto at =
      std::lower_bound(mappings_.begin(), mappings_.end(), name,
                       [](const auto& mapping, std::string_view wanted) { return mapping->name() < wanted; });
  return at != mappings_.end() && (*at)->name() == name ? at->get() : nullptr;
}

std::vector<const Mapping*> ShardMap::mappings() const {
  std::vector<const Mapping*> all;
  for (const auto& mapping : mappings_) all.push_back(mapping.get());
  return all;
}

std::optional<Shardlet> ShardMap::shardlet(std::string_view name) const {
  for (const std::uint32_t id : chunks_->names.chunks_of(name)) {
    for (const auto& mapping : mappings_) {
      const Chunk* chunk = mapping->index_.chunk_with_id(id);
      if (chunk == nullptr) continue;
      for (std::size_t at = 0; at < chunk->size(); ++at) {
        if (chunk->name(at) != name) continue;
        const Entry entry = chunk->at(at);
        Shardlet shardlet{std::string(name), mapping->name(), {}, {}, {}, entry.shard, entry.state};
        if (mapping->kind() != MapKind::kList) {
          shardlet.low = entry.low;
          shardlet.high = entry.high;
          return shardlet;
        }
        for (const std::uint32_t other : chunks_->names.chunks_of(name)) {
          const Chunk* part = mapping->index_.chunk_with_id(other);
          for (std::size_t i = 0; part != nullptr && i < part->size(); ++i) {
            if (part->name(i) == name) shardlet.values.emplace_back(part->low(i));
          }
        }
        std::sort(shardlet.values.begin(), shardlet.values.end());
        return shardlet;
      }
    }
  }
  return std::nullopt;
}

std::vector<Shardlet> ShardMap::shardlets_of(const Mapping& mapping) const {
  std::vector<Shardlet> all;
  all.reserve(mapping.shardlet_count());
  std::unordered_map<std::string_view, std::size_t> seen;
  for (const ShardletView view : mapping.entries()) {
    const Entry entry = view.entry();
    Shardlet shardlet{std::string(entry.name), mapping.name(), {}, {}, {}, entry.shard, entry.state};
    if (mapping.kind() != MapKind::kList) {
      shardlet.low = entry.low;
      shardlet.high = entry.high;
      all.push_back(std::move(shardlet));
      continue;
    }
    const auto [at, fresh] = seen.emplace(entry.name, all.size());
    if (fresh) all.push_back(std::move(shardlet));
    all[at->second].values.emplace_back(entry.low);
  }
  return all;
}

const Table* ShardMap::table(std::string_view schema, std::string_view name) const {
  const auto at = std::lower_bound(
      tables_.begin(), tables_.end(), std::pair(schema, name), [](const auto& table, const auto& wanted) {
        return std::pair<std::string_view, std::string_view>(table->schema, table->name) < wanted;
      });
  return at != tables_.end() && (*at)->schema == schema && (*at)->name == name ? at->get() : nullptr;
}

std::vector<const Table*> ShardMap::tables() const {
  std::vector<const Table*> all;
  for (const auto& table : tables_) all.push_back(table.get());
  return all;
}

std::vector<const Table*> ShardMap::tables_of(std::string_view map) const {
  std::vector<const Table*> all;
  for (const auto& table : tables_) {
    if (table->kind == TableKind::kSharded && table->map == map) all.push_back(table.get());
  }
  return all;
}

std::size_t ShardMap::bytes() const {
  std::size_t total = chunks_->names.bytes();
  for (const auto& mapping : mappings_) total += mapping->bytes();
  return total;
}

}  // namespace kintsugi::shardmap
