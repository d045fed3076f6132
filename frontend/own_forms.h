// Statements and settings of Kintsugi's own that are nearly right: PostgreSQL, which would otherwise see them,
// knows neither, and a misspelt setting of ours would be kept and do nothing. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"
#include "parser/statement.h"

namespace kintsugi::frontend {

// For a text that cannot be read: 42601 with the form that it should have, when it begins like a statement of
// ours.
[[nodiscard]] std::optional<Error> misspelt(std::string_view text, const Error& problem);

// PostgreSQL's words for a name under a prefix that is an extension's own.
[[nodiscard]] Error no_such_setting(std::string_view name);

// SET kintsugi.something: 42602 when there is no such setting, 22023 when it cannot have that value.
[[nodiscard]] std::optional<Error> bad_setting(const parser::Statement& statement);

}  // namespace kintsugi::frontend
