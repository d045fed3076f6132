// What an INSERT may give a key's column. Private to planner/.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "parser/normalise.h"
#include "shardmap/key_type.h"

namespace kintsugi::planner {

// PostgreSQL's error for a literal that none of its own casts brings into the column, though an explicit one
// might (true into a bigint). Nothing: it may be given.
std::optional<Error> unassignable(parser::SlotKind literal, shardmap::KeyType type, const std::string& column);

}  // namespace kintsugi::planner
