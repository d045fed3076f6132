// The next map while an edit is applied to it, one operation after the other. Private to shardmap/; one thread.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "shardmap/map_edit.h"

namespace kintsugi::shardmap {

class MapDraft {
 public:
  explicit MapDraft(const ShardMap& base);

  Status apply(const edit::CreateShard& op);
  Status apply(const edit::AlterShard& op);
  Status apply(const edit::DropShard& op);
  Status apply(const edit::SetHome& op);
  Status apply(const edit::CreateMap& op);
  Status apply(const edit::DropMap& op);
  Status apply(const edit::CreateShardlet& op);
  Status apply(const edit::AlterShardlet& op);
  Status apply(const edit::DropShardlet& op);
  Status apply(const edit::PutTable& op);
  Status apply(const edit::DropTable& op);
  Status apply(const edit::HideRange& op);
  Status apply(const edit::RevealRanges& op);
  Status apply(const edit::RaiseEpoch& op);

  MapPtr finish();

 private:
  Result<const Shard*> need_shard(std::string_view name) const;
  // One that may be given shardlets.
  Result<const Shard*> need_receiving_shard(std::string_view name) const;
  Result<Shardlet> need_shardlet(std::string_view name) const;
  Status check_name(std::string_view what, std::string_view name) const;
  Status check_free_shardlet_name(std::string_view name) const;
  // The mapping to change: a copy that only this draft has.
  Result<Mapping*> open_mapping(std::string_view name);
  ChunkRegister& chunks();
  Status create_range(const edit::CreateShardlet& op, Mapping& mapping, ShardId shard);
  Status create_list(const edit::CreateShardlet& op, Mapping& mapping, ShardId shard);
  void erase_entries(const Shardlet& shardlet, Mapping& mapping);

  std::shared_ptr<ShardMap> next_;
  std::unordered_map<std::string, std::shared_ptr<Mapping>> open_;
  std::shared_ptr<ChunkRegister> chunks_;  // null until something changes in it
};

}  // namespace kintsugi::shardmap
