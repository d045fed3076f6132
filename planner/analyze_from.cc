// FROM: what stands in it, and how it is joined.
#include <algorithm>

#include "planner/analyzer.h"

namespace kintsugi::planner {

using parser::as;
using parser::Join;

namespace {

using Kind = Distribution::Kind;

std::string name_of_function(const parser::FunctionRef& ref) {
  if (ref.functions.size() != 1) return {};
  const auto* call = as<parser::FuncCall>(ref.functions[0]);
  return call == nullptr ? std::string() : std::string(call->name.name());
}

}  // namespace

TermId Analyzer::new_term(int use, int column) {
  terms_.push_back({use, column});
  return static_cast<TermId>(terms_.size()) - 1;
}

void Analyzer::add_item(Block& block, FromNode& node, std::string_view alias, std::string_view schema,
                        parser::List<parser::Name> renamed, Shape shape) {
  for (std::size_t i = 0; i < renamed.size() && i < shape.columns.size(); ++i)
    shape.columns[i].name = renamed[i].text;
  if (renamed.size() > shape.columns.size())
    for (std::size_t i = shape.columns.size(); i < renamed.size(); ++i)
      shape.columns.push_back({renamed[i].text, 0, {}, kNoTerm, -1, -1});
  node.distribution = std::move(shape.distribution);
  FromPart part = std::move(shape.part);
  part.first = origins_;
  part.filled.resize(shape.columns.size(), false);
  for (ScopeColumn& column : shape.columns) column.origin = origins_++;
  node.part_low = block.parts.size();
  block.parts.push_back(std::move(part));
  node.part_high = block.parts.size();
  node.visible = shape.columns;
  node.known = shape.known;
  block.scope->items.push_back(
      {alias, schema, std::move(shape.columns), shape.known, as<parser::TableRef>(node.item), shape.relation});
}

std::unique_ptr<FromNode> Analyzer::leaf(const parser::FromItem& item, Block& block) {
  auto node = std::make_unique<FromNode>();
  node->item = &item;
  node->low = static_cast<TermId>(terms_.size());
  node->use_low = static_cast<int>(uses.size());
  std::string_view schema;
  Shape shape;
  std::string_view alias = item.alias.name.text;
  if (const auto* ref = as<parser::TableRef>(&item)) {
    shape = table(*ref, &block, schema);
    if (alias.empty()) alias = ref->name.name();
    if (ref->sample != nullptr)
      for (const parser::Expr* arg : ref->sample->args) walk(arg, block);
  } else if (const auto* subquery = as<parser::SubqueryRef>(&item)) {
    if (item.lateral)
      shape = query(*subquery->query, block.scope, &block);
    else
      shape = query(*subquery->query, block.scope->parent, block.outer);
  } else if (const auto* function = as<parser::FunctionRef>(&item)) {
    const bool was_volatile = block.row_volatile;
    block.row_volatile = false;
    for (const parser::Expr* call : function->functions) {
      walk(call, block);
      // FROM now(): a literal could not stand there.
      const std::size_t taken =
          unit_ == 0 ? std::erase_if(time_calls,
                                     [&](const parser::Range& time) { return time.begin == call->range.begin; })
                     : std::erase_if(view_times, [&](const ViewTime& time) {
                         return time.unit == unit_ && time.range.begin == call->range.begin;
                       });
      if (taken > 0) other_times = true;
    }
    if (block.row_volatile)
      shape.distribution =
          Distribution::spread("a function in FROM gives another answer each time it is called");
    block.row_volatile |= was_volatile;
    if (!function->columns.empty()) {
      for (const parser::ColumnDefinitionItem& column : function->columns)
        shape.columns.push_back({column.name.text, column.type == nullptr ? 0 : type_named(*column.type),
                                 column.type == nullptr ? std::string_view{} : "default", kNoTerm, -1, -1});
    } else {
      kept_.push_back(name_of_function(*function));
      const std::string_view name = !alias.empty() ? alias : std::string_view(kept_.back());
      const auto* call =
          function->functions.size() == 1 ? as<parser::FuncCall>(function->functions[0]) : nullptr;
      static constexpr std::string_view kScalar[] = {"generate_series", "unnest", "regexp_split_to_table",
                                                     "string_to_table", "generate_subscripts"};
      const bool scalar =
          call != nullptr && !call->args.empty() && (call->name.name() != "unnest" || call->args.size() == 1) &&
          std::find(std::begin(kScalar), std::end(kScalar), call->name.name()) != std::end(kScalar);
      if (scalar) shape.columns.push_back({name, type_of(call, *block.scope).oid, {}, kNoTerm, -1, -1});
      // Rows that were read first.
      const bool arrays =
          function->rows_from && function->functions.size() == item.alias.columns.size() &&
          std::all_of(function->functions.begin(), function->functions.end(), [](const parser::Expr* each) {
            const auto* one = as<parser::FuncCall>(each);
            return one != nullptr && one->args.size() == 1 && one->name.name() == "unnest" &&
                   one->name.schema() == "pg_catalog";
          });
      shape.known = scalar || arrays;
      if (scalar && function->with_ordinality) shape.columns.push_back({"ordinality", 20, {}, kNoTerm, -1, -1});
    }
    if (alias.empty()) alias = kept_.empty() ? std::string_view{} : std::string_view(kept_.back());
  }
  if (locking_ != nullptr) note_locked(*locking_, alias, node->use_low);
  add_item(block, *node, alias, item.alias.given() ? std::string_view{} : schema, item.alias.columns,
           std::move(shape));
  node->high = static_cast<TermId>(terms_.size());
  node->use_high = static_cast<int>(uses.size());
  return node;
}

std::unique_ptr<FromNode> Analyzer::join_node(const Join& join, Block& block) {
  auto node = std::make_unique<FromNode>();
  node->item = &join;
  node->join = &join;
  node->low = static_cast<TermId>(terms_.size());
  node->use_low = static_cast<int>(uses.size());
  const std::size_t first_item = block.scope->items.size();
  node->left = from_item(*join.left, block);
  // LATERAL on the right sees what is on the left.
  const std::size_t visible = block.scope->visible.size();
  const bool known = block.scope->known;
  block.scope->visible.insert(block.scope->visible.end(), node->left->visible.begin(),
                              node->left->visible.end());
  block.scope->known &= node->left->known;
  node->right = from_item(*join.right, block);
  block.scope->visible.resize(visible);
  block.scope->known = known;
  node->high = static_cast<TermId>(terms_.size());
  node->use_high = static_cast<int>(uses.size());
  node->part_low = node->left->part_low;
  node->part_high = node->right->part_high;
  node->known = node->left->known && node->right->known;
  // Columns merged by USING or NATURAL come first, then what is left of both sides.
  std::vector<std::string_view> merged;
  if (join.natural) {
    for (const ScopeColumn& left : node->left->visible)
      for (const ScopeColumn& right : node->right->visible)
        if (left.name == right.name && std::find(merged.begin(), merged.end(), left.name) == merged.end())
          merged.push_back(left.name);
    if (!node->known) block.problem = "a NATURAL JOIN of something whose columns are not known";
  } else {
    for (const parser::Name& name : join.using_columns) merged.push_back(name.text);
  }
  const auto of = [](const FromNode& side, std::string_view name) -> const ScopeColumn* {
    for (const ScopeColumn& column : side.visible)
      if (column.name == name) return &column;
    return nullptr;
  };
  for (const std::string_view name : merged) {
    const ScopeColumn* left = of(*node->left, name);
    const ScopeColumn* right = of(*node->right, name);
    ScopeColumn column{name, 0, {}, kNoTerm, -1, -1};
    if (left != nullptr) need(*left);
    if (right != nullptr) need(*right);
    if (left != nullptr && right != nullptr) {
      column = join.type == Join::Type::kRight ? *right : *left;
      if (join.type == Join::Type::kFull) {
        column.term = kNoTerm;
        column.origin = -1;
      }
      node->merged.emplace_back(left->origin, right->origin);
      if (left->type != right->type) column.type = 0;
      if (left->term != kNoTerm && right->term != kNoTerm)
        node->using_pairs.emplace_back(left->term, right->term);
    }
    node->visible.push_back(column);
  }
  for (const FromNode* side : {node->left.get(), node->right.get()})
    for (const ScopeColumn& column : side->visible)
      if (std::find(merged.begin(), merged.end(), column.name) == merged.end()) node->visible.push_back(column);
  if (join.alias.given()) {
    std::vector<ScopeColumn> columns = node->visible;
    for (std::size_t i = 0; i < join.alias.columns.size() && i < columns.size(); ++i)
      columns[i].name = join.alias.columns[i].text;
    node->visible = columns;
    // An alias hides the names of the tables in it.
    block.scope->items.resize(first_item);
    block.scope->items.push_back({join.alias.name.text, {}, std::move(columns), node->known});
  }
  return node;
}

std::unique_ptr<FromNode> Analyzer::from_item(const parser::FromItem& item, Block& block) {
  if (const auto* join = as<Join>(&item)) return join_node(*join, block);
  return leaf(item, block);
}

void Analyzer::mark_nullable(const FromNode& node) {
  for (int use = node.use_low; use < node.use_high; ++use) uses[static_cast<std::size_t>(use)].nullable = true;
}

// What ON and USING say: for the rows of an inner join all of it, for those of an outer join what concerns the
// side that may be left out.
void Analyzer::join_conditions(const FromNode& node, Block& block) {
  if (node.join == nullptr) return;
  const Join& join = *node.join;
  const bool left_nullable = join.type == Join::Type::kRight || join.type == Join::Type::kFull;
  const bool right_nullable = join.type == Join::Type::kLeft || join.type == Join::Type::kFull;
  if (left_nullable) mark_nullable(*node.left);
  if (right_nullable) mark_nullable(*node.right);
  std::vector<const parser::Expr*> all;
  if (join.on != nullptr) conjuncts(join.on, all);
  note_said(node, all, block);
  const auto connect = [&](TermId a, TermId b) {
    const auto in = [&](TermId term, const FromNode& side) { return term >= side.low && term < side.high; };
    if (!left_nullable && !right_nullable) {
      edge(a, b);
      edge(b, a);
      equalities_.join(a, b);
      return;
    }
    if (join.type == Join::Type::kFull) return;
    const FromNode& kept = right_nullable ? *node.left : *node.right;
    const FromNode& extended = right_nullable ? *node.right : *node.left;
    for (const auto& [from_term, to_term] : {std::pair(a, b), std::pair(b, a)})
      if (in(to_term, extended) && (in(from_term, kept) || in(from_term, extended))) edge(from_term, to_term);
  };
  for (const auto& [left, right] : node.using_pairs) connect(left, right);
  for (const parser::Expr* conjunct : all) {
    walk(conjunct, block);
    equal_terms(conjunct, *block.scope, [&](TermId a, TermId b) {
      const auto in = [&](TermId term) { return term >= node.low && term < node.high; };
      if (in(a) && in(b)) connect(a, b);
    });
    if (join.type == Join::Type::kFull) continue;
    const TermId low = right_nullable ? node.right->low : node.low;
    const TermId high = left_nullable ? node.left->high : node.high;
    records_.push_back({conjunct, block.scope, low, high, unit_});
  }
  join_conditions(*node.left, block);
  join_conditions(*node.right, block);
}

bool Analyzer::covers(const std::vector<TermId>& terms, const KeyTerms& key, const Equalities& equal) const {
  return std::all_of(key.begin(), key.end(), [&](TermId wanted) {
    return std::any_of(terms.begin(), terms.end(), [&](TermId term) { return equal.same(term, wanted); });
  });
}

bool Analyzer::covers_any(const std::vector<TermId>& terms, const Distribution& distribution,
                          const Equalities& equal) const {
  return std::any_of(distribution.keys.begin(), distribution.keys.end(),
                     [&](const KeyTerms& key) { return !key.empty() && covers(terms, key, equal); });
}

bool Analyzer::keys_match(const Distribution& a, const Distribution& b, const Equalities& equal) const {
  for (const KeyTerms& left : a.keys)
    for (const KeyTerms& right : b.keys) {
      if (left.size() != right.size()) continue;
      bool all = !left.empty();
      for (std::size_t i = 0; i < left.size() && all; ++i) all = equal.same(left[i], right[i]);
      if (all) return true;
    }
  return false;
}

Distribution Analyzer::joined(const Distribution& left, const Distribution& right, Join::Type type,
                              const Equalities& equal) const {
  if (type == Join::Type::kRight) return joined(right, left, Join::Type::kLeft, equal);
  // A LATERAL query over rows that have the key of the row beside it.
  if (!right.links.empty() && left.kind == Kind::kSharded && left.mapping == right.linked_by &&
      type != Join::Type::kFull) {
    Distribution linked_keys;
    linked_keys.keys = right.links;
    if (keys_match(left, linked_keys, equal)) return left;
  }
  if (left.kind == Kind::kSpread) return left;
  if (right.kind == Kind::kSpread) return right;
  const bool inner = type == Join::Type::kInner || type == Join::Type::kCross;
  if (left.kind == Kind::kSharded && right.kind == Kind::kSharded) {
    if (left.mapping != right.mapping)
      return Distribution::spread("it joins tables of different shard maps, " + left.mapping->name() + " and " +
                                  right.mapping->name());
    if (!keys_match(left, right, equal))
      return Distribution::spread("it joins sharded tables on something else than their sharding keys");
    Distribution both = left;
    if (inner) both.keys.insert(both.keys.end(), right.keys.begin(), right.keys.end());
    if (type == Join::Type::kFull) both.keys.clear();
    return both;
  }
  if (right.kind == Kind::kEverywhere) {
    if (type != Join::Type::kFull || left.kind != Kind::kSharded) return left;
    return Distribution::spread("a FULL JOIN of a sharded table keeps rows of something that every shard has");
  }
  if (left.kind == Kind::kEverywhere) {
    if (inner || right.kind == Kind::kHome) return right;
    return Distribution::spread(
        "an outer join with a sharded table keeps rows of something that every shard has");
  }
  if (left.kind == Kind::kHome && right.kind == Kind::kHome) return left;
  return Distribution::spread("it joins a sharded table with one that is on the home shard alone");
}

Distribution Analyzer::distribution_of(const FromNode& node, const Block& block) const {
  if (node.join == nullptr) return node.distribution;
  const Distribution left = distribution_of(*node.left, block);
  const Distribution right = distribution_of(*node.right, block);
  Equalities equal = block.equalities;
  for (const auto& [a, b] : node.using_pairs) equal.join(a, b);
  std::vector<const parser::Expr*> all;
  if (node.join->on != nullptr) conjuncts(node.join->on, all);
  for (const parser::Expr* conjunct : all)
    equal_terms(conjunct, *block.scope, [&](TermId a, TermId b) { equal.join(a, b); });
  return joined(left, right, node.join->type, equal);
}

void Analyzer::from(parser::List<const parser::FromItem*> items, const parser::Expr* where, Block& block,
                    std::unique_ptr<FromNode> first) {
  const TermId low = first ? first->low : static_cast<TermId>(terms_.size());
  std::vector<std::unique_ptr<FromNode>> nodes;
  if (first) nodes.push_back(std::move(first));
  for (const parser::FromItem* item : items) {
    nodes.push_back(from_item(*item, block));
    // What stands to the left is visible to LATERAL, and to the rest in the end.
    const FromNode& node = *nodes.back();
    block.scope->visible.insert(block.scope->visible.end(), node.visible.begin(), node.visible.end());
    block.scope->known &= node.known;
  }
  const TermId high = static_cast<TermId>(terms_.size());
  std::vector<const parser::Expr*> all;
  if (where != nullptr) conjuncts(where, all);
  for (const parser::Expr* conjunct : all) {
    record_equalities(conjunct, block, low, high, equalities_);
    block.said.push_back({.conjunct = conjunct, .high = origins_});
  }
  // ON is read when FROM's own distribution is not known yet: a subquery in it cannot be linked.
  for (const auto& node : nodes) join_conditions(*node, block);
  block.equalities = equalities_;
  Distribution product;
  for (const auto& node : nodes)
    product = joined(product, distribution_of(*node, block), Join::Type::kInner, block.equalities);
  block.from = std::move(product);
  block.from_done = true;
  // Equalities with what is outside hold for this block's rows, not for the outer ones.
  for (const parser::Expr* conjunct : all)
    equal_terms(conjunct, *block.scope, [&](TermId a, TermId b) { block.equalities.join(a, b); });
  find_links(block, low, high);
  for (const parser::Expr* conjunct : all) {
    records_.push_back({conjunct, block.scope, low, high, unit_});
    walk(conjunct, block);
  }
}

// The outer keys that all rows of this block have.
void Analyzer::find_links(Block& block, TermId low, TermId high) {
  if (block.from.kind != Kind::kSharded) return;
  block.from.linked_by = block.from.mapping;
  for (const KeyTerms& key : block.from.keys) {
    std::vector<KeyTerms> found{{}};
    for (const TermId term : key) {
      std::vector<KeyTerms> longer;
      for (TermId other = 0; other < static_cast<TermId>(terms_.size()); ++other) {
        if ((other >= low && other < high) || !block.equalities.same(term, other)) continue;
        for (const KeyTerms& begun : found) {
          longer.push_back(begun);
          longer.back().push_back(other);
        }
      }
      found = std::move(longer);
      if (found.size() > 64) found.resize(64);
    }
    for (KeyTerms& link : found)
      if (!link.empty()) block.from.links.push_back(std::move(link));
  }
}

}  // namespace kintsugi::planner
