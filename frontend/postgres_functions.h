// Which functions are PostgreSQL's own and leave nothing behind in the session. Any thread; nothing allocates.
#pragma once

#include <string_view>

namespace kintsugi::frontend {

// `name` as PostgreSQL has it: folded, unquoted.
[[nodiscard]] bool is_postgres_function(std::string_view name);

}  // namespace kintsugi::frontend
