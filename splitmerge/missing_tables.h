// Tables of a move that the target lacks are made there as the source has them, by pg_dump. Private to
// splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/pg_session.h"
#include "splitmerge/moved_table.h"

namespace kintsugi::splitmerge {

struct TwoShards {
  const shardmap::Shard& source;
  const shardmap::Shard& target;
};

// With partitions, indexes, constraints, triggers, policies, grants and the sequences of their columns, which
// count apart from the source's; all or none. What they need besides (types, functions, other tables, roles)
// has to be there: 55000 says what PostgreSQL missed. Gives the names of those that were made.
Result<std::vector<std::string>> make_missing_tables(const TwoShards& shards, shardmap::PgSession& source,
                                                     shardmap::PgSession& target,
                                                     const std::vector<MovedTable>& tables, Deadline deadline);

}  // namespace kintsugi::splitmerge
