// Where to split a shardlet when nobody says: the key that has half of the rows before it. Private to
// splitmerge/.
#pragma once

#include "base/deadline.h"
#include "shardmap/key_encoding.h"
#include "shardmap/shard_map.h"

namespace kintsugi::splitmerge {

// Of all rows of all tables of the map. 55000 when all rows have one key (or there are none).
Result<shardmap::Bound> middle_of(const shardmap::ShardMap& map, const std::string& shardlet,
                                  Deadline deadline);

}  // namespace kintsugi::splitmerge
