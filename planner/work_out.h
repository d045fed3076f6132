// Writes with values that a PostgreSQL has to work out first: which of their expressions, and the statement
// around them. Private to planner/.
#pragma once

#include "planner/analyzer.h"
#include "planner/make_insert.h"

namespace kintsugi::planner {

// ---- for analyse()

// Whether the expression can be worked out beside the statement: it reads no tables.
bool stands_alone(std::string_view text, parser::Range range);
// What the column is when nothing is said; empty: NULL.
std::string default_of(const Relation& relation, const Column& column);

// The values of an INSERT, collected row by row.
class CellCollector {
 public:
  CellCollector(const parser::Insert& insert, const Relation& relation, std::string_view text)
      : insert_(insert), relation_(relation), text_(text) {}
  void next_row() { rows_.emplace_back(); }
  // False: it cannot be done.
  bool take_default(const Column& column, std::optional<std::size_t> position);
  bool take_value(const parser::Expr& value, std::size_t position);
  // The key as the column's type has it: for values that PostgreSQL casts when it stores them.
  bool take_key(const parser::Expr& value, std::size_t position, std::string type);
  [[nodiscard]] bool empty() const;
  // `columns`: of the rows, when the statement does not name them. `times`: calls of now() and the like behind
  // the rows, which are worked out as well.
  std::optional<WorkOutTemplate> make(parser::Range whole, std::size_t columns,
                                      std::vector<parser::Range> times = {});

 private:
  const parser::Insert& insert_;
  const Relation& relation_;
  std::string_view text_;
  std::vector<std::vector<WorkOutTemplate::Cell>> rows_;
  std::vector<std::string> added_;  // columns
  bool overrides_ = false;          // an identity column that is GENERATED ALWAYS
};

// An UPDATE or DELETE that says now() and the like, and nothing else that shards would differ in.
std::optional<WorkOutTemplate> times_worked_out(const Analyzer& analyzer, parser::Range whole);
// A definition without these times; `edits` are made to the rest of it.
std::optional<WorkOutTemplate> times_taken_out(std::vector<parser::Range> times, parser::Range whole,
                                               const TextEdits& edits);
// The same for what several shards do: all of them shall see one time. A column that PostgreSQL calls after
// such a call gets that name.
std::optional<WorkOutTemplate> one_time_for_all(const Analyzer& analyzer);
// What keys are compared with, and the times with it when there is more than one shard all the same.
std::optional<WorkOutTemplate> keys_worked_out(const Analyzer& analyzer, bool times);
// Whether times can be worked out: none is in RETURNING, where the column's name would become another.
bool times_can_be_worked_out(const Analyzer& analyzer, parser::Range returning);

// ---- for make_plan()

Result<Plan> work_out_insert(const WorkOutTemplate& work, const InsertRows& rows, const InsertTemplate& insert,
                             const RenderContext& context);
Result<Plan> work_out_write(const WorkOutTemplate& work, const RenderContext& context);

}  // namespace kintsugi::planner
