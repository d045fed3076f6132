// GROUP BY a primary key. Private to planner/. Pure.
#pragma once

#include "planner/analyzer.h"

namespace kintsugi::planner {

// Whether the query in whose FROM the use stands groups by its table's primary key, and has other columns of it
// that are in no aggregate: PostgreSQL takes that when it knows the key. True now and then where it is not so.
[[nodiscard]] bool groups_rely_on_key(const Analyzer& analyzer, int use);

}  // namespace kintsugi::planner
