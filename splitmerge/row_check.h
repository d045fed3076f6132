// Whether the rows of a range are the same on two shards: by counts and checksums, and if not, which differ.
// Private to splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/pg_session.h"
#include "splitmerge/moved_table.h"

namespace kintsugi::splitmerge {

// What has been compared is not equal.
inline constexpr const char* kRowsDiffer = "XX001";

struct RowSum {
  std::uint64_t rows = 0;
  std::string sum;  // of the rows' checksums, in decimals
  friend bool operator==(const RowSum&, const RowSum&) = default;
};

// In the snapshot of the session's transaction, or each table in its own.
Result<std::vector<RowSum>> sums_of(shardmap::PgSession& session, const std::vector<MovedTable>& tables,
                                    Deadline deadline);
// The same by one statement a table sent to both at once, so that they take no longer than the slower one.
struct BothSums {
  std::vector<RowSum> source, target;
};
Result<BothSums> sums_of_both(shardmap::PgSession& source, shardmap::PgSession& target,
                              const std::vector<MovedTable>& tables, Deadline deadline);

// XX001 when they differ: names tables, counts, and the keys of some rows that only one side has.
Status compare_sums(const std::vector<MovedTable>& tables, const BothSums& sums, shardmap::PgSession& source,
                    shardmap::PgSession& target, Deadline deadline);

}  // namespace kintsugi::splitmerge
