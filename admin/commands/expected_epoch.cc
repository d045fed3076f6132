#include "admin/commands/expected_epoch.h"

namespace kintsugi::admin {

// Whoever changes the map loads it first, and again before each new attempt.
Result<shardmap::StoredMap> ExpectedEpoch::load(Deadline deadline) {
  KG_TRY(shardmap::StoredMap stored, store_.load(deadline));
  if (stored.map->epoch() != epoch_) {
    // Not 40001: nobody is to try this again.
    return fail("KG007",
                "the shard map is at epoch " + std::to_string(stored.map->epoch()) +
                    ", and this change was asked for epoch " + std::to_string(epoch_),
                "Read it again, and decide again.");
  }
  return stored;
}

Result<shardmap::StoredMap> ExpectedEpoch::commit(const shardmap::StoredMap& base,
                                                  const shardmap::MapEdit& edit,
                                                  const std::vector<shardmap::NoteChange>& notes,
                                                  Deadline deadline) {
  KG_TRY(shardmap::StoredMap done, store_.commit(base, edit, notes, deadline));
  epoch_ = done.map->epoch();
  return done;
}

}  // namespace kintsugi::admin
