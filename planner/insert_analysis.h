// INSERT while it is read: where its rows belong, from VALUES, from defaults, or from the rows of a SELECT.
// Private to planner/. One thread; good as long as the Analyzer.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "planner/analyse.h"
#include "planner/work_out.h"

namespace kintsugi::planner {

class InsertAnalysis {
 public:
  InsertAnalysis(Analyzer& analyzer, const parser::Insert& insert, Analysis& analysis)
      : analyzer_(analyzer), insert_(insert), analysis_(analysis) {}
  void run();

 private:
  // What each shard would answer for itself.
  struct Own {
    bool time = false;
    std::string one_place, reads_tables;
    [[nodiscard]] std::string what(bool row_volatile) const {
      return row_volatile            ? "a volatile function"
             : time                  ? "the time"
             : !one_place.empty()    ? "the function " + one_place
             : !reads_tables.empty() ? "the function " + reads_tables
                                     : "";
    }
  };
  Own take_own() {
    return {std::exchange(analyzer_.session_time, false), std::exchange(analyzer_.one_place, {}),
            std::exchange(analyzer_.reads_tables, {})};
  }
  void give_back(const Own& own) {
    analyzer_.session_time |= own.time;
    if (analyzer_.one_place.empty()) analyzer_.one_place = own.one_place;
    if (analyzer_.reads_tables.empty()) analyzer_.reads_tables = own.reads_tables;
  }
  // Of one value of a row that stands alone.
  std::string own_of(const parser::Expr& value);
  void walk_rest();
  void at_home(const RelationUse& target);
  [[nodiscard]] bool view_of_placed_table(const RelationUse& target);
  // The rows are read first, whatever it takes, and inserted then.
  [[nodiscard]] std::optional<PourTemplate> pour_of_source() const;
  [[nodiscard]] bool has_parameters(parser::Range range) const;
  // True: so it will be, for any values.
  bool pour_always();
  // VALUES whose subqueries have to be read first.
  [[nodiscard]] std::optional<ReadFirstTemplate> subqueries_first();
  // No plan for any values.
  void refuse_always(Error error) {
    analysis_.tables.clear();
    analysis_.point.reset();
    analysis_.several = std::move(error);
  }
  void replicated(const RelationUse& target);
  // What ON CONFLICT would set to another value on each shard.
  [[nodiscard]] std::optional<Error> conflict_by_chance(const RelationUse& target) const;
  // What shards would make for themselves in the rows of a query.
  [[nodiscard]] std::string own_of_query(const RelationUse& target) const;
  // Rows for all shards: what each would make for itself is worked out once. Says what cannot be.
  std::string work_out_rows(const RelationUse& target);
  // The rows' places in the text, without keys.
  InsertTemplate rows_as_written(const RelationUse& target);
  void place_rows(InsertTemplate& made) const;
  // The place of a column in the rows.
  [[nodiscard]] std::optional<std::size_t> position_of(const Relation& relation, std::string_view name) const;
  void sharded(const RelationUse& target);
  // What PostgreSQL would say before it missed the key.
  [[nodiscard]] std::optional<Error> mistake_in_columns(const RelationUse& target);
  // A key column that ON CONFLICT would change.
  [[nodiscard]] std::optional<std::string> key_in_conflict(const RelationUse& target) const;
  // One column of a row's key. What is neither a value nor missing is left to PostgreSQL to work out.
  InsertTemplate::Value value_of(const RelationUse& target, std::size_t key,
                                 const parser::List<const parser::Expr*>* row, CellCollector* cells);
  // The keys that stand there as values.
  void take_keys(const RelationUse& target, const parser::List<const parser::Expr*>* row, CellCollector& cells);
  // What the key's column of the target stores of a value.
  [[nodiscard]] static KeyLimit limit_of_key(const RelationUse& target, std::size_t key);
  // Whether what is read stands in a value for the key.
  [[nodiscard]] bool is_key(const RelationUse& target, const parser::List<const parser::Expr*>& row,
                            parser::Range read) const;
  void rows(const RelationUse& target);
  void of_query(const RelationUse& target);

  Analyzer& analyzer_;
  const parser::Insert& insert_;
  Analysis& analysis_;
  const parser::SetOperand* values_ = nullptr;
  std::optional<Shape> shape_;
  const RelationUse* target_ = nullptr;
  bool view_ = false;
  bool row_volatile_ = false;
  Own of_rest_;
  std::string rest_problem_;
};

}  // namespace kintsugi::planner
