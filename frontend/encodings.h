// Client encodings in which the router cannot handle all that PostgreSQL can: it sees the bytes that the client
// and the shards see, and knows no letters.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"
#include "planner/plan.h"

namespace kintsugi::frontend {

// The text has a letter whose second byte is a backslash: PostgreSQL, which knows the encoding, reads on behind
// it.
[[nodiscard]] std::optional<Error> misread_in(std::string_view encoding, std::string_view text);

// The plan has values that would be quoted byte by byte, or texts in order by theirs.
[[nodiscard]] std::optional<Error> refused_in(std::string_view encoding, const planner::Plan& plan);

}  // namespace kintsugi::frontend
