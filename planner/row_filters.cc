#include "planner/row_filters.h"

#include <algorithm>
#include <functional>

namespace kintsugi::planner {

using parser::as;
using parser::Expr;
using parser::ExprKind;
using Kind = RelationUse::Kind;

namespace {

// ON of the joins that every row of FROM has met: those that no outer join stands above, on the side it may
// leave empty.
void inner_conditions(const parser::FromItem* item, std::vector<const Expr*>& found) {
  const auto* join = item == nullptr ? nullptr : as<parser::Join>(item);
  if (join == nullptr) return;
  using Type = parser::Join::Type;
  const bool inner = join->type == Type::kInner || join->type == Type::kCross;
  if (inner && join->on != nullptr) Analyzer::conjuncts(join->on, found);
  if (inner || join->type == Type::kLeft) inner_conditions(join->left, found);
  if (inner || join->type == Type::kRight) inner_conditions(join->right, found);
}

// Columns of these types are equal when their values' texts mean the same, in whichever of them.
bool same_values(const Column& a, const Column& b) {
  const auto family = [](const Column& column) {
    switch (column.type) {
      case 20:
      case 21:
      case 23: return 1;
      case 2950: return 2;
      case 1082: return 3;
      case 25:
      case 1043: return column.collation.empty() || column.collation == "default" ? 4 : 0;
      default: return 0;
    }
  };
  return family(a) != 0 && family(a) == family(b);
}

bool is_strong(const RowFilter& filter) {
  if (!filter.arms.empty()) return true;
  if (const auto* compare = as<parser::Operator>(filter.whole)) return compare->op == "=";
  if (const auto* list = as<parser::InList>(filter.whole)) return !list->negated;
  if (const auto* like = as<parser::Like>(filter.whole)) return !like->negated;
  return false;
}

}  // namespace

const std::vector<const Expr*>& RowFilters::conditions_of(const RelationUse& use) const {
  auto [at, made] = conditions_.try_emplace(use.block);
  if (made && use.block != nullptr) {
    if (use.block->where != nullptr) Analyzer::conjuncts(use.block->where, at->second);
    for (const parser::FromItem* item : use.block->from) inner_conditions(item, at->second);
  }
  return at->second;
}

std::optional<RowFilters::Uses> RowFilters::uses_of(const Expr* expr, const Scope& scope,
                                                    const Uses& allowed) const {
  Uses found;
  std::function<bool(const Expr*)> holds = [&](const Expr* each) -> bool {
    if (each == nullptr) return true;
    const auto all = [&](const auto& list) {
      return std::all_of(list.begin(), list.end(), [&](const Expr* one) { return holds(one); });
    };
    const auto all_args = [&](const auto& list) {
      return std::all_of(list.begin(), list.end(),
                         [&](const parser::Argument& one) { return holds(one.value); });
    };
    switch (each->kind) {
      case ExprKind::kLiteral:
      case ExprKind::kParameter: return true;
      case ExprKind::kColumnRef: {
        const auto& ref = *as<parser::ColumnRef>(each);
        if (ref.star || ref.parts.size() > 2) return false;
        const FoundColumn column = find_column(scope, ref);
        if (column.column == nullptr || column.depth != 0 || !allowed.contains(column.column->use))
          return false;
        found.insert(column.column->use);
        return true;
      }
      case ExprKind::kOperator: {
        const auto& node = *as<parser::Operator>(each);
        return node.schema.empty() && holds(node.left) && holds(node.right);
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
      case ExprKind::kQuantified: {
        const auto& node = *as<parser::Quantified>(each);
        return node.schema.empty() && holds(node.arg) && holds(node.array);
      }
      case ExprKind::kCast: return holds(as<parser::Cast>(each)->arg);
      case ExprKind::kArray: return all(as<parser::Array>(each)->elements);
      case ExprKind::kRow: return all(as<parser::Row>(each)->elements);
      case ExprKind::kFuncCall: {
        const auto& call = *as<parser::FuncCall>(each);
        static constexpr std::string_view kSpecial[] = {"coalesce", "greatest", "least", "nullif", "substring"};
        if (call.over != nullptr || call.filter != nullptr || !call.order_by.empty()) return false;
        if (call.special)
          return std::find(std::begin(kSpecial), std::end(kSpecial), call.name.name()) != std::end(kSpecial) &&
                 all_args(call.args);
        if (analyzer_.is_aggregate(call)) return false;
        const Function* function = analyzer_.function_of(call);
        return function != nullptr && function->schema == "pg_catalog" && function->volatility == 'i' &&
               all_args(call.args);
      }
      default: return false;
    }
  };
  if (!holds(expr)) return std::nullopt;
  return found;
}

std::vector<const Expr*> RowFilters::alone(int use, const Scope& scope,
                                           const std::vector<const Expr*>& conditions) const {
  std::vector<const Expr*> found;
  if (use_at(use).nullable) return found;
  for (const Expr* condition : conditions) {
    const auto uses = uses_of(condition, scope, {use});
    if (uses && !uses->empty()) found.push_back(condition);
  }
  return found;
}

std::vector<RowFilter> RowFilters::filters_of(int index) const {
  const RelationUse& use = use_at(index);
  std::vector<RowFilter> found;
  if (use.nullable || use.owner == nullptr || use.block == nullptr) return found;
  const auto own = [&](const Expr* expr) {
    const auto uses = uses_of(expr, *use.owner->scope, {index});
    return expr->kind != ExprKind::kLiteral && uses && !uses->empty();
  };
  for (const Expr* condition : conditions_of(use)) {
    if (own(condition)) {
      found.push_back({condition, {}});
      continue;
    }
    const auto* either = as<parser::BoolExpr>(condition);
    if (either == nullptr || !either->is_or) continue;
    RowFilter filter{condition, {}};
    for (const Expr* arm : either->args) {
      std::vector<const Expr*> parts, mine;
      Analyzer::conjuncts(arm, parts);
      for (const Expr* part : parts)
        if (own(part)) mine.push_back(part);
      if (mine.empty()) break;
      filter.arms.push_back(std::move(mine));
    }
    if (filter.arms.size() == either->args.size()) found.push_back(std::move(filter));
  }
  return found;
}

// Tables of the same FROM that every shard has beside the rows of this one: replicated ones, and those whose
// key is the same.
RowFilters::Uses RowFilters::beside(int index) const {
  const RelationUse& use = use_at(index);
  Uses found;
  for (std::size_t i = 0; i < analyzer_.uses.size(); ++i) {
    const RelationUse& other = analyzer_.uses[i];
    if (static_cast<int>(i) == index || other.owner != use.owner || other.block != use.block ||
        other.unit != use.unit || other.nullable || other.ref == nullptr || other.relation == nullptr ||
        !other.ref->alias.columns.empty())
      continue;
    bool here = other.kind == Kind::kReplicated;
    if (other.kind == Kind::kSharded && other.table->map == use.table->map &&
        other.table->key.size() == use.table->key.size() && use.first_term != kNoTerm &&
        other.first_term != kNoTerm) {
      here = true;
      for (int key = 0; key < static_cast<int>(use.table->key.size()); ++key)
        here = here && use.owner->equalities.same(use.first_term + key, other.first_term + key);
    }
    if (here) found.insert(static_cast<int>(i));
  }
  return found;
}

SemiJoin RowFilters::semi_join_of(int index) const {
  const RelationUse& use = use_at(index);
  if (use.nullable || use.owner == nullptr || use.block == nullptr || use.kind != Kind::kSharded) return {};
  Uses kept = beside(index);
  if (kept.empty()) return {};
  Uses allowed = kept;
  allowed.insert(index);
  std::vector<std::pair<const Expr*, Uses>> conditions;
  for (const Expr* condition : conditions_of(use))
    if (auto uses = uses_of(condition, *use.owner->scope, allowed); uses && !uses->empty())
      conditions.emplace_back(condition, std::move(*uses));
  const auto neighbours = [&](int of) {
    Uses near;
    for (const auto& [condition, uses] : conditions) {
      if (!uses.contains(of)) continue;
      for (const int each : uses)
        if (each != of && (each == index || kept.contains(each))) near.insert(each);
    }
    return near;
  };
  // Those that conditions lead to.
  Uses reached{index};
  for (std::vector<int> open{index}; !open.empty();) {
    const int at = open.back();
    open.pop_back();
    for (const int next : neighbours(at))
      if (reached.insert(next).second) open.push_back(next);
  }
  std::erase_if(kept, [&](int each) { return !reached.contains(each); });
  // A table without a condition of its own, at the end of its branch, leaves nothing out.
  for (bool changed = true; changed;) {
    changed = false;
    for (const int each : Uses(kept)) {
      if (!filters_of(each).empty() || neighbours(each).size() > 1) continue;
      kept.erase(each);
      changed = true;
    }
  }
  if (std::none_of(kept.begin(), kept.end(), [&](int each) { return !filters_of(each).empty(); })) return {};
  SemiJoin made;
  made.uses.assign(kept.begin(), kept.end());
  for (const auto& [condition, uses] : conditions) {
    const bool inside =
        std::all_of(uses.begin(), uses.end(), [&](int each) { return each == index || kept.contains(each); });
    if (inside && (uses.size() > 1 || *uses.begin() != index)) made.conditions.push_back(condition);
  }
  return made;
}

void RowFilters::add_link(int index, const Expr* left, const Expr* right, std::vector<KeyLink>& links) const {
  const auto* a = as<parser::ColumnRef>(left);
  const auto* b = as<parser::ColumnRef>(right);
  if (a == nullptr || b == nullptr || a->star || b->star) return;
  const RelationUse& use = use_at(index);
  FoundColumn own = find_column(*use.owner->scope, *a), other = find_column(*use.owner->scope, *b);
  const auto is_own = [&](const FoundColumn& each) {
    return each.column != nullptr && each.depth == 0 && each.column->use == index && each.column->column >= 0;
  };
  if (!is_own(own)) std::swap(own, other);
  if (!is_own(own) || other.column == nullptr || other.column->use < 0 || other.column->column < 0 ||
      other.column->use == index)
    return;
  // It stands in this FROM itself, or in one around it.
  const RelationUse& source = use_at(other.column->use);
  const Block* block = use.owner;
  while (block != nullptr && block != source.owner) block = block->outer;
  if (block == nullptr || source.kind != Kind::kSharded || source.relation == nullptr || source.ref == nullptr)
    return;
  const Column& mine = use.relation->columns[static_cast<std::size_t>(own.column->column)];
  const Column& its = source.relation->columns[static_cast<std::size_t>(other.column->column)];
  if (same_values(mine, its)) links.push_back({own.column->column, other.column->use, other.column->column});
}

void RowFilters::add_links(int index, const Expr* condition, std::vector<KeyLink>& links) const {
  if (const auto* equal = as<parser::Operator>(condition)) {
    if (equal->op == "=" && equal->schema.empty() && equal->left != nullptr)
      add_link(index, equal->left, equal->right, links);
    return;
  }
  if (const auto* either = as<parser::BoolExpr>(condition); either != nullptr && either->is_or) {
    // What every arm says.
    std::set<KeyLink> common;
    for (std::size_t arm = 0; arm < either->args.size(); ++arm) {
      std::vector<const Expr*> parts;
      Analyzer::conjuncts(either->args[arm], parts);
      std::vector<KeyLink> of_arm;
      for (const Expr* part : parts)
        if (part->kind == ExprKind::kOperator) add_links(index, part, of_arm);
      const std::set<KeyLink> these(of_arm.begin(), of_arm.end());
      if (arm == 0)
        common = these;
      else
        std::erase_if(common, [&](const KeyLink& link) { return !these.contains(link); });
    }
    links.insert(links.end(), common.begin(), common.end());
    return;
  }
  // column IN (SELECT column FROM ...)
  const auto* in = as<parser::Subquery>(condition);
  if (in == nullptr || in->form != parser::Subquery::Form::kIn || in->negated || in->query == nullptr) return;
  const parser::Select* select = in->query->simple();
  const auto* test = as<parser::ColumnRef>(in->test);
  if (select == nullptr || test == nullptr || select->targets.size() != 1) return;
  const auto* target = as<parser::ColumnRef>(select->targets[0].expr);
  if (target == nullptr || target->star) return;
  const RelationUse& use = use_at(index);
  const FoundColumn own = find_column(*use.owner->scope, *test);
  if (own.column == nullptr || own.depth != 0 || own.column->use != index || own.column->column < 0) return;
  for (const RelationUse& source : analyzer_.uses) {
    if (source.block != select || source.owner == nullptr || source.unit != use.unit) continue;
    const FoundColumn its = find_column(*source.owner->scope, *target);
    if (its.column == nullptr || its.depth != 0 || its.column->use < 0 || its.column->column < 0) return;
    const RelationUse& given = use_at(its.column->use);
    if (given.owner != source.owner || given.kind != Kind::kSharded || given.relation == nullptr) return;
    if (same_values(use.relation->columns[static_cast<std::size_t>(own.column->column)],
                    given.relation->columns[static_cast<std::size_t>(its.column->column)]))
      links.push_back({own.column->column, its.column->use, its.column->column});
    return;
  }
}

std::vector<KeyLink> RowFilters::links_of(int index) const {
  const RelationUse& use = use_at(index);
  std::vector<KeyLink> links;
  if (use.nullable || use.owner == nullptr || use.block == nullptr || use.relation == nullptr) return links;
  for (const Expr* condition : conditions_of(use))
    if (condition != nullptr) add_links(index, condition, links);
  return links;
}

int RowFilters::left_over(int index) const {
  int left = 2;
  const auto take = [&](int each) {
    for (const RowFilter& filter : filters_of(each)) left = std::min(left, is_strong(filter) ? 0 : 1);
  };
  take(index);
  for (const int each : semi_join_of(index).uses) take(each);
  return left;
}

}  // namespace kintsugi::planner
