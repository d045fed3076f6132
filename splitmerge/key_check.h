// Whether the rows with some keys are the same on two shards. Private to splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/pg_session.h"
#include "splitmerge/change_stream.h"
#include "splitmerge/row_check.h"

namespace kintsugi::splitmerge {

// The rows inside the moving range with these keys (MovedTable::row_key): one sum for each, in the keys' order.
Result<std::vector<RowSum>> sums_of_keys(shardmap::PgSession& session, const MovedTable& table,
                                         const RowKeys& keys, Deadline deadline);
// One set of keys, and one list of sums, for each table.
Result<std::vector<std::vector<RowSum>>> sums_of_keys(shardmap::PgSession& session,
                                                      const std::vector<MovedTable>& tables,
                                                      const std::vector<RowKeys>& keys, Deadline deadline);

// XX001 when any of them differ: names the tables and some of the keys.
Status compare_keys(const std::vector<MovedTable>& tables, const std::vector<RowKeys>& keys,
                    const std::vector<std::vector<RowSum>>& source,
                    const std::vector<std::vector<RowSum>>& target);

}  // namespace kintsugi::splitmerge
