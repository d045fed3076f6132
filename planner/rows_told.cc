#include <algorithm>
#include <functional>

#include "planner/chance.h"

namespace kintsugi::planner {

using parser::as;
using parser::Expr;
using parser::ExprKind;

namespace {

// Equal in a comparison of the two types is equal in a key of either.
bool compare_exactly(std::uint32_t a, std::uint32_t b) {
  const auto integer = [](std::uint32_t type) { return type == 20 || type == 21 || type == 23; };
  const auto text = [](std::uint32_t type) { return type == 25 || type == 1043; };
  return a == 0 || b == 0 || a == b || (integer(a) && integer(b)) || (text(a) && text(b)) ||
         (a == 1700 && integer(b)) || (b == 1700 && integer(a));
}

bool is_float(std::uint32_t type) {
  return type == 700 || type == 701;
}

}  // namespace

int RowsTold::origin_of(const Expr* expr) const {
  const auto* ref = as<parser::ColumnRef>(expr);
  if (ref == nullptr || ref->star) return -1;
  const FoundColumn found = find_column(*block_.scope, *ref);
  return found.column != nullptr && found.depth == 0 ? found.column->origin : -1;
}

bool RowsTold::told(const Expr* expr) const {
  const std::function<bool(const Expr*)> holds = [&](const Expr* each) -> bool {
    if (each == nullptr) return true;
    const auto all = [&](const auto& list) {
      return std::all_of(list.begin(), list.end(), [&](const Expr* one) { return holds(one); });
    };
    switch (each->kind) {
      case ExprKind::kLiteral:
      case ExprKind::kParameter: return true;
      case ExprKind::kColumnRef: {
        const auto& ref = *as<parser::ColumnRef>(each);
        if (ref.star) return false;
        const FoundColumn found = find_column(*block_.scope, ref);
        return found.column != nullptr && (found.depth > 0 || told_.contains(found.column->origin));
      }
      case ExprKind::kOperator: {
        const auto& node = *as<parser::Operator>(each);
        return holds(node.left) && holds(node.right);
      }
      case ExprKind::kBool: return all(as<parser::BoolExpr>(each)->args);
      case ExprKind::kNot: return holds(as<parser::Not>(each)->arg);
      case ExprKind::kIsTest: return holds(as<parser::IsTest>(each)->arg);
      case ExprKind::kDistinctFrom: {
        const auto& node = *as<parser::DistinctFrom>(each);
        return holds(node.left) && holds(node.right);
      }
      case ExprKind::kLike: {
        const auto& node = *as<parser::Like>(each);
        return holds(node.arg) && holds(node.pattern) && holds(node.escape);
      }
      case ExprKind::kBetween: {
        const auto& node = *as<parser::Between>(each);
        return holds(node.arg) && holds(node.low) && holds(node.high);
      }
      case ExprKind::kInList: {
        const auto& node = *as<parser::InList>(each);
        return holds(node.arg) && all(node.list);
      }
      case ExprKind::kCase: {
        const auto& node = *as<parser::Case>(each);
        return holds(node.arg) && holds(node.otherwise) &&
               std::all_of(node.arms.begin(), node.arms.end(),
                           [&](const auto& arm) { return holds(arm.when) && holds(arm.then); });
      }
      case ExprKind::kCast: return holds(as<parser::Cast>(each)->arg);
      case ExprKind::kCollate: return holds(as<parser::Collate>(each)->arg);
      case ExprKind::kArray: return all(as<parser::Array>(each)->elements);
      case ExprKind::kRow: return all(as<parser::Row>(each)->elements);
      case ExprKind::kFuncCall: {
        const auto& call = *as<parser::FuncCall>(each);
        return call.over == nullptr && !analyzer_.is_aggregate(call) &&
               std::all_of(call.args.begin(), call.args.end(),
                           [&](const parser::Argument& arg) { return holds(arg.value); });
      }
      default: return false;
    }
  };
  return holds(expr);
}

bool RowsTold::tell(int origin, bool filled) {
  if (origin < 0) return false;
  bool news = told_.insert(origin).second;
  if (filled) news |= filled_.insert(origin).second;
  return news;
}

void RowsTold::tell(const Expr* expr) {
  const auto* collate = as<parser::Collate>(expr);
  if (collate != nullptr && (collate->collation.name() == "C" || collate->collation.name() == "POSIX"))
    expr = collate->arg;
  tell(origin_of(expr), false);
}

void RowsTold::tell_columns(const std::vector<int>& origins) {
  for (const int origin : origins) tell(origin, false);
}

bool RowsTold::determine(std::size_t part) {
  if (!parts_.insert(part).second) return false;
  const FromPart& whole = block_.parts[part];
  for (std::size_t i = 0; i < whole.filled.size(); ++i) told_.insert(whole.first + static_cast<int>(i));
  return true;
}

void RowsTold::tell_part(std::size_t part) {
  determine(part);
}

bool RowsTold::use_keys() {
  bool news = false;
  for (std::size_t part = 0; part < block_.parts.size(); ++part) {
    if (parts_.contains(part)) continue;
    const FromPart& whole = block_.parts[part];
    for (const FromPart::Key& key : whole.keys) {
      // Rows with a NULL in a unique key are not told apart by it.
      const bool known = std::all_of(key.places.begin(), key.places.end(), [&](int place) {
        const int origin = whole.first + place;
        return told_.contains(origin) &&
               (key.nulls_alike || whole.filled[static_cast<std::size_t>(place)] || filled_.contains(origin));
      });
      if (!known) continue;
      by_literals_ |= key.by_literals;
      news |= determine(part);
      break;
    }
  }
  return news;
}

bool RowsTold::use_equality(const Expr* conjunct, int low, int high) {
  const auto* equal = as<parser::Operator>(conjunct);
  if (equal == nullptr || equal->op != "=" || !equal->schema.empty() || equal->left == nullptr) return false;
  bool news = false;
  const auto use = [&](const Expr* column, const Expr* value) {
    const int origin = origin_of(column);
    if (origin < low || origin >= high || !told(value)) return;
    const auto type = analyzer_.type_of(column, *block_.scope).oid;
    const auto other = analyzer_.type_of(value, *block_.scope).oid;
    const bool constant = value->kind == ExprKind::kLiteral || value->kind == ExprKind::kParameter;
    if (!constant && (!compare_exactly(type, other) || (type == 0 && other == 0 && is_float(type)))) return;
    news |= tell(origin, true);
  };
  const auto* left = as<parser::Row>(equal->left);
  const auto* right = as<parser::Row>(equal->right);
  if (left != nullptr && right != nullptr) {
    for (std::size_t i = 0; i < left->elements.size() && i < right->elements.size(); ++i) {
      use(left->elements[i], right->elements[i]);
      use(right->elements[i], left->elements[i]);
    }
    return news;
  }
  use(equal->left, equal->right);
  use(equal->right, equal->left);
  return news;
}

bool RowsTold::all() {
  for (bool news = true; news;) {
    news = use_keys();
    for (const Block::Said& said : block_.said) {
      // What extends a row is told when all of that row is.
      bool usable = true;
      for (std::size_t part = said.kept_low; part < said.kept_high; ++part) usable &= parts_.contains(part);
      if (!usable) continue;
      if (said.conjunct != nullptr) news |= use_equality(said.conjunct, said.low, said.high);
      for (const auto& [to, from] : {std::pair(said.one, said.other), std::pair(said.other, said.one)})
        if (to >= said.low && to < said.high && told_.contains(from)) news |= tell(to, true);
    }
  }
  return parts_.size() == block_.parts.size();
}

}  // namespace kintsugi::planner
