// One-row answers of several shards put together into one row: sums in 128 bits or exact decimals, extremes by
// PostgreSQL's order, booleans. Values stay in the client's format. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "planner/plan.h"

namespace kintsugi::executor {

using Cell = std::optional<std::string>;  // as in a DataRow; none: NULL

// `cells`: this column of each shard's row, in the order of the shards; not empty. 22003 in PostgreSQL's words
// for a sum beyond its type, XX001 for a value that is not of its type.
Result<Cell> fold_column(const planner::FoldColumn& column, bool binary, const std::vector<Cell>& cells);

}  // namespace kintsugi::executor
