// A store in which every commit must be for an epoch that the condition takes, or for one that was made through
// this very object. Belongs to the thread of the store that it stands before. Private to admin/commands/.
#pragma once

#include "admin/commands/epoch_condition.h"
#include "shardmap/map_store.h"

namespace kintsugi::admin {

class ExpectedEpoch final : public shardmap::MapStore {
 public:
  ExpectedEpoch(shardmap::MapStore& store, EpochCondition condition)
      : store_(store), condition_(std::move(condition)) {}

  Result<shardmap::StoredMap> load(Deadline deadline) override;
  Result<std::optional<std::vector<shardmap::LoggedEdit>>> edits_since(std::uint64_t epoch,
                                                                       const std::string& token,
                                                                       Deadline deadline) override {
    return store_.edits_since(epoch, token, deadline);
  }
  Result<shardmap::StoredMap> commit(const shardmap::StoredMap& base, const shardmap::MapEdit& edit,
                                     const std::vector<shardmap::NoteChange>& notes,
                                     Deadline deadline) override;
  Result<bool> wait(std::uint64_t epoch, Deadline deadline) override { return store_.wait(epoch, deadline); }
  Result<std::vector<shardmap::Note>> notes(const std::string& kind, Deadline deadline) override {
    return store_.notes(kind, deadline);
  }
  Status put_notes(const std::vector<shardmap::NoteChange>& changes, Deadline deadline) override {
    return store_.put_notes(changes, deadline);
  }
  [[nodiscard]] bool writable() const override { return store_.writable(); }

 private:
  shardmap::MapStore& store_;
  EpochCondition condition_;
};

}  // namespace kintsugi::admin
