// The types of expressions, as far as merging needs them: 0 where it is not certain.
#include <algorithm>
#include <charconv>
#include <limits>

#include "planner/analyzer.h"

namespace kintsugi::planner {

using parser::as;
using parser::ExprKind;

namespace {

constexpr std::uint32_t kBool = 16, kInt8 = 20, kInt2 = 21, kInt4 = 23, kText = 25, kFloat4 = 700,
                        kFloat8 = 701, kNumeric = 1700, kDate = 1082, kTimestamp = 1114, kTimestamptz = 1184;

int number_rank(std::uint32_t oid) {
  switch (oid) {
    case kInt2: return 1;
    case kInt4: return 2;
    case kInt8: return 3;
    case kNumeric: return 4;
    case kFloat4: return 5;
    case kFloat8: return 6;
    default: return 0;
  }
}

struct KnownType {
  std::string_view name;
  std::uint32_t oid;
};
constexpr KnownType kKnown[] = {
    {"bool", 16},          {"bytea", 17},      {"int8", 20},      {"int2", 21},    {"int4", 23},
    {"text", 25},          {"oid", 26},        {"json", 114},     {"float4", 700}, {"float8", 701},
    {"varchar", 1043},     {"bpchar", 1042},   {"date", 1082},    {"time", 1083},  {"timestamp", 1114},
    {"timestamptz", 1184}, {"interval", 1186}, {"numeric", 1700}, {"uuid", 2950},  {"jsonb", 3802},
    {"name", 19},          {"regclass", 2205}};

// Numbers of one type, or nothing certain.
std::uint32_t type_of_case(const Analyzer& analyzer, const parser::Case& node, const Scope& scope) {
  std::vector<const parser::Expr*> values{node.otherwise};
  for (const auto& arm : node.arms) values.push_back(arm.then);
  std::uint32_t common = 0;
  for (const parser::Expr* value : values) {
    if (value == nullptr) continue;
    const std::uint32_t oid = analyzer.type_of(value, scope).oid;
    if (number_rank(oid) == 0 || (common != 0 && common != oid)) return 0;
    common = oid;
  }
  return common;
}

// The normal form tells integers from bigints, so this holds for every text of it.
std::uint32_t type_of_integer(std::string_view digits) {
  std::int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) return 0;
  return value <= std::numeric_limits<std::int32_t>::max() ? kInt4 : kInt8;
}

}  // namespace

std::uint32_t Analyzer::type_named(const parser::TypeName& name) const {
  if (name.dimensions > 0 || name.set_of || name.of_column) return 0;
  const std::string_view schema = name.name.schema();
  // A path that names pg_catalog may find another before it.
  const auto& path = names_.search_path;
  const bool own_first = path.empty() || path.front() == "pg_catalog" ||
                         std::find(path.begin(), path.end(), "pg_catalog") == path.end();
  if ((schema.empty() && own_first) || schema == "pg_catalog")
    for (const KnownType& known : kKnown)
      if (known.name == name.name.name()) return known.oid;
  const Type* type = schema.empty() ? catalog_.find_type(names_.search_path, name.name.name())
                                    : catalog_.type(schema, name.name.name());
  return type == nullptr ? 0 : type->oid;
}

