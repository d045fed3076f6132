// Queries and the statements that write rows.
#pragma once

#include "parser/ast_expression.h"

namespace kintsugi::parser {

struct Select;
struct CommonTable;

// ---- FROM

enum class FromKind : std::uint8_t { kTable, kSubquery, kFunction, kJoin };

struct Alias {
  Name name;           // empty: none
  List<Name> columns;  // AS t (a, b)
  Range range;
  [[nodiscard]] bool given() const { return !name.text.empty(); }
};

// One column of AS t (a int, b text).
struct ColumnDefinitionItem {
  Name name;
  const TypeName* type = nullptr;
  QualifiedName collation;
};

struct FromItem {
  FromKind kind;
  Range range;
  Alias alias;
  bool lateral = false;
};

template <FromKind K>
struct FromItemOf : FromItem {
  static constexpr FromKind kKind = K;
  FromItemOf() : FromItem{K, {}, {}, false} {}
};

struct TableSample {
  QualifiedName method;
  List<const Expr*> args;
  const Expr* repeatable = nullptr;
};

struct TableRef : FromItemOf<FromKind::kTable> {
  QualifiedName name;
  bool only = false;
  const TableSample* sample = nullptr;
};

struct SubqueryRef : FromItemOf<FromKind::kSubquery> {
  const Query* query = nullptr;
};

// f(...), ROWS FROM (...), XMLTABLE (...).
struct FunctionRef : FromItemOf<FromKind::kFunction> {
  List<const Expr*> functions;
  bool rows_from = false;
  bool with_ordinality = false;
  List<ColumnDefinitionItem> columns;
};

struct Join : FromItemOf<FromKind::kJoin> {
  enum class Type : std::uint8_t { kInner, kLeft, kRight, kFull, kCross };
  Type type = Type::kInner;
  bool natural = false;
  const FromItem* left = nullptr;
  const FromItem* right = nullptr;
  List<Name> using_columns;
  std::string_view using_alias;
  const Expr* on = nullptr;
};

// ---- SELECT

struct Target {
  const Expr* expr = nullptr;  // nullptr: the lone *
  bool star = false;
  Name alias;  // empty: none
  Range range;
};

struct GroupItem {
  enum class Kind : std::uint8_t { kExpr, kEmpty, kRollup, kCube, kSets };
  Kind kind = Kind::kExpr;
  const Expr* expr = nullptr;
  List<const Expr*> exprs;  // of ROLLUP and CUBE
  List<GroupItem> sets;
  Range range;
};

struct WindowDefinition {
  Name name;
  const WindowSpec* spec = nullptr;
};

struct Locking {
  enum class Strength : std::uint8_t { kKeyShare, kShare, kNoKeyUpdate, kUpdate };
  enum class Wait : std::uint8_t { kBlock, kSkip, kNoWait };
  Strength strength = Strength::kUpdate;
  Wait wait = Wait::kBlock;
  List<QualifiedName> of;
  Range range;
};

struct IntoClause {
  QualifiedName table;
  bool temporary = false;
  bool unlogged = false;
};

// One SELECT without set operations, ORDER BY and LIMIT. A clause's range includes its keyword and is empty
// when the clause is absent.
struct Select {
  Range range;
  bool distinct = false;
  List<const Expr*> distinct_on;
  List<Target> targets;
  const IntoClause* into = nullptr;
  List<const FromItem*> from;
  const Expr* where = nullptr;
  List<GroupItem> group_by;
  bool group_distinct = false;
  const Expr* having = nullptr;
  List<WindowDefinition> windows;

