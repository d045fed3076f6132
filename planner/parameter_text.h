// Parameters as literals, for what a PostgreSQL works out beside the statement that they came with. Private to
// planner/. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "planner/analysis.h"

namespace kintsugi::planner {

// The expression with ('7'::bigint) for $1. 0A000 for a parameter in binary form of a type that is not read
// here, or of one that is no built-in type.
Result<std::string> with_parameters(std::string_view expression, std::span<const Parameter> parameters);

}  // namespace kintsugi::planner
