// Reads one statement for the tenant guard: which keys its rows are pinned to, or what in it nothing can be
// proven of. Knows its own small set of forms that are safe and refuses all others, so that what the rest of
// the planner learns to do does not widen it. Private to planner/. One thread, one statement.
//
// The rules, with their reasons:
//   - A sharded table needs `key = value` for each key column in the WHERE of the query it stands in, in the ON
//     of a join whose rows that ON restricts, or by equality with a table that has it. A condition further out
//     does not count: what runs before it would see other tenants' rows.
//   - A condition may be evaluated for rows that another condition leaves out, in an order of PostgreSQL's
//     choosing. So where there are sharded tables, conditions consist of what cannot fail: an error, or its
//     absence, would tell of those rows.
//   - Functions are known by name and from pg_catalog: others may run SQL.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/analysis_parts.h"
#include "planner/analyzer.h"

namespace kintsugi::planner {

class GuardReader {
 public:
  GuardReader(Analyzer& analyzer, const parser::Statement& statement)
      : analyzer_(analyzer), statement_(statement) {}

  GuardProof read();

 private:
  using Sources = std::vector<std::optional<Source>>;  // one a key column
  struct Item {
    std::string_view alias;
    const Relation* relation = nullptr;      // null: a subquery, a common table, a function
    const shardmap::Table* table = nullptr;  // sharded
    std::string display;
    Sources pins;
    bool target = false;  // INSERT's: its rows are not read
  };
  // JOIN ... USING of two tables' keys: the rows of items [from, to) have the other's.
  struct Using {
    std::size_t left, left_column, right, right_column, from, to;
  };
  struct Frame {
    std::vector<Item> items;
    std::vector<Using> usings;
    const Frame* outer = nullptr;
  };
  // A condition that holds for the rows of items [low, high).
  struct Condition {
    const parser::Expr* expr;
    std::size_t low, high;
  };
  struct KeyColumn {
    const Frame* frame = nullptr;
    std::size_t item = 0;
    std::size_t column = 0;
  };
  // Whether an error in it could tell of rows that are left out.
  enum class Context : std::uint8_t { kOutput, kFilter };

  void no(std::string why);          // in any statement
  void not_silent(std::string why);  // where there are sharded tables

  void query(const parser::Query& query, const Frame* outer, Context targets);
  void operand(const parser::SetOperand& operand, const parser::Query& owner, const Frame* outer,
               Context targets);
  void select(const parser::Select& select, const parser::Query* owner, const Frame* outer, Context targets);
  bool with(const parser::WithClause* with, const Frame* outer);
  void insert(const parser::Insert& insert);
  void insert_query(const parser::Insert& insert, const Item& target);
  void on_conflict(const parser::OnConflict& conflict, const shardmap::Table& table, const Frame& frame);
  void update(const parser::Update& update);
  void del(const parser::Delete& del);
  void take_set(parser::List<parser::SetClause> set, const Frame& frame);
  // FROM with its conditions: registers, pins, then reads what stands inside.
  void read_from(parser::List<const parser::FromItem*> items, const parser::Expr* where, Frame& frame,
                 Context inner);
  void add(const parser::FromItem& item, Frame& frame, std::vector<Condition>& conditions);
  void add_table(const parser::TableRef& ref, Frame& frame, bool target);
  void inside(const parser::FromItem& item, const Frame& frame, Context targets);
  void pin(Frame& frame, const std::vector<Condition>& conditions);
  void require_pins(const Frame& frame);

  [[nodiscard]] std::optional<KeyColumn> key_column(const parser::Expr* expr, const Frame& frame) const;
  [[nodiscard]] std::optional<Source> pinned_value(const parser::Expr* expr, const Frame& frame);

  void expr(const parser::Expr* expr, const Frame& frame, Context context);
  void column(const parser::ColumnRef& ref, const Frame& frame);
  void call(const parser::FuncCall& call, const Frame& frame, Context context, bool varies);
  void like(const parser::Like& like, const Frame& frame, Context context);
  void subquery(const parser::Subquery& subquery, const Frame& frame, Context context);
  void targets(parser::List<parser::Target> list, const Frame& frame, Context context);

  Analyzer& analyzer_;
  const parser::Statement& statement_;
  GuardProof proof_;
  std::string not_silent_;
  std::vector<std::string_view> commons_;
  bool sharded_ = false;
  bool shared_ = false;  // replicated or system tables
  bool locks_ = false;
  int depth_ = 0;
};

}  // namespace kintsugi::planner
