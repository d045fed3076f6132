// One named map: from keys of its types to shardlets. Part of an immutable ShardMap: any thread may read it,
// lookups allocate nothing, views are good as long as the ShardMap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardmap/entry_index.h"
#include "shardmap/key_type.h"

namespace kintsugi::shardmap {

enum class MapKind : std::uint8_t { kList, kRange, kHash };

[[nodiscard]] std::string_view name_of(MapKind kind);         // "list", "range", "hash"
[[nodiscard]] std::string_view name_of(ShardletState state);  // "online", "read only", "offline", "held"
[[nodiscard]] std::optional<MapKind> map_kind_named(std::string_view name);
[[nodiscard]] std::optional<ShardletState> shardlet_state_named(std::string_view name);

// Rows of a shardlet that lie on a shard which does not own them: arriving there before the commit of a move,
// or left there until the cleaning after it. Every fan-out to that shard leaves them out.
struct HiddenRange {
  ShardId shard = 0;
  std::string low;  // as in Entry
  std::string high;
  std::string job;
  friend bool operator==(const HiddenRange&, const HiddenRange&) = default;
};

class Mapping {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] MapKind kind() const { return kind_; }
  [[nodiscard]] const KeyTypes& key_types() const { return key_types_; }
  // The types of the bounds that the entries have: bigint, the hash, for a HASH map.
  [[nodiscard]] const KeyTypes& bound_types() const {
    return kind_ == MapKind::kHash ? kHashBound : key_types_;
  }

  // The shardlet of a whole key of `key_types()`.
  [[nodiscard]] std::optional<ShardletView> find(std::string_view key) const;
  // The same by what the entries hold: for a HASH map the encoded hash.
  [[nodiscard]] std::optional<ShardletView> find_in_bounds(std::string_view bound) const;

  // The entries of keys within [low, high), bounds of `bound_types()`; an empty `high` has no end. An entry is
  // a shardlet, but in a LIST map a value of one: there a shardlet comes as often as it has values in the
  // range.
  [[nodiscard]] EntrySpan overlapping(std::string_view low, std::string_view high) const {
    return index_.overlapping(low, high);
  }
  [[nodiscard]] EntrySpan entries() const { return index_.all(); }

  [[nodiscard]] std::size_t shardlet_count() const { return shardlets_; }
  [[nodiscard]] std::size_t entry_count() const { return index_.size(); }
  // Each shard that has a shardlet of this map, with the number of its entries; by id.
  [[nodiscard]] const std::vector<std::pair<ShardId, std::size_t>>& shards() const { return shards_; }
  [[nodiscard]] const std::vector<HiddenRange>& hidden() const { return hidden_; }
  // The epoch at which rows of this map last changed hands: a key got another shard, or rows that were hidden
  // are hidden no more. Two maps of one store that agree in it place and show the same rows.
  [[nodiscard]] std::uint64_t placed() const { return placed_; }
  // How many entries are in another state than online: none means that nobody has to look at each.
  [[nodiscard]] std::size_t not_online_count() const { return not_online_; }
  [[nodiscard]] std::size_t bytes() const { return index_.bytes(); }

 private:
  friend class MapDraft;
  friend class ShardMap;
  friend class ShardMapLoader;

  static const KeyTypes kHashBound;

  void count_entries(ShardId shard, ShardletState state, std::ptrdiff_t entries);

  std::string name_;
  MapKind kind_ = MapKind::kRange;
  KeyTypes key_types_;
  EntryIndex index_;
  std::size_t shardlets_ = 0;
  std::size_t not_online_ = 0;
  std::uint64_t placed_ = 0;
  std::vector<std::pair<ShardId, std::size_t>> shards_;
  std::vector<HiddenRange> hidden_;
};

}  // namespace kintsugi::shardmap
