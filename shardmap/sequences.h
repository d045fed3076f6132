// Sequences of sharded tables' columns count apart from those of other shards, without asking anyone: each in
// the same steps from its shard's number. So what they make is unique over all shards.
#pragma once

#include <cstdint>
#include <string>

#include "shardmap/pg_session.h"
#include "shardmap/shard_map.h"

namespace kintsugi::shardmap {

// The step of an integer (or smallint) column's sequence and of a bigint one's: so many shards can count apart.
std::uint32_t sequence_step(bool bigint);
// Where a shard begins: from 1 to the step.
std::uint32_t sequence_start(ShardId shard, std::uint32_t step);

// The highest value that the table's sequences have given here; 0 when it has none. `table`: quoted, with its
// schema.
Result<std::int64_t> last_of_sequences(PgSession& shard, const std::string& table, Deadline deadline);
// Makes the sequences of the table's columns count so on this shard, on from `above` and from what they have
// given. Those that do already, and those with steps that somebody has chosen, stay as they are.
Status count_apart(PgSession& session, ShardId shard, const std::string& table, std::int64_t above,
                   Deadline deadline);

}  // namespace kintsugi::shardmap
