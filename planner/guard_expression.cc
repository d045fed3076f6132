// The expressions of a statement, as the tenant guard reads them.
#include <algorithm>

#include "planner/guard_reader.h"
#include "planner/guard_words.h"

namespace kintsugi::planner {

using parser::as;
using parser::ExprKind;

namespace {

constexpr int kExpressionsDeep = 400;

bool system_column(std::string_view name) {
  static constexpr std::string_view kNames[] = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool plain_schema(parser::List<parser::Name> schema) {
  return schema.empty() || (schema.size() == 1 && schema[0].text == "pg_catalog");
}

// Whether it is another value for another row.
bool varies(const parser::Expr* expr) {
  if (expr == nullptr) return false;
  switch (expr->kind) {
    case ExprKind::kLiteral:
    case ExprKind::kParameter:
    case ExprKind::kDefault: return false;
    case ExprKind::kOperator: {
      const auto& node = *as<parser::Operator>(expr);
      return varies(node.left) || varies(node.right);
    }
    case ExprKind::kCast: return varies(as<parser::Cast>(expr)->arg);
    case ExprKind::kAtTimeZone: {
      const auto& node = *as<parser::AtTimeZone>(expr);
      return varies(node.arg) || varies(node.zone);
    }
    case ExprKind::kArray: {
      const auto& node = *as<parser::Array>(expr);
      return std::any_of(node.elements.begin(), node.elements.end(), varies);
    }
    case ExprKind::kFuncCall: {
      const auto& node = *as<parser::FuncCall>(expr);
      return node.star || node.over != nullptr || node.filter != nullptr || !node.order_by.empty() ||
             !node.within_group.empty() ||
             std::any_of(node.args.begin(), node.args.end(),
                         [](const parser::Argument& arg) { return varies(arg.value); });
    }
    default: return true;
  }
}

}  // namespace

void GuardReader::column(const parser::ColumnRef& ref, const Frame& frame) {
  if (ref.parts.size() > 3) return no("a name of four parts");
  if (ref.qualifier().empty()) return;
  for (const Frame* at = &frame; at != nullptr; at = at->outer)
    for (const Item& item : at->items) {
      if (item.alias != ref.qualifier()) continue;
      // t.f may also be a call of f.
      if (!ref.star && item.relation != nullptr && item.relation->column(ref.column()) == nullptr &&
          !system_column(ref.column()))
        no("\"" + std::string(ref.column()) + "\", which is no column of " + item.display + ",");
      return;
    }
  no("\"" + std::string(ref.qualifier()) + "\", which is not known here,");
}

void GuardReader::like(const parser::Like& like, const Frame& frame, Context context) {
  expr(like.arg, frame, context);
  expr(like.pattern, frame, context);
  expr(like.escape, frame, context);
  if (context != Context::kFilter) return;
  if (like.form == parser::Like::Form::kSimilar || like.escape != nullptr)
    return not_silent("SIMILAR TO or ESCAPE in a condition");
  if (const auto source = analyzer_.source_of(like.pattern))
    proof_.patterns.push_back(*source);
  else
    not_silent("LIKE with a pattern that is worked out");
}

void GuardReader::subquery(const parser::Subquery& subquery, const Frame& frame, Context context) {
  using Form = parser::Subquery::Form;
  expr(subquery.test, frame, context);
  if (!plain_schema(subquery.schema)) no("an operator with a schema");
  if (subquery.form == Form::kUnique) no("UNIQUE (...)");
  if (context == Context::kFilter) {
    if ((subquery.form == Form::kAny || subquery.form == Form::kAll) && !is_silent_operator(subquery.op))
      not_silent("the operator " + std::string(subquery.op) + " in a condition");
    if (subquery.form == Form::kScalar) {
      // Several rows are an error.
      const parser::Select* select = subquery.query->simple();
      const auto* one = select == nullptr || select->targets.size() != 1
                            ? nullptr
                            : as<parser::FuncCall>(select->targets[0].expr);
      const bool single = (one != nullptr && analyzer_.is_aggregate(*one) && select->group_by.empty()) ||
                          subquery.query->limit_one;
      if (!single)
        not_silent("a condition with a subquery that may have several rows (let it be an aggregate)");
    }
  }
  query(*subquery.query, &frame, context);
}

void GuardReader::call(const parser::FuncCall& call, const Frame& frame, Context context, bool changes) {
  const std::string_view name = call.name.name();
  const std::string shown(name);
  if (!is_calm_function(name) || call.name.parts.size() > 2 ||
      (!call.name.schema().empty() && call.name.schema() != "pg_catalog"))
    return no("the function " + shown);
  if (!call.special) {
    const Function* function = analyzer_.catalog().function("pg_catalog", name);
    if (function == nullptr) return no("the function " + shown + ", which is not known,");
    if (call.name.schema().empty())
      for (const std::string& schema : analyzer_.names().search_path)
        if (schema != "pg_catalog" && analyzer_.catalog().function(schema, name) != nullptr)
          return no("the function " + shown + ", of which schema " + schema + " has one too,");
  }
  if (context == Context::kFilter && changes && !is_silent_function(name) && call.over == nullptr &&
      !analyzer_.is_aggregate(call))
    not_silent("the function " + shown + " of a column in a condition");
  // An aggregate's and a window's arguments are evaluated for rows that have passed all conditions.
  const Context of_args = call.over != nullptr || analyzer_.is_aggregate(call) ? Context::kOutput : context;
  for (const parser::Argument& arg : call.args) expr(arg.value, frame, of_args);
  for (const parser::SortItem& item : call.order_by) expr(item.expr, frame, of_args);
  for (const parser::SortItem& item : call.within_group) expr(item.expr, frame, of_args);
  expr(call.filter, frame, of_args);
  if (call.over == nullptr || call.over->spec == nullptr) return;
  for (const parser::Expr* each : call.over->spec->partition_by) expr(each, frame, context);
  for (const parser::SortItem& item : call.over->spec->order_by) expr(item.expr, frame, context);
  expr(call.over->spec->start.offset, frame, context);
  expr(call.over->spec->end.offset, frame, context);
}

void GuardReader::expr(const parser::Expr* expr_, const Frame& frame, Context context) {
  if (expr_ == nullptr || !proof_.why.empty()) return;
  if (++depth_ > kExpressionsDeep) no("an expression nested this deep");
  const auto each = [&](auto&& list) {
    for (const parser::Expr* one : list) expr(one, frame, context);
  };
  const bool filter = context == Context::kFilter;
  switch (expr_->kind) {
    case ExprKind::kLiteral:
    case ExprKind::kParameter:
    case ExprKind::kDefault: break;
    case ExprKind::kColumnRef: column(*as<parser::ColumnRef>(expr_), frame); break;
    case ExprKind::kIndirection: {
      const auto& node = *as<parser::Indirection>(expr_);
      expr(node.base, frame, context);
      for (const auto& step : node.steps) {
        if (step.step == parser::Indirection::Step::kField || step.step == parser::Indirection::Step::kStar)
          no("a field of a row");  // it may be a call as well
        expr(step.low, frame, context);
        expr(step.high, frame, context);
      }
      break;
    }
    case ExprKind::kOperator: {
      const auto& node = *as<parser::Operator>(expr_);
      if (!plain_schema(node.schema)) no("an operator with a schema");
      if (filter && varies(expr_) && !is_silent_operator(node.op))
        not_silent("the operator " + std::string(node.op) + " with a column in a condition");
      expr(node.left, frame, context);
      expr(node.right, frame, context);
      break;
    }
    case ExprKind::kBool: each(as<parser::BoolExpr>(expr_)->args); break;
    case ExprKind::kNot: expr(as<parser::Not>(expr_)->arg, frame, context); break;
    case ExprKind::kIsTest: {
      const auto& node = *as<parser::IsTest>(expr_);
      if (filter &&
          (node.test == parser::IsTest::Test::kDocument || node.test == parser::IsTest::Test::kNormalized))
        not_silent("this test in a condition");
      expr(node.arg, frame, context);
      break;
    }
    case ExprKind::kDistinctFrom: {
      const auto& node = *as<parser::DistinctFrom>(expr_);
      expr(node.left, frame, context);
      expr(node.right, frame, context);
      break;
    }
    case ExprKind::kLike: like(*as<parser::Like>(expr_), frame, context); break;
    case ExprKind::kBetween: {
      const auto& node = *as<parser::Between>(expr_);
      expr(node.arg, frame, context);
      expr(node.low, frame, context);
      expr(node.high, frame, context);
      break;
    }
    case ExprKind::kInList: {
      const auto& node = *as<parser::InList>(expr_);
      expr(node.arg, frame, context);
      each(node.list);
      break;
    }
    case ExprKind::kQuantified: {
      const auto& node = *as<parser::Quantified>(expr_);
      if (!plain_schema(node.schema)) no("an operator with a schema");
      if (filter && !is_silent_operator(node.op))
        not_silent("the operator " + std::string(node.op) + " ANY in a condition");
      expr(node.arg, frame, context);
      expr(node.array, frame, context);
      break;
    }
    case ExprKind::kSubquery: subquery(*as<parser::Subquery>(expr_), frame, context); break;
    case ExprKind::kFuncCall: call(*as<parser::FuncCall>(expr_), frame, context, varies(expr_)); break;
    case ExprKind::kCase: {
      const auto& node = *as<parser::Case>(expr_);
      expr(node.arg, frame, context);
      for (const auto& arm : node.arms) {
        expr(arm.when, frame, context);
        expr(arm.then, frame, context);
      }
      expr(node.otherwise, frame, context);
      break;
    }
    case ExprKind::kArray: each(as<parser::Array>(expr_)->elements); break;
    case ExprKind::kRow: each(as<parser::Row>(expr_)->elements); break;
    case ExprKind::kCast: {
      const auto& node = *as<parser::Cast>(expr_);
      const std::string_view name = node.type->name.name();
      const bool text = (name == "text" || name == "varchar") && node.type->modifiers.empty() &&
                        node.type->dimensions == 0 &&
                        (node.type->name.schema().empty() || node.type->name.schema() == "pg_catalog");
      if (filter && !text && varies(node.arg)) not_silent("a cast of a column in a condition");
      expr(node.arg, frame, context);
      break;
    }
    case ExprKind::kCollate: expr(as<parser::Collate>(expr_)->arg, frame, context); break;
    case ExprKind::kAtTimeZone: {
      const auto& node = *as<parser::AtTimeZone>(expr_);
      if (filter && varies(expr_)) not_silent("AT TIME ZONE of a column in a condition");
      expr(node.arg, frame, context);
      expr(node.zone, frame, context);
      break;
    }
  }
  --depth_;
}

}  // namespace kintsugi::planner
