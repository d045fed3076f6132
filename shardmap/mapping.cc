#include "shardmap/mapping.h"

#include <algorithm>

#include "base/invariant.h"
#include "shardmap/entry_lookup.h"
#include "shardmap/key_encoding.h"
#include "shardmap/pg_hash.h"

namespace kintsugi::shardmap {

const KeyTypes Mapping::kHashBound{KeyType::kBigint};

std::string_view name_of(MapKind kind) {
  switch (kind) {
    case MapKind::kList: return "list";
    case MapKind::kRange: return "range";
    case MapKind::kHash: return "hash";
  }
  return "";
}

std::string_view name_of(ShardletState state) {
  switch (state) {
    case ShardletState::kOnline: return "online";
    case ShardletState::kReadOnly: return "read only";
    case ShardletState::kOffline: return "offline";
    case ShardletState::kHeld: return "held";
  }
  return "";
}

std::optional<MapKind> map_kind_named(std::string_view name) {
  for (MapKind kind : {MapKind::kList, MapKind::kRange, MapKind::kHash}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<ShardletState> shardlet_state_named(std::string_view name) {
  for (ShardletState state :
       {ShardletState::kOnline, ShardletState::kReadOnly, ShardletState::kOffline, ShardletState::kHeld}) {
    if (name == name_of(state)) return state;
  }
  return std::nullopt;
}

std::optional<ShardletView> Mapping::find(std::string_view key) const {
  if (kind_ != MapKind::kHash) return find_in_bounds(key);
  char bound[9];
  const auto hash = static_cast<std::uint64_t>(hash_of_key(key_types_, key)) ^ (std::uint64_t{1} << 63);
  bound[0] = key_tag::kValue;
  const std::uint64_t big_endian = __builtin_bswap64(hash);
  __builtin_memcpy(bound + 1, &big_endian, sizeof big_endian);
  return find_in_bounds({bound, sizeof bound});
}

std::optional<ShardletView> Mapping::find_in_bounds(std::string_view bound) const {
  if (kind_ == MapKind::kList) return index_.exact(bound);
  const auto found = index_.floor(bound);
  if (!found) return std::nullopt;
  // Where the next entry begins at this one's end, not being in it is being in the next.
  if (found->ends_at_next() || bound < found->high()) return found;
  return std::nullopt;
}

void Mapping::count_entries(ShardId shard, ShardletState state, std::ptrdiff_t entries) {
  if (state != ShardletState::kOnline) not_online_ += static_cast<std::size_t>(entries);
  auto at = std::lower_bound(shards_.begin(), shards_.end(), shard,
                             [](const auto& counted, ShardId wanted) { return counted.first < wanted; });
  if (at == shards_.end() || at->first != shard) at = shards_.insert(at, {shard, 0});
  INVARIANT(static_cast<std::ptrdiff_t>(at->second) + entries >= 0, "a shard has no fewer than no entries");
  at->second += static_cast<std::size_t>(entries);
  if (at->second == 0) shards_.erase(at);
}

}  // namespace kintsugi::shardmap
