// The expressions of the tree.
#pragma once

#include <cstdint>
#include <optional>

#include "parser/ast.h"

namespace kintsugi::parser {

struct Query;

enum class ExprKind : std::uint8_t {
  kLiteral,
  kParameter,
  kColumnRef,
  kIndirection,
  kOperator,
  kBool,
  kNot,
  kIsTest,
  kDistinctFrom,
  kLike,
  kBetween,
  kInList,
  kQuantified,
  kSubquery,
  kFuncCall,
  kCase,
  kArray,
  kRow,
  kCast,
  kCollate,
  kAtTimeZone,
  kDefault,
};

struct Expr {
  ExprKind kind;
  Range range;  // without parentheses around it
};

template <ExprKind K>
struct ExprOf : Expr {
  static constexpr ExprKind kKind = K;
  ExprOf() : Expr{K, {}} {}
};

enum class LiteralKind : std::uint8_t { kNull, kTrue, kFalse, kInteger, kNumeric, kString, kBits, kHexBits };

struct Literal : ExprOf<ExprKind::kLiteral> {
  LiteralKind literal = LiteralKind::kNull;
  std::string_view value;  // digits as written; a string's decoded value; empty for NULL, TRUE and FALSE
};

struct Parameter : ExprOf<ExprKind::kParameter> {
  int number = 0;  // $1 is 1
};

// a, t.a, s.t.a, and with `star` also t.* ; the lone * of SELECT is Target::star.
struct ColumnRef : ExprOf<ExprKind::kColumnRef> {
  List<Name> parts;
  bool star = false;