Analyzer::ExprType Analyzer::type_of(const parser::Expr* expr, const Scope& scope) const {
  if (expr == nullptr) return {};
  switch (expr->kind) {
    case ExprKind::kLiteral: {
      const auto& literal = *as<parser::Literal>(expr);
      switch (literal.literal) {
        case parser::LiteralKind::kTrue:
        case parser::LiteralKind::kFalse: return {kBool, {}};
        case parser::LiteralKind::kInteger: return {type_of_integer(literal.value), {}};
        case parser::LiteralKind::kNumeric: return {kNumeric, {}};
        case parser::LiteralKind::kString: return {kText, "default"};
        default: return {};
      }
    }
    case ExprKind::kColumnRef: {
      const auto& ref = *as<parser::ColumnRef>(expr);
      if (ref.star) return {};
      const FoundColumn found = find_column(scope, ref);
      if (found.column == nullptr) return {};
      std::uint32_t oid = found.column->type;
      for (const Type* type = catalog_.type(oid); type != nullptr && type->kind == 'd';
           type = catalog_.type(oid))
        oid = type->base;
      return {oid, found.column->collation};
    }
    case ExprKind::kCast: {
      const auto& cast = *as<parser::Cast>(expr);
      std::uint32_t oid = type_named(*cast.type);
      const ExprType inner = type_of(cast.arg, scope);
      for (const Type* type = catalog_.type(oid); type != nullptr && type->kind == 'd';
           type = catalog_.type(oid))
        oid = type->base;
      return {oid, inner.collation.empty() ? std::string_view("default") : inner.collation};
    }
    case ExprKind::kCollate: {
      const auto& collate = *as<parser::Collate>(expr);
      return {type_of(collate.arg, scope).oid, collate.collation.name()};
    }
    case ExprKind::kBool:
    case ExprKind::kNot:
    case ExprKind::kIsTest:
    case ExprKind::kDistinctFrom:
    case ExprKind::kLike:
    case ExprKind::kBetween:
    case ExprKind::kInList:
    case ExprKind::kQuantified: return {kBool, {}};
    case ExprKind::kCase: return {type_of_case(*this, *as<parser::Case>(expr), scope), {}};
    case ExprKind::kSubquery: {
      const auto form = as<parser::Subquery>(expr)->form;
      const bool scalar = form == parser::Subquery::Form::kScalar || form == parser::Subquery::Form::kArray;
      return {scalar ? 0 : kBool, {}};
    }
    case ExprKind::kOperator: {
      const auto& node = *as<parser::Operator>(expr);
      static constexpr std::string_view kComparisons[] = {"=", "<>", "<", "<=", ">", ">="};
      if (node.left != nullptr &&
          std::find(std::begin(kComparisons), std::end(kComparisons), node.op) != std::end(kComparisons))
        return {kBool, {}};
      const ExprType right = type_of(node.right, scope);
      if (node.left == nullptr) {
        if ((node.op == "-" || node.op == "+") && number_rank(right.oid) > 0) return right;
        return {};
      }
      const ExprType left = type_of(node.left, scope);
      const bool arithmetic =
          node.op == "+" || node.op == "-" || node.op == "*" || node.op == "/" || node.op == "%";
      if (arithmetic && number_rank(left.oid) > 0 && number_rank(right.oid) > 0 && number_rank(left.oid) <= 4 &&
          number_rank(right.oid) <= 4)
        return {number_rank(left.oid) > number_rank(right.oid) ? left.oid : right.oid, {}};
      return {};
    }
    case ExprKind::kFuncCall: {
      const auto& call = *as<parser::FuncCall>(expr);
      const std::string_view name = call.name.name();
      if (call.special) {
        if (name == "extract") return {kNumeric, {}};
        if (name == "current_date") return {kDate, {}};
        if (name == "current_timestamp") return {kTimestamptz, {}};
        if (name == "localtimestamp") return {kTimestamp, {}};
        if (name == "coalesce" || name == "greatest" || name == "least") {
          ExprType common;
          for (const parser::Argument& arg : call.args) {
            const ExprType each = type_of(arg.value, scope);
            if (each.oid == 0) return {};
            if (common.oid == 0) common = each;
            if (common.oid != each.oid) return {};
            if (common.collation != each.collation) common.collation = "default";
          }
          return common;
        }
        return {};
      }
      const Function* function = function_of(call);
      if (function == nullptr || function->schema != "pg_catalog") return {};
      if (name == "count") return {kInt8, {}};
      if (call.args.size() == 1 && (name == "min" || name == "max")) {
        ExprType arg = type_of(call.args[0].value, scope);
        if (arg.oid == 1043) arg.oid = kText;
        return arg;
      }
      if (call.args.size() == 1 && name == "sum") {
        const std::uint32_t arg = type_of(call.args[0].value, scope).oid;
        if (arg == kInt2 || arg == kInt4) return {kInt8, {}};
        if (arg == kInt8 || arg == kNumeric) return {kNumeric, {}};
        return {};
      }
      if (name == "generate_series" && !call.args.empty()) {
        const std::uint32_t arg = type_of(call.args[0].value, scope).oid;
        return {arg == kInt4 || arg == kInt8 || arg == kNumeric ? arg : 0, {}};
      }
      return {function->returns == kText ? 0 : function->returns, {}};
    }
    default: return {};
  }
}

}  // namespace kintsugi::planner
