// The tree as text, for tests and for eyes: an S-expression, one line, nothing left out that a planner would
// decide by.
#pragma once

#include <string>

#include "parser/statement.h"

namespace kintsugi::parser {

[[nodiscard]] std::string to_string(const Statement& statement);
[[nodiscard]] std::string to_string(const Query& query);
[[nodiscard]] std::string to_string(const Expr& expr);
[[nodiscard]] std::string to_string(const TypeName& type);

}  // namespace kintsugi::parser
