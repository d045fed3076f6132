// The command tag of a statement that ran on several shards, from theirs. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "planner/plan.h"

namespace kintsugi::executor {

// A query's counts `rows_out`; that of a write the rows of all shards. kOne: theirs must be one and the same,
// or XX001. Empty for an empty query.
Result<std::string> merged_tag(planner::Merge::Kind kind, const std::vector<std::string>& tags, bool has_rows,
                               std::uint64_t rows_out);

}  // namespace kintsugi::executor
