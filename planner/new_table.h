// What definitions of an open transaction make of a table, before any catalogue shows it: its columns, as far
// as the definition says them. Pure.
#pragma once

#include <memory>

#include "planner/analysis.h"

namespace kintsugi::planner {

// Null where the definition does not say the columns itself (LIKE, INHERITS, OF).
std::shared_ptr<const Relation> relation_made_by(const parser::Statement& create, const shardmap::Table& table,
                                                 const NameContext& names, const Catalog& catalog);
// The relation after an ALTER TABLE.
std::shared_ptr<const Relation> relation_changed_by(const parser::Statement& alter, const Relation& before,
                                                    const NameContext& names, const Catalog& catalog);

}  // namespace kintsugi::planner