  [[nodiscard]] std::string_view column() const {
    return star || parts.empty() ? std::string_view{} : parts.back().text;
  }
  // What stands before the column: the table or its alias.
  [[nodiscard]] std::string_view qualifier() const {
    const std::size_t own = star ? 0 : 1;
    return parts.size() <= own ? std::string_view{} : parts[parts.size() - 1 - own].text;
  }
};

// (e).field, e[1], e[1:2], (e).*
struct Indirection : ExprOf<ExprKind::kIndirection> {
  enum class Step : std::uint8_t { kField, kStar, kIndex, kSlice };
  struct Element {
    Step step = Step::kField;
    Name field;
    const Expr* low = nullptr;  // the index, or a slice's lower bound
    const Expr* high = nullptr;
  };
  const Expr* base = nullptr;
  List<Element> steps;
};

// An operator with one or two operands: `left` is nullptr for a prefix operator.
struct Operator : ExprOf<ExprKind::kOperator> {
  std::string_view op;  // != is said as <>
  List<Name> schema;    // OPERATOR(schema.+)
  Range op_range;
  const Expr* left = nullptr;
  const Expr* right = nullptr;
};

// AND and OR; chains of the same are one node.
struct BoolExpr : ExprOf<ExprKind::kBool> {
  bool is_or = false;
  List<const Expr*> args;
};

struct Not : ExprOf<ExprKind::kNot> {
  const Expr* arg = nullptr;
};

struct IsTest : ExprOf<ExprKind::kIsTest> {
  enum class Test : std::uint8_t { kNull, kTrue, kFalse, kUnknown, kDocument, kNormalized };
  Test test = Test::kNull;
  bool negated = false;
  const Expr* arg = nullptr;
  std::string_view normal_form;
};

struct DistinctFrom : ExprOf<ExprKind::kDistinctFrom> {
  bool negated = false;  // IS NOT DISTINCT FROM
  const Expr* left = nullptr;
  const Expr* right = nullptr;
};

struct Like : ExprOf<ExprKind::kLike> {
  enum class Form : std::uint8_t { kLike, kILike, kSimilar };
  Form form = Form::kLike;
  bool negated = false;
  const Expr* arg = nullptr;
  const Expr* pattern = nullptr;
  const Expr* escape = nullptr;
};

struct Between : ExprOf<ExprKind::kBetween> {
  bool negated = false;
  bool symmetric = false;
  const Expr* arg = nullptr;
  const Expr* low = nullptr;
  const Expr* high = nullptr;
};

// arg IN (list); IN (subquery) is a Subquery.
struct InList : ExprOf<ExprKind::kInList> {
  bool negated = false;
  const Expr* arg = nullptr;
  List<const Expr*> list;
  Range list_range;  // with its parentheses
};

// arg op ANY (array); op ANY (subquery) is a Subquery. SOME is ANY.
struct Quantified : ExprOf<ExprKind::kQuantified> {
  bool all = false;
  bool negated = false;  // NOT LIKE ANY
  std::string_view op;   // also LIKE and ILIKE
  List<Name> schema;
  const Expr* arg = nullptr;
  const Expr* array = nullptr;
};

struct Subquery : ExprOf<ExprKind::kSubquery> {
  enum class Form : std::uint8_t { kScalar, kExists, kIn, kAny, kAll, kArray, kUnique };
  Form form = Form::kScalar;
  bool negated = false;        // NOT IN, NOT LIKE ANY
  const Expr* test = nullptr;  // what stands before IN, op ANY or op ALL
  std::string_view op;         // of kAny and kAll
  List<Name> schema;           // OPERATOR(schema.=) ANY
  const Query* query = nullptr;
};

struct SortItem {
  enum class Direction : std::uint8_t { kDefault, kAscending, kDescending, kUsing };
  enum class Nulls : std::uint8_t { kDefault, kFirst, kLast };
  const Expr* expr = nullptr;
  Direction direction = Direction::kDefault;
  Nulls nulls = Nulls::kDefault;
  std::string_view using_operator;
  Range range;
};

struct FrameBound {
  enum class Kind : std::uint8_t {
    kUnboundedPreceding,
    kPreceding,
    kCurrentRow,
    kFollowing,
    kUnboundedFollowing
  };
  Kind kind = Kind::kCurrentRow;
  const Expr* offset = nullptr;
};

struct WindowSpec {
  std::string_view base;  // the window it builds on
  List<const Expr*> partition_by;
  List<SortItem> order_by;
  enum class Frame : std::uint8_t { kNone, kRange, kRows, kGroups };
  Frame frame = Frame::kNone;
  FrameBound start;
  FrameBound end;
  std::string_view exclude;  // current row, group, ties, no others
  Range range;
};

struct Over {
  std::string_view window;  // OVER name
  const WindowSpec* spec = nullptr;
};

struct Argument {
  std::string_view name;  // f(name => value)
  const Expr* value = nullptr;
  bool variadic = false;
};

// A function call. Also what PostgreSQL gives a syntax of its own, with `special`: coalesce, nullif, greatest,
// least, extract (its field is the first argument, a string), position, substring, overlay, trim, current_date
// and its like, grouping, overlaps (two rows), collation_for, normalize, treat, and the xml functions.
struct FuncCall : ExprOf<ExprKind::kFuncCall> {
  QualifiedName name;
  bool special = false;
  bool star = false;  // count(*)
  bool distinct = false;
  List<Argument> args;
  List<SortItem> order_by;  // within the parentheses
  List<SortItem> within_group;
  const Expr* filter = nullptr;
  const Over* over = nullptr;
  Range args_range;  // between the parentheses; empty when there are none
};

struct Case : ExprOf<ExprKind::kCase> {
  struct When {
    const Expr* when = nullptr;
    const Expr* then = nullptr;
  };
  const Expr* arg = nullptr;
  List<When> arms;
  const Expr* otherwise = nullptr;
};

struct Array : ExprOf<ExprKind::kArray> {
  List<const Expr*> elements;  // Array again where it has more dimensions
};

struct Row : ExprOf<ExprKind::kRow> {
  bool explicit_row = false;
  List<const Expr*> elements;
};

// A type as written; the names PostgreSQL has keywords for are given as in pg_type: int4, varchar, timestamptz.
struct TypeName {
  QualifiedName name;
  bool set_of = false;
  bool of_column = false;  // name%TYPE
  List<const Expr*> modifiers;
  std::string_view interval_fields;  // as written
  int dimensions = 0;                // of an array
  Range range;
};

// e::type, CAST(e AS type), and the literals type 'text' (kLiteral) and interval '1 day'.
struct Cast : ExprOf<ExprKind::kCast> {
  enum class Form : std::uint8_t { kCast, kTypecast, kLiteral };
  Form form = Form::kCast;
  const Expr* arg = nullptr;
  const TypeName* type = nullptr;
};

struct Collate : ExprOf<ExprKind::kCollate> {
  const Expr* arg = nullptr;
  QualifiedName collation;
};

struct AtTimeZone : ExprOf<ExprKind::kAtTimeZone> {
  const Expr* arg = nullptr;
  const Expr* zone = nullptr;
};

// DEFAULT where a value is written.
struct Default : ExprOf<ExprKind::kDefault> {};

}  // namespace kintsugi::parser
