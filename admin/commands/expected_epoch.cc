#include "admin/commands/expected_epoch.h"

namespace kintsugi::admin {

// Whoever changes the map loads it first, and again before each new attempt.
Result<shardmap::StoredMap> ExpectedEpoch::load(Deadline deadline) {
  KG_TRY(shardmap::StoredMap stored, store_.load(deadline));
  KG_CHECK(condition_.check(stored.map->epoch()));
  return stored;
}

Result<shardmap::StoredMap> ExpectedEpoch::commit(const shardmap::StoredMap& base,
                                                  const shardmap::MapEdit& edit,
                                                  const std::vector<shardmap::NoteChange>& notes,
                                                  Deadline deadline) {
  KG_TRY(shardmap::StoredMap done, store_.commit(base, edit, notes, deadline));
  condition_ = {.one_of = true, .wanted = {std::to_string(done.map->epoch())}, .unwanted = {}};
  return done;
}

}  // namespace kintsugi::admin