  Range select_list;  // the targets, without SELECT and DISTINCT
  Range from_clause;
  Range where_clause;
  Range group_clause;
  Range having_clause;
  Range window_clause;
};

// A tree of UNION, INTERSECT and EXCEPT over its leaves.
struct SetOperand {
  enum class Kind : std::uint8_t { kSelect, kValues, kTable, kQuery, kUnion, kIntersect, kExcept };
  Kind kind = Kind::kSelect;
  bool all = false;
  const SetOperand* left = nullptr;  // of the three set operations
  const SetOperand* right = nullptr;
  const Select* select = nullptr;
  List<List<const Expr*>> values;
  List<Range> value_rows;           // each row with its parentheses
  const TableRef* table = nullptr;  // TABLE t
  const Query* query = nullptr;     // one in parentheses
  Range range;
};

struct WithClause {
  bool recursive = false;
  List<const CommonTable*> tables;
  Range range;
};

// A query: WITH, its operands, ORDER BY, LIMIT, locking.
struct Query {
  Range range;  // without parentheses around it
  const WithClause* with = nullptr;
  const SetOperand* body = nullptr;
  List<SortItem> order_by;
  const Expr* limit = nullptr;  // nullptr: none, LIMIT ALL, or FETCH FIRST ROW ONLY with limit_one
  bool limit_all = false;
  bool limit_one = false;
  bool with_ties = false;
  const Expr* offset = nullptr;
  List<Locking> locking;

  Range order_clause;
  Range limit_clause;
  Range offset_clause;
  Range locking_clause;

  // The single SELECT of a query without set operations and VALUES, else nullptr.
  [[nodiscard]] const Select* simple() const {
    return body != nullptr && body->kind == SetOperand::Kind::kSelect ? body->select : nullptr;
  }
};

// ---- INSERT, UPDATE, DELETE, MERGE

// column, column[1], column.field on the left of an assignment or in INSERT's list.
struct AssignTarget {
  Name column;
  List<Indirection::Element> steps;
  Range range;
};

// a = e, or (a, b) = e.
struct SetClause {
  List<AssignTarget> targets;
  bool multiple = false;
  const Expr* value = nullptr;
  Range range;
};

struct IndexElement {
  Name column;  // or
  const Expr* expr = nullptr;
  QualifiedName collation;
  QualifiedName operator_class;
  SortItem::Direction direction = SortItem::Direction::kDefault;
  SortItem::Nulls nulls = SortItem::Nulls::kDefault;
  Range range;
};

struct OnConflict {
  bool do_update = false;
  List<IndexElement> target;
  const Expr* target_where = nullptr;
  Name constraint;
  List<SetClause> set;
  const Expr* where = nullptr;
  Range range;
};

struct Insert {
  const WithClause* with = nullptr;
  TableRef table;
  List<AssignTarget> columns;
  Range columns_range;            // with parentheses; empty: none
  std::string_view overriding;    // user, system
  const Query* source = nullptr;  // nullptr: DEFAULT VALUES
  const OnConflict* on_conflict = nullptr;
  List<Target> returning;
  Range returning_clause;
  Range range;
};

struct Update {
  const WithClause* with = nullptr;
  TableRef table;
  List<SetClause> set;
  List<const FromItem*> from;
  const Expr* where = nullptr;
  Name current_of;
  List<Target> returning;
  Range set_clause;  // the assignments, without SET
  Range from_clause;
  Range where_clause;
  Range returning_clause;
  Range range;
};

struct Delete {
  const WithClause* with = nullptr;
  TableRef table;
  List<const FromItem*> using_items;
  const Expr* where = nullptr;
  Name current_of;
  List<Target> returning;
  Range using_clause;
  Range where_clause;
  Range returning_clause;
  Range range;
};

struct MergeWhen {
  enum class Action : std::uint8_t { kUpdate, kDelete, kInsert, kNothing };
  bool matched = true;
  const Expr* condition = nullptr;
  Action action = Action::kNothing;
  List<SetClause> set;
  List<AssignTarget> columns;
  List<const Expr*> values;  // empty with kInsert: DEFAULT VALUES
  Range range;
};

struct Merge {
  const WithClause* with = nullptr;
  TableRef table;
  const FromItem* source = nullptr;
  const Expr* on = nullptr;
  List<MergeWhen> when;
  Range range;
};

// Any of the five that may stand in WITH, behind EXPLAIN, PREPARE and COPY. Exactly one is set.
struct Preparable {
  const Query* query = nullptr;
  const Insert* insert = nullptr;
  const Update* update = nullptr;
  const Delete* del = nullptr;
  const Merge* merge = nullptr;
  Range range;
};

struct CommonTable {
  Name name;
  List<Name> columns;
  enum class Materialized : std::uint8_t { kDefault, kYes, kNo };
  Materialized materialized = Materialized::kDefault;
  Preparable body;
  bool search = false;
  bool cycle = false;
  Range range;
};

}  // namespace kintsugi::parser
