// Names that both sides of a session know: those of the statements that the router keeps on the shards.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace kintsugi::frontend {

// Any text that PostgreSQL refuses to parse: it fails the transaction as the client's own statement should.
inline constexpr std::string_view kRefusedText = "kintsugi refuses the client's statement";

// The names under which the router keeps statements on the shards; no client has them.
inline bool is_ours(std::string_view name) {
  return name.starts_with("kg_");
}

inline Error unknown_name(std::string_view name) {
  return {.sqlstate = "26000", .message = "prepared statement \"" + std::string(name) + "\" does not exist"};
}

}  // namespace kintsugi::frontend
