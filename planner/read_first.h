// Writes of which a part reads what is not where their rows are: that part is read first, as a statement of its
// own in the same transaction, and its rows stand in its place when the statement is planned (plan.h,
// ReadFirst). A WITH that writes is such a part as well, where nothing else in the statement could see it.
//
// A part is a query that speaks of nothing around it, so that it is the same for every row; where it does, the
// tables in it are such parts. For analyse(); private to planner/.
#pragma once

#include <optional>

#include "planner/analysis_parts.h"
#include "planner/analyzer.h"

namespace kintsugi::planner {

// UPDATE (`sets`) and DELETE: of FROM or USING and of subqueries, what is not beside the target's rows.
// Nothing: none of it, or not so that it would be exact.
std::optional<ReadFirstTemplate> parts_of_write(const Analyzer& analyzer, const parser::WithClause* with,
                                                const Block& block, const parser::Expr* where,
                                                parser::List<const parser::FromItem*> items, bool sets);

// INSERT ... VALUES: its subqueries.
std::optional<ReadFirstTemplate> parts_of_rows(const Analyzer& analyzer, const parser::WithClause* with,
                                               const parser::SetOperand& rows);

// The first WITH of a statement that writes; everything else in the statement sees no table but what it writes
// to.
std::optional<ReadFirstTemplate> written_first(const Analyzer& analyzer, const parser::WithClause* with);

// SELECT f(a, b) FROM ... of one row: the arguments from `first` on, so that SELECT f(a, its value) stays.
std::optional<ReadFirstTemplate> arguments_first(Analyzer& analyzer, const parser::Query& query,
                                                 const parser::FuncCall& call, std::size_t first);

}  // namespace kintsugi::planner
