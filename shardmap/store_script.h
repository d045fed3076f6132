// What a PostgreSQL store is to do, as text for one way there and back: while a move changes the map writers
// wait, and on a busy server each answer waits for its turn. Private to shardmap/.
#pragma once

#include <string>
#include <vector>

#include "shardmap/map_store.h"
#include "shardmap/row_change.h"

namespace kintsugi::shardmap {

// The statement with its values in their places.
std::string with_values(const RowChange& change);

// Fails with 40001 unless the head is that of `base`, and keeps others from changing it.
std::string check_of_head(const StoredMap& base);

// These changes, in order, as one statement. 40001 "the note KIND KEY was changed ..." where one is not as
// expected.
std::string changes_of_notes(const std::vector<NoteChange>& changes);

}  // namespace kintsugi::shardmap
