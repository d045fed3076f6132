// Names that a guarded statement may use. Private to planner/. Pure; any thread.
#pragma once

#include <string_view>

namespace kintsugi::planner {

// Functions, aggregates and special forms of PostgreSQL that read nothing but their arguments, the clock and
// the session's own state, and change nothing.
[[nodiscard]] bool is_calm_function(std::string_view name);
// Those of them that raise no error whatever their arguments are: a condition with them tells nothing of the
// rows that it leaves out.
[[nodiscard]] bool is_silent_function(std::string_view name);
// Operators that raise no error.
[[nodiscard]] bool is_silent_operator(std::string_view op);
// System relations without anybody's data in them.
[[nodiscard]] bool is_plain_catalog(std::string_view schema, std::string_view name);

}  // namespace kintsugi::planner
