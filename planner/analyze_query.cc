// Whole queries: WITH, set operations, SELECT's clauses; what of a table's keys passes through them.
#include <algorithm>
#include <tuple>

#include "planner/chance.h"

namespace kintsugi::planner {

using parser::as;
using parser::SetOperand;
using Kind = Distribution::Kind;

Scope* Analyzer::new_scope(const Scope* parent) {
  scopes_.push_back({});
  scopes_.back().parent = parent;
  return &scopes_.back();
}

Block* Analyzer::new_block(Scope* scope, Block* outer) {
  blocks_.push_back({});
  blocks_.back().scope = scope;
  blocks_.back().outer = outer;
  return &blocks_.back();
}

void Analyzer::with(const parser::WithClause* with, const Scope* parent, Block* outer) {
  if (with == nullptr) return;
  for (const parser::CommonTable* table : with->tables) {
    commons_.push_back({table, parent, unit_, with->recursive});
    const parser::Preparable& body = table->body;
    if (body.query != nullptr) continue;
    // It runs once, whoever reads it.
    modifies = true;
    Block* block = nullptr;
    if (body.insert != nullptr) {
      const int use = target(body.insert->table);
      block = new_block(new_scope(nullptr), outer);
      if (body.insert->source != nullptr) query(*body.insert->source, parent, outer);
      uses[static_cast<std::size_t>(use)].target = true;
    } else if (body.update != nullptr) {
      block = modification(body.update->table, body.update->from, body.update->where);
      for (const parser::SetClause& set : body.update->set) expression(set.value, *block);
      returning(body.update->returning, *block);
    } else if (body.del != nullptr) {
      block = modification(body.del->table, body.del->using_items, body.del->where);
      returning(body.del->returning, *block);
    }
  }
}

// What nobody reads is not run, but its tables have to be there.
void Analyzer::unread_commons(const parser::WithClause* with, Block* outer) {
  if (with == nullptr) return;
  for (std::size_t i = commons_.size() - with->tables.size(); i < commons_.size(); ++i)
    if (!commons_read_.contains(commons_[i].table)) common_table(i, outer);
}

Shape Analyzer::common_table(std::size_t entry, Block* outer) {
  const CommonEntry common = commons_[entry];
  const parser::CommonTable& table = *common.table;
  commons_read_.insert(&table);
  for (const auto& [read_now, shape] : recursive_shapes_)
    if (read_now == common.table) return shape;
  Shape shape;
  if (table.body.query == nullptr) {
    shape.distribution = Distribution::spread("it reads what a data-modifying WITH returns");
    shape.known = false;
    return shape;
  }
  // Its body sees what was named before it.
  std::vector<CommonEntry> hidden(
      commons_.begin() + static_cast<std::ptrdiff_t>(entry + (common.recursive ? 1 : 0)), commons_.end());
  commons_.resize(commons_.size() - hidden.size());
  ++depth_;
  const auto* body = table.body.query->body;
  if (common.recursive && body != nullptr && body->kind == SetOperand::Kind::kUnion)
    shape = recursive(table, common.parent, outer);
  else
    shape = query(*table.body.query, common.parent, outer);
  --depth_;
  commons_.insert(commons_.end(), hidden.begin(), hidden.end());
  for (std::size_t i = 0; i < table.columns.size() && i < shape.columns.size(); ++i)
    shape.columns[i].name = table.columns[i].text;
  for (ScopeColumn& column : shape.columns) column.use = -1;
  if (table.search || table.cycle) shape.known = false;
  return shape;
}

// Seen from inside, the name means the rows found so far. Without a sharded table that is the same on every
// shard; with one, no shard finds the rows of another.
Shape Analyzer::recursive(const parser::CommonTable& table, const Scope* parent, Block* outer) {
  const parser::Query& body = *table.body.query;
  const std::size_t commons_before = commons_.size();
  with(body.with, parent, outer);
  Shape first = operand(*body.body->left, parent, outer, false, body);
  for (ScopeColumn& column : first.columns) {
    column.use = -1;
    column.term = kNoTerm;
  }
  for (std::size_t i = 0; i < table.columns.size() && i < first.columns.size(); ++i)
    first.columns[i].name = table.columns[i].text;
  Shape seen = first;
  seen.distribution = {};
  recursive_shapes_.emplace_back(&table, seen);
  const Shape second = operand(*body.body->right, parent, outer, false, body);
  recursive_shapes_.pop_back();
  first.part.stored |= second.part.stored;
  unread_commons(body.with, outer);
  commons_.resize(commons_before);
  const Kind a = first.distribution.kind;
  const Kind b = second.distribution.kind;
  Shape shape{{}, first.columns, first.known, {}};
  shape.part.stored = first.part.stored;
  if (a == Kind::kSharded || b == Kind::kSharded || a == Kind::kSpread || b == Kind::kSpread)
    shape.distribution = Distribution::spread("WITH RECURSIVE over a sharded table");
  else if (a == Kind::kHome || b == Kind::kHome)
    shape.distribution.kind = Kind::kHome;
  return shape;
}

Shape Analyzer::query(const parser::Query& query, const Scope* parent, Block* outer) {
  const bool top = expects_top_;
  expects_top_ = false;
  if (top) top_query_ = &query;
  const bool exists = std::exchange(exists_, false);
  std::string around = std::exchange(chance_, {});
  inside_.push_back({parent});
  const std::size_t commons_before = commons_.size();
  with(query.with, parent, outer);
  Shape shape;
  if (uses.size() > kUsesMax) {
    opaque = "the statement, which reads more than " + std::to_string(kUsesMax) + " tables";
  } else if (query.body != nullptr) {
    if (const parser::Select* simple = query.simple()) {
      shape = select(*simple, parent, outer, &query);
    } else {
      shape = operand(*query.body, parent, outer, top, query);
      Scope* scope = new_scope(parent);
      scope->visible = shape.columns;
      scope->known = shape.known;
      Block* block = new_block(scope, outer);
      for (const parser::SortItem& item : query.order_by) walk(item.expr, *block);
      walk(query.limit, *block);
      walk(query.offset, *block);
      if (query.limit != nullptr || query.limit_one || query.offset != nullptr) {
        for (ScopeColumn& column : shape.columns) column.term = kNoTerm;
        if (!top && shape.distribution.kind == Kind::kSharded)
          shape.distribution = Distribution::spread("LIMIT or OFFSET in a subquery over several shards");
        if (shape.part.stored && !(query.with_ties && query.offset == nullptr) && !ordered_by_all(query, shape))
          chance_ = "LIMIT or OFFSET without an ORDER BY that tells its rows apart";
      }
    }
  }
  if (!query.locking.empty()) locks = true;
  unread_commons(query.with, outer);
  commons_.resize(commons_before);
  // Beside a row, any of several may be taken; what is worked out once has to be the same for all rows.
  const bool alone = inside_.back().alone;
  inside_.pop_back();
  const std::string why = std::exchange(chance_, std::move(around));
  if (!why.empty() && !exists && (alone || copies_) && shape.distribution.kind == Kind::kEverywhere) {
    by_chance.insert(&query);
    shape.distribution = Distribution::spread(why + " takes other rows on each shard");
  }
  return shape;
}

// Of a set operation.
bool Analyzer::ordered_by_all(const parser::Query& query, const Shape& shape) {
  for (std::size_t i = 0; i < shape.columns.size(); ++i)
    if (std::none_of(query.order_by.begin(), query.order_by.end(), [&](const parser::SortItem& item) {
          const auto* literal = as<parser::Literal>(item.expr);
          const auto* ref = as<parser::ColumnRef>(item.expr);
          return literal != nullptr ? literal->value == std::to_string(i + 1)
                                    : ref != nullptr && ref->column() == shape.columns[i].name;
        }))
      return false;
  return true;
}

Shape Analyzer::operand(const SetOperand& operand_, const Scope* parent, Block* outer, bool top,
                        const parser::Query& owner) {
  switch (operand_.kind) {
    case SetOperand::Kind::kSelect: return select(*operand_.select, parent, outer, nullptr);
    case SetOperand::Kind::kQuery: {
      // A query in parentheses that is all there is counts as the whole.
      if (top && operand_.query->with == nullptr && owner.with == nullptr && owner.order_by.empty() &&
          owner.limit == nullptr && owner.offset == nullptr && !owner.limit_one && owner.locking.empty()) {
        expects_top_ = true;
      }
      return query(*operand_.query, parent, outer);
    }
    case SetOperand::Kind::kValues: {
      Block* block = new_block(new_scope(parent), outer);
      block->from_done = true;
      Shape shape;
      shape.part.keys = keys_of_values(operand_);
      shape.part.literals = operand_.values.size() > 1;
      for (const auto& row : operand_.values)
        for (const parser::Expr* value : row) walk(value, *block);
      if (!operand_.values.empty())
        for (std::size_t i = 0; i < operand_.values[0].size(); ++i) {
          kept_.push_back("column" + std::to_string(i + 1));
          const ExprType type = type_of(operand_.values[0][i], *block->scope);
          shape.columns.push_back({kept_.back(), type.oid, type.collation, kNoTerm, -1, -1});
        }
      if (block->row_volatile)
        shape.distribution = Distribution::spread("a volatile function gives another answer on each shard");
      if (!block->problem.empty()) shape.distribution = Distribution::spread(block->problem);
      return shape;
    }
    case SetOperand::Kind::kTable: {
      Block* block = new_block(new_scope(parent), outer);
      auto node = leaf(*operand_.table, *block);
      Shape shape{node->distribution, node->visible, node->known, block->parts.front()};
      for (const ScopeColumn& column : shape.columns) need(column);
      return shape;
    }
    case SetOperand::Kind::kUnion:
    case SetOperand::Kind::kIntersect:
    case SetOperand::Kind::kExcept: return set_operation(operand_, parent, outer, owner);
  }
  return {};
}

Shape Analyzer::set_operation(const SetOperand& operand_, const Scope* parent, Block* outer,
                              const parser::Query& owner) {
  Shape left = operand(*operand_.left, parent, outer, false, owner);
  Shape right = operand(*operand_.right, parent, outer, false, owner);
  Shape shape;
  shape.known = left.known && right.known;
  shape.part.stored = left.part.stored || right.part.stored;
  const std::size_t count = std::min(left.columns.size(), right.columns.size());
  for (std::size_t i = 0; i < count; ++i) {
    ScopeColumn column = left.columns[i];
    column.use = -1;
    if (column.type != right.columns[i].type) column.type = 0;
    if (column.collation != right.columns[i].collation) column.collation = "default";
    const TermId a = left.columns[i].term;
    const TermId b = right.columns[i].term;
    column.term = kNoTerm;
    if (a != kNoTerm && b != kNoTerm) {
      column.term = new_term(-1, 0);
      edge(column.term, a);
      edge(column.term, b);
    }
    shape.columns.push_back(column);
  }
  if (!operand_.all) {
    FromPart::Key all{{}, true, false};
    for (std::size_t i = 0; i < count; ++i) all.places.push_back(static_cast<int>(i));
    shape.part.keys.push_back(std::move(all));
  }
  const Distribution& l = left.distribution;
  const Distribution& r = right.distribution;
  if (l.kind == Kind::kSpread || r.kind == Kind::kSpread) {
    shape.distribution = l.kind == Kind::kSpread ? l : r;
  } else if (l.kind == Kind::kEverywhere && r.kind == Kind::kEverywhere) {
    shape.distribution = {};
  } else if (l.kind != Kind::kSharded && r.kind != Kind::kSharded) {
    shape.distribution.kind = Kind::kHome;
  } else if (l.kind != Kind::kSharded || r.kind != Kind::kSharded) {
    shape.distribution =
        Distribution::spread("UNION, INTERSECT or EXCEPT of a sharded table and one that is not");
  } else if (l.mapping != r.mapping) {
    shape.distribution = operand_.kind == SetOperand::Kind::kUnion && operand_.all
                             ? Distribution{Kind::kSharded, l.mapping, {}, {}, {}}
                             : Distribution::spread("a set operation over tables of different shard maps");
    // Rows of the two lie by different maps: no key is common, but all of them lie somewhere.
    if (shape.distribution.kind == Kind::kSharded) shape.distribution.keys.clear();
  } else {
    // The key stands in the same columns on both sides.
    shape.distribution = {Kind::kSharded, l.mapping, {}, {}, {}};
    for (const KeyTerms& key : l.keys) {
      KeyTerms out;
      for (std::size_t part = 0; part < key.size(); ++part) {
        for (std::size_t i = 0; i < count; ++i) {
          if (!equalities_.same(left.columns[i].term, key[part])) continue;
          const bool right_too = std::any_of(r.keys.begin(), r.keys.end(), [&](const KeyTerms& other) {
            return part < other.size() && equalities_.same(right.columns[i].term, other[part]);
          });
          if (!right_too) continue;
          out.push_back(shape.columns[i].term);
          break;
        }
      }
      if (out.size() == key.size() && !out.empty()) {
        shape.distribution.keys.push_back(std::move(out));
        break;
      }
    }
    const bool all = operand_.all && operand_.kind == SetOperand::Kind::kUnion;
    if (shape.distribution.keys.empty() && !all)
      shape.distribution = Distribution::spread(
          "UNION, INTERSECT or EXCEPT without the sharding key at the same place on both sides");
  }
  return shape;
}

std::vector<ScopeColumn> Analyzer::target_columns(parser::List<parser::Target> targets, Block& block) {
  std::vector<ScopeColumn> columns;
  for (const parser::Target& target : targets) {
    if (target.expr == nullptr) {
      for (const ScopeColumn& column : block.scope->visible) {
        need(column);
        columns.push_back(column);
      }
      continue;
    }
    const auto* ref = as<parser::ColumnRef>(target.expr);
    if (ref != nullptr && ref->star) {
      if (const ScopeItem* item = find_item(*block.scope, ref->qualifier())) {
        need_all(*item);
        columns.insert(columns.end(), item->columns.begin(), item->columns.end());
      }
      continue;
    }
    walk(target.expr, block);
    note_name_of(target);
    ScopeColumn column{target.alias.text, 0, {}, kNoTerm, -1, -1};
    const ExprType type = type_of(target.expr, *block.scope);
    column.type = type.oid;
    column.collation = type.collation;
    column.term = term_of(target.expr, *block.scope);
    if (ref != nullptr) {
      if (const FoundColumn found = find_column(*block.scope, *ref);
          found.column != nullptr && found.depth == 0) {
        column.use = found.column->use;
        column.column = found.column->column;
        column.origin = found.column->origin;
      }
    }
    if (column.name.empty()) {
      const parser::Expr* named = target.expr;
      while (const auto* cast = as<parser::Cast>(named)) named = cast->arg;
      if (const auto* named_ref = as<parser::ColumnRef>(named))
        column.name = named_ref->column();
      else if (const auto* call = as<parser::FuncCall>(named))
        column.name = call->name.name();
      else
        column.name = "?column?";
    }
    columns.push_back(column);
  }
  return columns;
}

void Analyzer::returning(parser::List<parser::Target> targets, Block& block) {
  const auto before = std::pair(system_column, system_value);
  target_columns(targets, block);
  std::tie(system_column, system_value) = before;
}

Shape Analyzer::select(const parser::Select& select, const Scope* parent, Block* outer,
                       const parser::Query* owner) {
  Block* block = new_block(new_scope(parent), outer);
  block->select = &select;
  const bool top = owner != nullptr && owner == top_query_;
  if (top) top_block_ = block;
  if (select.into != nullptr) into = true;
  const parser::Query* around =
      std::exchange(locking_, owner != nullptr && !owner->locking.empty() ? owner : nullptr);
  from(select.from, select.where, *block, nullptr);
  locking_ = around;
  Shape shape;
  shape.known = block->scope->known;
  shape.columns = target_columns(select.targets, *block);
  for (const parser::Target& target : select.targets)
    if (const auto* ref = as<parser::ColumnRef>(target.expr);
        ref != nullptr && ref->star && find_item(*block->scope, ref->qualifier()) == nullptr)
      shape.known = false;
  for (const parser::Expr* expr : select.distinct_on) walk(expr, *block);
  std::function<void(const parser::GroupItem&)> group = [&](const parser::GroupItem& item) {
    walk(item.expr, *block);
    for (const parser::Expr* expr : item.exprs) walk(expr, *block);
    for (const parser::GroupItem& set : item.sets) group(set);
  };
  for (const parser::GroupItem& item : select.group_by) group(item);
  walk(select.having, *block);
  for (const parser::WindowDefinition& window : select.windows) {
    if (window.spec == nullptr) continue;
    for (const parser::Expr* expr : window.spec->partition_by) walk(expr, *block);
    for (const parser::SortItem& item : window.spec->order_by) walk(item.expr, *block);
  }
  bool limited = false;
  if (owner != nullptr) {
    for (const parser::SortItem& item : owner->order_by) walk(item.expr, *block);
    if (owner->limit != nullptr) walk(owner->limit, *block);
    if (owner->offset != nullptr) walk(owner->offset, *block);
    limited = owner->limit != nullptr || owner->limit_one || owner->offset != nullptr;
  }
  shape.distribution = clauses(select, *block, shape.columns);
  if (chance_.empty()) chance_ = chance_of(select, owner, *block, *this, copies_);
  shape.part.keys = keys_of(select, *block, *this, shape.columns);
  shape.part.stored =
      std::any_of(block->parts.begin(), block->parts.end(), [](const FromPart& part) { return part.stored; });
  // Which keys a condition from outside may still be put on.
  const auto drop_unless = [&](auto&& keeps) {
    for (ScopeColumn& column : shape.columns)
      if (column.term != kNoTerm && !keeps(column.term)) column.term = kNoTerm;
  };
  const auto among = [&](parser::List<const parser::Expr*> exprs, TermId term) {
    return std::any_of(exprs.begin(), exprs.end(), [&](const parser::Expr* expr) {
      return block->equalities.same(term_of(expr, *block->scope), term);
    });
  };
  if (limited) drop_unless([](TermId) { return false; });
  if (std::any_of(select.group_by.begin(), select.group_by.end(),
                  [](const parser::GroupItem& item) { return item.kind != parser::GroupItem::Kind::kExpr; }))
    drop_unless([](TermId) { return false; });
  if (!select.distinct_on.empty()) drop_unless([&](TermId term) { return among(select.distinct_on, term); });
  for (const parser::FuncCall* call : block->window_calls) {
    const parser::WindowSpec* spec = call->over->spec;
    if (spec == nullptr || !spec->base.empty()) {
      drop_unless([](TermId) { return false; });
      continue;
    }
    drop_unless([&](TermId term) { return among(spec->partition_by, term); });
  }
  if (limited && !top && shape.distribution.kind == Kind::kSharded) {
    Distribution spread = Distribution::spread("LIMIT or OFFSET in a subquery over several shards");
    spread.links = shape.distribution.links;
    spread.linked_by = shape.distribution.linked_by;
    shape.distribution = std::move(spread);
  }
  return shape;
}

// What grouping, windows and DISTINCT leave of the distribution that FROM and WHERE have.
Distribution Analyzer::clauses(const parser::Select& select, Block& block,
                               const std::vector<ScopeColumn>& columns) {
  Distribution now = block.from;
  const auto lose = [&](const std::string& why) {
    std::vector<KeyTerms> links = std::move(now.links);
    const shardmap::Mapping* linked_by = now.linked_by;
    now = Distribution::spread(why);
    now.links = std::move(links);
    now.linked_by = linked_by;
  };
  if (!block.problem.empty()) {
    now = Distribution::spread(block.problem);
    return now;
  }
  if (now.kind == Kind::kEverywhere && block.row_volatile) {
    lose("a volatile function gives another answer on each shard");
    return now;
  }
  if (now.kind != Kind::kSharded) return now;
  std::vector<TermId> grouped;
  bool plain_groups = true;
  for (const parser::GroupItem& item : select.group_by) {
    if (item.kind != parser::GroupItem::Kind::kExpr) {
      plain_groups = false;
      continue;
    }
    grouped.push_back(term_of(item.expr, *block.scope));
    // GROUP BY 1, or by an output column's name.
    if (const auto* literal = as<parser::Literal>(item.expr);
        literal != nullptr && literal->literal == parser::LiteralKind::kInteger) {
      const std::size_t position = std::strtoul(std::string(literal->value).c_str(), nullptr, 10);
      if (position >= 1 && position <= columns.size()) grouped.back() = columns[position - 1].term;
    } else if (const auto* ref = as<parser::ColumnRef>(item.expr);
               ref != nullptr && grouped.back() == kNoTerm && ref->parts.size() == 1) {
      const FoundColumn found = find_column(*block.scope, *ref);
      if (found.column == nullptr)
        for (const ScopeColumn& column : columns)
          if (column.name == ref->column()) grouped.back() = column.term;
    }
  }
  const bool groups = block.aggregates || !select.group_by.empty() || select.having != nullptr;
  if (groups && (!plain_groups || !covers_any(grouped, now, block.equalities))) {
    lose("its groups are made of rows of several shards");
    return now;
  }
  for (const parser::FuncCall* call : block.window_calls) {
    std::vector<TermId> parts;
    const parser::WindowSpec* spec = call->over->spec;
    if (spec == nullptr)
      for (const parser::WindowDefinition& window : select.windows)
        if (window.name.text == call->over->window) spec = window.spec;
    if (spec != nullptr && spec->base.empty())
      for (const parser::Expr* expr : spec->partition_by) parts.push_back(term_of(expr, *block.scope));
    if (!covers_any(parts, now, block.equalities)) {
      lose("a window is made of rows of several shards");
      return now;
    }
  }
  if (!select.distinct_on.empty()) {
    std::vector<TermId> on;
    for (const parser::Expr* expr : select.distinct_on) on.push_back(term_of(expr, *block.scope));
    if (!covers_any(on, now, block.equalities)) lose("DISTINCT ON over rows of several shards");
  } else if (select.distinct) {
    std::vector<TermId> out;
    for (const ScopeColumn& column : columns) out.push_back(column.term);
    if (!covers_any(out, now, block.equalities)) lose("DISTINCT over rows of several shards");
  }
  return now;
}

}  // namespace kintsugi::planner
