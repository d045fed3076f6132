// Constraints and collations with which a sharded table would not be what one PostgreSQL has: those that hold
// on each shard alone, and those that would take a row's key away. Pure.
#pragma once

#include <optional>

#include "planner/analyzer.h"

namespace kintsugi::planner {

std::optional<Error> check_key_constraints(Analyzer& analyzer, const parser::CreateTable& table,
                                           const shardmap::Table& made);
std::optional<Error> check_key_constraints(Analyzer& analyzer, const parser::AlterCommand& command,
                                           const RelationUse& table);

}  // namespace kintsugi::planner
