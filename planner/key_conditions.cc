// What the statement's conditions say about the keys of each sharded table.
#include <algorithm>

#include "planner/analyzer.h"

namespace kintsugi::planner {

using parser::as;
using parser::ExprKind;
using Op = KeyCondition::Op;

namespace {

bool plain_operator(const parser::Operator& node) {
  return node.left != nullptr && (node.schema.empty() || node.schema.back().text == "pg_catalog");
}

// The key type a cast is to, when it changes no value on its way.
std::optional<shardmap::KeyType> cast_type(const parser::TypeName& type, std::uint32_t oid) {
  if (!type.modifiers.empty() || type.dimensions > 0 || type.set_of) return std::nullopt;
  return shardmap::key_type_of_oid(oid);
}

// The column behind casts that keep equality: varchar to text, an integer to a wider one.
const parser::Expr* without_casts(const parser::Expr* expr) {
  while (const auto* cast = as<parser::Cast>(expr)) {
    static constexpr std::string_view kHarmless[] = {"text", "varchar", "int8", "numeric"};
    const std::string_view name = cast->type->name.name();
    if (!cast->type->modifiers.empty() || cast->type->dimensions > 0 ||
        std::find(std::begin(kHarmless), std::end(kHarmless), name) == std::end(kHarmless))
      return expr;
    expr = cast->arg;
  }
  return expr;
}

bool is_text(std::uint32_t oid) {
  return oid == 25 || oid == 1043;
}
bool is_integer(std::uint32_t oid) {
  return oid == 20 || oid == 21 || oid == 23;
}

}  // namespace

TermId Analyzer::term_of(const parser::Expr* expr, const Scope& scope) const {
  const parser::Expr* inner = without_casts(expr);
  const auto* ref = as<parser::ColumnRef>(inner);
  if (ref == nullptr || ref->star) return kNoTerm;
  const FoundColumn found = find_column(scope, *ref);
  if (found.column == nullptr || found.column->term == kNoTerm) return kNoTerm;
  // A cast must not leave the column's own kind of values.
  for (const parser::Expr* at = expr; at != inner; at = as<parser::Cast>(at)->arg) {
    const std::uint32_t to = type_named(*as<parser::Cast>(at)->type);
    const std::uint32_t from = found.column->type;
    if (!(is_text(from) && is_text(to)) && !(is_integer(from) && (to == 20 || to == 1700))) return kNoTerm;
  }
  return found.column->term;
}

std::optional<Source> Analyzer::source_of(const parser::Expr* expr) {
  if (expr == nullptr) return std::nullopt;
  if (const auto* parameter = as<parser::Parameter>(expr)) {
    if (unit_ != 0 || parameter->number < 1) return std::nullopt;
    const int slot = normal_.slot_at(begin_ + expr->range.begin);
    // Within a list of values the normal form does not say which of them are parameters.
    if (slot >= 0) return slot_source(static_cast<std::size_t>(slot), normal_);
    Source source;
    source.kind = Source::Kind::kParameter;
    source.index = static_cast<std::uint32_t>(parameter->number - 1);
    return source;
  }
  if (const auto* sign = as<parser::Operator>(expr)) {
    if (sign->left != nullptr || !sign->schema.empty() || (sign->op != "-" && sign->op != "+"))
      return std::nullopt;
    const auto* number = as<parser::Literal>(sign->right);
    if (number == nullptr ||
        (number->literal != parser::LiteralKind::kInteger && number->literal != parser::LiteralKind::kNumeric))
      return std::nullopt;
    auto source = source_of(number);
    if (source) source->negative = sign->op == "-";
    return source;
  }
  if (const auto* cast = as<parser::Cast>(expr)) {
    const auto type = cast_type(*cast->type, type_named(*cast->type));
    if (!type) return std::nullopt;
    auto source = source_of(cast->arg);
    if (!source || source->cast) return std::nullopt;
    source->cast = type;
    return source;
  }
  const auto* literal = as<parser::Literal>(expr);
  if (literal == nullptr) return std::nullopt;
  if (unit_ == 0) {
    if (const int slot = normal_.slot_at(begin_ + expr->range.begin); slot >= 0)
      return slot_source(static_cast<std::size_t>(slot), normal_);
  }
  Constant constant;
  switch (literal->literal) {
    case parser::LiteralKind::kNull: constant.kind = parser::SlotKind::kNull; break;
    case parser::LiteralKind::kTrue: constant.kind = parser::SlotKind::kTrue; break;
    case parser::LiteralKind::kFalse: constant.kind = parser::SlotKind::kFalse; break;
    case parser::LiteralKind::kInteger: constant.kind = parser::SlotKind::kInteger; break;
    case parser::LiteralKind::kNumeric: constant.kind = parser::SlotKind::kNumeric; break;
    case parser::LiteralKind::kString: constant.kind = parser::SlotKind::kString; break;
    default: return std::nullopt;
  }
  constant.text = literal->value;
  constants.push_back(std::move(constant));
  Source source;
  source.index = static_cast<std::uint32_t>(constants.size() - 1);
  return source;
}

void Analyzer::equal_terms(const parser::Expr* conjunct, const Scope& scope,
                           const std::function<void(TermId, TermId)>& found) const {
  const auto* equal = as<parser::Operator>(conjunct);
  if (equal == nullptr || equal->op != "=" || !plain_operator(*equal)) return;
  const auto pair = [&](const parser::Expr* left, const parser::Expr* right) {
    const TermId a = term_of(left, scope);
    const TermId b = term_of(right, scope);
    if (a != kNoTerm && b != kNoTerm && a != b) found(a, b);
  };
  const auto* left = as<parser::Row>(equal->left);
  const auto* right = as<parser::Row>(equal->right);
  if (left != nullptr && right != nullptr && left->elements.size() == right->elements.size()) {
    for (std::size_t i = 0; i < left->elements.size(); ++i) pair(left->elements[i], right->elements[i]);
    return;
  }
  pair(equal->left, equal->right);
}

void Analyzer::record_equalities(const parser::Expr* conjunct, Block& block, TermId low, TermId high,
                                 Equalities& all) {
  const auto own = [&](TermId term) { return term >= low && term < high; };
  equal_terms(conjunct, *block.scope, [&](TermId a, TermId b) {
    if (own(a) && own(b)) {
      all.join(a, b);
      edge(a, b);
      edge(b, a);
    } else if (own(b)) {
      edge(a, b);
    } else if (own(a)) {
      edge(b, a);
    }
  });
}

// For each key column of the table, the terms whose conditions are also its own.
std::vector<std::vector<bool>> Analyzer::reaching(const RelationUse& use) const {
  std::vector<std::vector<bool>> all;
  for (std::size_t column = 0; column < use.table->key.size(); ++column) {
    std::vector<bool> reach(terms_.size(), false);
    std::vector<TermId> open{use.first_term + static_cast<TermId>(column)};
    reach[static_cast<std::size_t>(open.front())] = true;
    while (!open.empty()) {
      const TermId at = open.back();
      open.pop_back();
      for (const auto& [from_term, to_term] : edges_)
        if (to_term == at && !reach[static_cast<std::size_t>(from_term)]) {
          reach[static_cast<std::size_t>(from_term)] = true;
          open.push_back(from_term);
        }
    }
    all.push_back(std::move(reach));
  }
  return all;
}

KeyCondition Analyzer::leaf_condition(Op op, const parser::Expr* column, const Source& source,
                                      const Record& record, const std::vector<std::vector<bool>>& reach,
                                      const RelationUse& use) {
  const TermId term = term_of(column, *record.scope);
  if (term == kNoTerm || term < record.low || term >= record.high) return {};
  std::vector<KeyCondition> found;
  for (std::size_t i = 0; i < reach.size(); ++i) {
    if (!reach[i][static_cast<std::size_t>(term)]) continue;
    const bool ordered = op != Op::kEqual && op != Op::kArray && op != Op::kGroup;
    if (ordered && use.mapping->key_types()[i] == shardmap::KeyType::kText) {
      // Bounds are in the order of bytes.
      const Column* of = use.relation == nullptr ? nullptr : use.relation->column(use.table->key[i]);
      if (of == nullptr || (of->collation != "C" && of->collation != "POSIX" && of->collation != "ucs_basic"))
        continue;
    }
    KeyCondition leaf;
    leaf.op = op;
    leaf.column = static_cast<std::uint8_t>(i);
    leaf.source = source;
    found.push_back(std::move(leaf));
  }
  return KeyCondition::both(std::move(found));
}

namespace {

Op op_named(std::string_view op, bool turned) {
  if (op == "=") return Op::kEqual;
  if (op == "<") return turned ? Op::kGreater : Op::kLess;
  if (op == "<=") return turned ? Op::kGreaterEqual : Op::kLessEqual;
  if (op == ">") return turned ? Op::kLess : Op::kGreater;
  if (op == ">=") return turned ? Op::kLessEqual : Op::kGreaterEqual;
  return Op::kAll;
}

}  // namespace

KeyCondition Analyzer::compare(std::string_view op, const parser::Expr* left, const parser::Expr* right,
                               const Record& record, const std::vector<std::vector<bool>>& reach,
                               const RelationUse& use) {
  const auto* left_row = as<parser::Row>(left);
  const auto* right_row = as<parser::Row>(right);
  if (left_row != nullptr && right_row != nullptr) {
    if (left_row->elements.size() != right_row->elements.size() || left_row->elements.empty()) return {};
    std::vector<KeyCondition> parts;
    if (op == "=") {
      for (std::size_t i = 0; i < left_row->elements.size(); ++i)
        parts.push_back(compare(op, left_row->elements[i], right_row->elements[i], record, reach, use));
      return KeyCondition::both(std::move(parts));
    }
    if (op_named(op, false) == Op::kAll) return {};
    // (a, b) < (1, 2) is a < 1 OR a = 1 AND b < 2.
    const std::string_view strict = op.substr(0, 1);
    for (std::size_t i = 0; i < left_row->elements.size(); ++i) {
      std::vector<KeyCondition> arm;
      for (std::size_t k = 0; k < i; ++k)
        arm.push_back(compare("=", left_row->elements[k], right_row->elements[k], record, reach, use));
      const bool last = i + 1 == left_row->elements.size();
      arm.push_back(
          compare(last ? op : strict, left_row->elements[i], right_row->elements[i], record, reach, use));
      parts.push_back(KeyCondition::both(std::move(arm)));
    }
    return KeyCondition::either(std::move(parts));
  }
  for (const bool turned : {false, true}) {
    const parser::Expr* column = turned ? right : left;
    const Op found = op_named(op, turned);
    if (found == Op::kAll || term_of(column, *record.scope) == kNoTerm) continue;
    const parser::Expr* value = turned ? left : right;
    if (const auto source = source_of(value)) return leaf_condition(found, column, *source, record, reach, use);
    // Under OR or CASE PostgreSQL may not look at it at all.
    const auto* conjunct = as<parser::Operator>(record.expr);
    const bool always = conjunct != nullptr && conjunct->left == left && conjunct->right == right;
    if (always && leaf_condition(found, column, Source{}, record, reach, use).op != Op::kAll) fold(value);
  }
  return {};
}

bool Analyzer::is_constant(const parser::Expr* expr) const {
  if (const auto* literal = as<parser::Literal>(expr))
    return literal->literal != parser::LiteralKind::kBits && literal->literal != parser::LiteralKind::kHexBits;
  if (as<parser::Parameter>(expr) != nullptr) return true;
  if (const auto* cast = as<parser::Cast>(expr)) return is_constant(cast->arg);
  if (const auto* op = as<parser::Operator>(expr)) {
    static constexpr std::string_view kPlain[] = {"+", "-", "*", "/", "%", "||"};
    return (op->schema.empty() || op->schema.back().text == "pg_catalog") &&
           std::find(std::begin(kPlain), std::end(kPlain), op->op) != std::end(kPlain) &&
           (op->left == nullptr || is_constant(op->left)) && is_constant(op->right);
  }
  const auto* call = as<parser::FuncCall>(expr);
  if (call == nullptr || call->over != nullptr || call->args.empty() || is_aggregate(*call)) return false;
  const Function* function = function_of(*call);
  static constexpr std::string_view kSyntax[] = {"coalesce", "nullif", "greatest", "least"};
  const bool syntax = call->special &&
                      std::find(std::begin(kSyntax), std::end(kSyntax), call->name.name()) != std::end(kSyntax);
  const bool immutable = !call->special && function != nullptr && function->schema == "pg_catalog" &&
                         function->volatility == 'i' && !function->returns_set;
  return (syntax || immutable) && std::all_of(call->args.begin(), call->args.end(), [&](const auto& arg) {
           return !arg.variadic && is_constant(arg.value);
         });
}

void Analyzer::fold(const parser::Expr* value) {
  if (unit_ != 0 || !is_constant(value)) return;
  // '7'::float8 is as far as it gets, and what folding leaves.
  const auto* cast = as<parser::Cast>(value);
  if (cast != nullptr && as<parser::Literal>(cast->arg) != nullptr) return;
  const auto same = [&](const parser::Range& other) { return other.begin == value->range.begin; };
  if (std::none_of(folds.begin(), folds.end(), same)) folds.push_back(value->range);
}

KeyCondition Analyzer::in_list(const parser::InList& list, const Record& record,
                               const std::vector<std::vector<bool>>& reach, const RelationUse& use) {
  if (as<parser::Row>(list.arg) == nullptr && term_of(list.arg, *record.scope) == kNoTerm) return {};
  if (unit_ == 0 && !list.list.empty()) {
    const std::uint32_t first = begin_ + list.list.front()->range.begin;
    for (std::size_t i = 0; i < normal_.groups().size(); ++i) {
      if (normal_.groups()[i].rows || normal_.groups()[i].range.begin != first) continue;
      KeyCondition leaf = leaf_condition(Op::kGroup, list.arg, Source{}, record, reach, use);
      const auto number = static_cast<std::uint32_t>(i);
      leaf.group = number;
      for (KeyCondition& child : leaf.children) child.group = number;
      return leaf;
    }
  }
  std::vector<KeyCondition> arms;
  for (const parser::Expr* value : list.list) {
    arms.push_back(compare("=", list.arg, value, record, reach, use));
    if (arms.back().op == Op::kAll) return {};
  }
  const bool plain = std::all_of(arms.begin(), arms.end(), [&](const KeyCondition& arm) {
    return arm.op == Op::kEqual && arm.column == arms.front().column;
  });
  if (!plain || arms.empty()) return KeyCondition::either(std::move(arms));
  KeyCondition made;
  made.op = Op::kList;
  made.column = arms.front().column;
  made.children = std::move(arms);
  return made;
}

KeyCondition Analyzer::condition(const parser::Expr* expr, const Record& record,
                                 const std::vector<std::vector<bool>>& reach, const RelationUse& use) {
  switch (expr->kind) {
    case ExprKind::kBool: {
      const auto& node = *as<parser::BoolExpr>(expr);
      std::vector<KeyCondition> parts;
      for (const parser::Expr* arg : node.args) parts.push_back(condition(arg, record, reach, use));
      return node.is_or ? KeyCondition::either(std::move(parts)) : KeyCondition::both(std::move(parts));
    }
    case ExprKind::kOperator: {
      const auto& node = *as<parser::Operator>(expr);
      if (!plain_operator(node)) return {};
      return compare(node.op, node.left, node.right, record, reach, use);
    }
    case ExprKind::kBetween: {
      const auto& node = *as<parser::Between>(expr);
      if (node.negated || node.symmetric) return {};
      std::vector<KeyCondition> both;
      both.push_back(compare(">=", node.arg, node.low, record, reach, use));
      both.push_back(compare("<=", node.arg, node.high, record, reach, use));
      return KeyCondition::both(std::move(both));
    }
    case ExprKind::kInList: {
      const auto& node = *as<parser::InList>(expr);
      return node.negated ? KeyCondition{} : in_list(node, record, reach, use);
    }
    case ExprKind::kQuantified: {
      const auto& node = *as<parser::Quantified>(expr);
      if (node.all || node.negated || node.op != "=" || !node.schema.empty()) return {};
      const parser::Expr* array = node.array;
      if (const auto* typed = as<parser::Cast>(array); typed != nullptr && typed->type->dimensions == 1) {
        // $1::bigint[]: the server describes the parameter so; ARRAY[...]::bigint[] likewise element by
        // element.
        array = typed->arg;
      }
      if (const auto* elements = as<parser::Array>(array)) {
        std::vector<KeyCondition> arms;
        for (const parser::Expr* element : elements->elements) {
          arms.push_back(compare("=", node.arg, element, record, reach, use));
          if (arms.back().op == Op::kAll) return {};
        }
        return KeyCondition::either(std::move(arms));
      }
      const auto* literal = as<parser::Literal>(array);
      if (as<parser::Parameter>(array) == nullptr &&
          (literal == nullptr || literal->literal != parser::LiteralKind::kString))
        return {};
      const auto source = source_of(array);
      if (!source) return {};
      return leaf_condition(Op::kArray, node.arg, *source, record, reach, use);
    }
    case ExprKind::kIsTest: {
      const auto& node = *as<parser::IsTest>(expr);
      if (node.test != parser::IsTest::Test::kNull || node.negated || use.nullable) return {};
      // A key is never NULL.
      const KeyCondition leaf = leaf_condition(Op::kEqual, node.arg, Source{}, record, reach, use);
      return leaf.op == Op::kAll ? leaf : KeyCondition::none();
    }
    case ExprKind::kDistinctFrom: {
      const auto& node = *as<parser::DistinctFrom>(expr);
      // IS NOT DISTINCT FROM a value is equality; with NULL it finds what an outer join has made NULL.
      if (!node.negated || use.nullable) return {};
      return compare("=", node.left, node.right, record, reach, use);
    }
    case ExprKind::kColumnRef: {
      // A boolean key.
      Source truth;
      constants.push_back({parser::SlotKind::kTrue, {}});
      truth.index = static_cast<std::uint32_t>(constants.size() - 1);
      return leaf_condition(Op::kEqual, expr, truth, record, reach, use);
    }
    case ExprKind::kLiteral:
      return as<parser::Literal>(expr)->literal == parser::LiteralKind::kFalse ? KeyCondition::none()
                                                                               : KeyCondition{};
    default: return {};
  }
}

void Analyzer::finish() {
  // Of statements that are not queries.
  for (std::size_t i = 0; i < commons_.size(); ++i)
    if (!commons_read_.contains(commons_[i].table)) common_table(i, nullptr);
  for (RelationUse& use : uses) {
    if (use.kind != RelationUse::Kind::kSharded || use.first_term == kNoTerm) continue;
    const auto reach = reaching(use);
    std::vector<KeyCondition> parts;
    for (const Record& record : records_) {
      // FALSE, alone or under OR, speaks of the rows of its own block.
      const bool own = use.first_term >= record.low && use.first_term < record.high;
      const bool related = std::any_of(reach.begin(), reach.end(), [&](const std::vector<bool>& terms) {
        return std::find(terms.begin() + record.low, terms.begin() + record.high, true) !=
               terms.begin() + record.high;
      });
      if (!own && !related) continue;
      unit_ = record.unit;
      KeyCondition part = condition(record.expr, record, reach, use);
      if (part.op == Op::kNone && !own) continue;
      parts.push_back(std::move(part));
    }
    unit_ = 0;
    use.condition = KeyCondition::both(std::move(parts));
  }
}

}  // namespace kintsugi::planner
