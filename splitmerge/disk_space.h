// Whether the target's disks have room for what a move brings. Private to splitmerge/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/pg_session.h"
#include "splitmerge/moved_table.h"

namespace kintsugi::splitmerge {

// What to do where there is none.
inline constexpr const char* kMakeRoom = "Make room there, then RESUME JOB.";

struct DiskSpace {
  std::uint64_t needed = 0;  // bytes, about: of the rows with indexes and large values, and the log of them
  std::optional<std::uint64_t> free;  // of the fullest disk that gets some; none: nobody may ask
  std::string where;                  // which that is
  std::string unknown;                // why nobody may
};

// SQL cannot ask: it is `df` on the target, run by COPY FROM PROGRAM when the role may (a superuser, as
// subscriptions want it, may). `source` has the tables analysed or not: sizes are the files', shared out by the
// planner's guess.
Result<DiskSpace> look_at_disk(shardmap::PgSession& source, shardmap::PgSession& target,
                               const std::vector<MovedTable>& tables, Deadline deadline);

}  // namespace kintsugi::splitmerge
