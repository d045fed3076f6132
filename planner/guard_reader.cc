#include "planner/guard_reader.h"

#include <algorithm>

#include "planner/guard_words.h"

namespace kintsugi::planner {

using parser::as;
using parser::ExprKind;
using parser::Join;
using parser::SetOperand;
using Kind = RelationUse::Kind;

namespace {

constexpr int kDepthMax = 40;

bool plain_schema(parser::List<parser::Name> schema) {
  return schema.empty() || (schema.size() == 1 && schema[0].text == "pg_catalog");
}

}  // namespace

void GuardReader::no(std::string why) {
  if (proof_.why.empty()) proof_.why = std::move(why);
}

void GuardReader::not_silent(std::string why) {
  if (not_silent_.empty()) not_silent_ = std::move(why);
}

GuardProof GuardReader::read() {
  const auto& body = statement_;
  proof_.why.clear();
  if (const auto* query_ = body.get<parser::Query>()) {
    query(*query_, nullptr, Context::kOutput);
  } else if (const auto* insert_ = body.get<parser::Insert>()) {
    insert(*insert_);
  } else if (const auto* update_ = body.get<parser::Update>()) {
    update(*update_);
  } else if (const auto* delete_ = body.get<parser::Delete>()) {
    del(*delete_);
  } else if (const auto* cursor = body.get<parser::DeclareCursor>()) {
    if (cursor->hold) no("a cursor WITH HOLD, which outlives its transaction,");
    query(*cursor->query, nullptr, Context::kOutput);
  } else if (const auto* explain = body.get<parser::Explain>(); explain != nullptr && explain->route) {
    if (explain->body.query != nullptr)
      query(*explain->body.query, nullptr, Context::kOutput);
    else if (explain->body.insert != nullptr)
      insert(*explain->body.insert);
    else if (explain->body.update != nullptr)
      update(*explain->body.update);
    else if (explain->body.del != nullptr)
      del(*explain->body.del);
    else
      no("EXPLAIN of this kind of statement");
  } else if (explain != nullptr) {
    no("EXPLAIN, which tells how many rows others have,");
  } else if (body.get<parser::Copy>() != nullptr) {
    no("COPY");
  } else {
    no("this kind of statement");
  }
  if (sharded_ && !not_silent_.empty()) no(not_silent_);
  if (locks_ && shared_) no("a row lock on a table that all tenants share");
  return std::move(proof_);
}

// ---- queries

// Conditions of whoever reads it may be put into it.
bool GuardReader::with(const parser::WithClause* with, const Frame* outer) {
  if (with == nullptr) return true;
  if (with->recursive)
    for (const parser::CommonTable* table : with->tables) commons_.push_back(table->name.text);
  for (const parser::CommonTable* table : with->tables) {
    if (table->body.query == nullptr) {
      no("a WITH that writes");
      return false;
    }
    if (table->search || table->cycle) no("SEARCH or CYCLE");
    query(*table->body.query, outer, Context::kFilter);
    if (!with->recursive) commons_.push_back(table->name.text);
  }
  return true;
}

void GuardReader::query(const parser::Query& query, const Frame* outer, Context targets) {
  if (++depth_ > kDepthMax) no("a statement nested this deep");
  if (!proof_.why.empty()) {
    --depth_;
    return;
  }
  const std::size_t commons_before = commons_.size();
  const parser::Select* simple = query.simple();
  if (with(query.with, outer) && query.body != nullptr) {
    if (simple != nullptr) {
      select(*simple, &query, outer, targets);
    } else {
      operand(*query.body, query, outer, targets);
      // They name output columns.
      for (const parser::SortItem& item : query.order_by)
        if (as<parser::ColumnRef>(item.expr) == nullptr && as<parser::Literal>(item.expr) == nullptr)
          no("an ORDER BY of this form");
    }
    const Frame nothing{{}, {}, outer};
    expr(query.limit, nothing, Context::kOutput);
    expr(query.offset, nothing, Context::kOutput);
  }
  if (!query.locking.empty()) locks_ = true;
  commons_.resize(commons_before);
  --depth_;
}

void GuardReader::operand(const SetOperand& operand_, const parser::Query& owner, const Frame* outer,
                          Context targets) {
  switch (operand_.kind) {
    case SetOperand::Kind::kSelect: return select(*operand_.select, nullptr, outer, targets);
    case SetOperand::Kind::kQuery: return query(*operand_.query, outer, targets);
    case SetOperand::Kind::kValues: {
      const Frame nothing{{}, {}, outer};
      for (const auto& row : operand_.values)
        for (const parser::Expr* value : row) expr(value, nothing, targets);
      return;
    }
    case SetOperand::Kind::kTable: {
      Frame frame{{}, {}, outer};
      add_table(*operand_.table, frame, false);
      return require_pins(frame);
    }
    case SetOperand::Kind::kUnion:
    case SetOperand::Kind::kIntersect:
    case SetOperand::Kind::kExcept:
      operand(*operand_.left, owner, outer, targets);
      return operand(*operand_.right, owner, outer, targets);
  }
}

void GuardReader::select(const parser::Select& select, const parser::Query* owner, const Frame* outer,
                         Context context) {
  if (select.into != nullptr) return no("SELECT INTO");
  Frame frame{{}, {}, outer};
  read_from(select.from, select.where, frame, select.having != nullptr ? Context::kFilter : context);
  targets(select.targets, frame, context);
  for (const parser::Expr* each : select.distinct_on) expr(each, frame, context);
  std::vector<const parser::GroupItem*> open;
  for (const parser::GroupItem& item : select.group_by) open.push_back(&item);
  while (!open.empty()) {
    const parser::GroupItem& item = *open.back();
    open.pop_back();
    expr(item.expr, frame, context);
    for (const parser::Expr* each : item.exprs) expr(each, frame, context);
    for (const parser::GroupItem& set : item.sets) open.push_back(&set);
  }
  // PostgreSQL evaluates what it can of HAVING as WHERE.
  expr(select.having, frame, Context::kFilter);
  for (const parser::WindowDefinition& window : select.windows) {
    if (window.spec == nullptr) continue;
    for (const parser::Expr* each : window.spec->partition_by) expr(each, frame, context);
    for (const parser::SortItem& item : window.spec->order_by) expr(item.expr, frame, context);
  }
  if (owner == nullptr) return;
  for (const parser::SortItem& item : owner->order_by) {
    if (!item.using_operator.empty() && !is_silent_operator(item.using_operator)) no("ORDER BY ... USING");
    expr(item.expr, frame, context);
  }
}

void GuardReader::targets(parser::List<parser::Target> list, const Frame& frame, Context context) {
  for (const parser::Target& target : list) expr(target.expr, frame, context);
}

// ---- FROM

void GuardReader::read_from(parser::List<const parser::FromItem*> items, const parser::Expr* where,
                            Frame& frame, Context inner) {
  std::vector<Condition> conditions;
  for (const parser::FromItem* item : items) add(*item, frame, conditions);
  for (std::size_t i = 0; i < frame.items.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (frame.items[i].alias == frame.items[k].alias && !frame.items[i].alias.empty())
        return no("the same table name twice in one FROM");
  if (where != nullptr) conditions.push_back({where, 0, frame.items.size()});
  pin(frame, conditions);
  require_pins(frame);
  if (!conditions.empty() || frame.items.size() > 1) inner = Context::kFilter;
  for (const parser::FromItem* item : items) inside(*item, frame, inner);
  for (const Condition& condition : conditions) expr(condition.expr, frame, Context::kFilter);
}

void GuardReader::add_table(const parser::TableRef& ref, Frame& frame, bool target) {
  Item item;
  item.target = target;
  item.alias = ref.alias.given() ? ref.alias.name.text : ref.name.name();
  if (ref.sample != nullptr) return no("TABLESAMPLE");
  if (!target && ref.name.schema().empty() &&
      std::find(commons_.begin(), commons_.end(), ref.name.name()) != commons_.end()) {
    frame.items.push_back(std::move(item));
    return;
  }
  if (!ref.alias.columns.empty()) return no("a table whose columns are given other names");
  const RelationUse use = analyzer_.resolve(ref.name);
  item.relation = use.relation;
  item.display = use.display;
  if (use.relation == nullptr) return no("the table " + use.display + ", which is not known,");
  const bool table =
      use.relation->kind == RelationKind::kTable || use.relation->kind == RelationKind::kPartitioned;
  switch (use.kind) {
    case Kind::kSharded:
      if (!table) return no("what " + use.display + " is");
      item.table = use.table;
      item.pins.resize(use.table->key.size());
      sharded_ = true;
      break;
    case Kind::kReplicated:
      if (!table) return no("what " + use.display + " is");
      if (target) return no("a write to the replicated table " + use.display + ", which all tenants share,");
      shared_ = true;
      break;
    case Kind::kSystem:
      if (target || !is_plain_catalog(use.relation->schema, use.relation->name))
        return no("the system table " + use.display);
      shared_ = true;
      break;
    default:
      if (use.relation->kind == RelationKind::kView)
        return no("the view " + use.display + " (name its tables instead)");
      return no("the table " + use.display + ", which is no tenant's,");
  }
  frame.items.push_back(std::move(item));
}

void GuardReader::add(const parser::FromItem& item, Frame& frame, std::vector<Condition>& conditions) {
  if (const auto* ref = as<parser::TableRef>(&item)) return add_table(*ref, frame, false);
  const auto* join = as<Join>(&item);
  if (join == nullptr) {
    std::string_view alias = item.alias.name.text;
    if (const auto* function = as<parser::FunctionRef>(&item);
        function != nullptr && alias.empty() && function->functions.size() == 1)
      if (const auto* one = as<parser::FuncCall>(function->functions[0])) alias = one->name.name();
    frame.items.push_back({alias, nullptr, nullptr, {}, {}, false});
    return;
  }
  if (join->natural) return no("a NATURAL JOIN");
  if (join->type == Join::Type::kFull) return no("a FULL JOIN");
  if (join->alias.given() || !join->using_alias.empty()) return no("a join with a name of its own");
  const std::size_t low = frame.items.size();
  add(*join->left, frame, conditions);
  const std::size_t middle = frame.items.size();
  add(*join->right, frame, conditions);
  const std::size_t high = frame.items.size();
  // ON restricts both sides of an inner join, and of an outer one the side that may be left out.
  const std::size_t from = join->type == Join::Type::kLeft ? middle : low;
  const std::size_t to = join->type == Join::Type::kRight ? middle : high;
  if (join->on != nullptr) conditions.push_back({join->on, from, to});
  for (const parser::Name& name : join->using_columns) {
    // left.name = right.name, for each pair of tables that have the key under that name.
    for (std::size_t l = low; l < middle; ++l)
      for (std::size_t r = middle; r < high; ++r) {
        const auto place = [&](std::size_t at) -> std::optional<std::size_t> {
          const Item& each = frame.items[at];
          if (each.table == nullptr) return std::nullopt;
          const auto found = std::find(each.table->key.begin(), each.table->key.end(), name.text);
          if (found == each.table->key.end()) return std::nullopt;
          return static_cast<std::size_t>(found - each.table->key.begin());
        };
        const auto left = place(l), right = place(r);
        // Only where it is plain which two are meant.
        if (left && right && middle - low == 1 && high - middle == 1)
          frame.usings.push_back({l, *left, r, *right, from, to});
      }
  }
}

// What stands inside the items: subqueries and functions.
void GuardReader::inside(const parser::FromItem& item, const Frame& frame, Context targets) {
  if (const auto* join = as<Join>(&item)) {
    inside(*join->left, frame, targets);
    return inside(*join->right, frame, targets);
  }
  if (const auto* subquery = as<parser::SubqueryRef>(&item))
    return query(*subquery->query, item.lateral ? &frame : frame.outer, targets);
  if (const auto* function = as<parser::FunctionRef>(&item))
    for (const parser::Expr* each : function->functions) expr(each, frame, Context::kFilter);
}

// ---- pins

std::optional<GuardReader::KeyColumn> GuardReader::key_column(const parser::Expr* expr,
                                                              const Frame& frame) const {
  const auto* ref = as<parser::ColumnRef>(expr);
  if (ref == nullptr || ref->star || ref->parts.size() > 3) return std::nullopt;
  for (const Frame* at = &frame; at != nullptr; at = at->outer) {
    bool uncertain = false;
    for (std::size_t i = 0; i < at->items.size(); ++i) {
      const Item& item = at->items[i];
      if (!ref->qualifier().empty() && item.alias != ref->qualifier()) continue;
      if (item.relation == nullptr) {
        uncertain = true;
        continue;
      }
      if (item.relation->column(ref->column()) == nullptr) continue;
      if (ref->parts.size() == 3 && item.relation->schema != ref->parts[0].text) return std::nullopt;
      if (item.table == nullptr) return std::nullopt;
      const auto& key = item.table->key;
      const auto found = std::find(key.begin(), key.end(), ref->column());
      if (found == key.end()) return std::nullopt;
      return KeyColumn{at, i, static_cast<std::size_t>(found - key.begin())};
    }
    if (uncertain) return std::nullopt;
    if (!ref->qualifier().empty() && std::any_of(at->items.begin(), at->items.end(), [&](const Item& item) {
          return item.alias == ref->qualifier();
        }))
      return std::nullopt;
  }
  return std::nullopt;
}

// The value that a literal, a parameter, or a pinned key column is.
std::optional<Source> GuardReader::pinned_value(const parser::Expr* expr, const Frame& frame) {
  if (const auto key = key_column(expr, frame)) {
    const Item& item = key->frame->items[key->item];
    return key->column < item.pins.size() ? item.pins[key->column] : std::nullopt;
  }
  if (as<parser::ColumnRef>(expr) != nullptr) return std::nullopt;
  return analyzer_.source_of(expr);
}

void GuardReader::pin(Frame& frame, const std::vector<Condition>& conditions) {
  struct Equality {
    const parser::Operator* node;
    std::size_t low, high;
  };
  std::vector<Equality> equalities;
  for (const Condition& condition : conditions) {
    std::vector<const parser::Expr*> all;
    Analyzer::conjuncts(condition.expr, all);
    for (const parser::Expr* each : all)
      if (const auto* node = as<parser::Operator>(each);
          node != nullptr && node->op == "=" && node->left != nullptr && plain_schema(node->schema))
        equalities.push_back({node, condition.low, condition.high});
  }
  for (bool changed = true; changed;) {
    changed = false;
    const auto take = [&](std::size_t item, std::size_t column, const std::optional<Source>& source) {
      Item& each = frame.items[item];
      if (!source || column >= each.pins.size() || each.pins[column]) return;
      each.pins[column] = source;
      changed = true;
    };
    for (const Equality& equality : equalities)
      for (const bool turned : {false, true}) {
        const auto key = key_column(turned ? equality.node->right : equality.node->left, frame);
        if (!key || key->frame != &frame || key->item < equality.low || key->item >= equality.high) continue;
        if (frame.items[key->item].pins[key->column]) continue;
        take(key->item, key->column, pinned_value(turned ? equality.node->left : equality.node->right, frame));
      }
    for (const Using& use : frame.usings) {
      const auto value = [&](std::size_t item, std::size_t column) { return frame.items[item].pins[column]; };
      if (use.right >= use.from && use.right < use.to)
        take(use.right, use.right_column, value(use.left, use.left_column));
      if (use.left >= use.from && use.left < use.to)
        take(use.left, use.left_column, value(use.right, use.right_column));
    }
  }
}

void GuardReader::require_pins(const Frame& frame) {
  for (const Item& item : frame.items) {
    if (item.table == nullptr || item.target) continue;
    GuardProof::Key key{item.display, item.table->map, {}};
    for (std::size_t i = 0; i < item.pins.size(); ++i) {
      if (!item.pins[i])
        return no("a use of " + item.display + " without \"" + item.table->key[i] +
                  " = ...\" beside it in the same query");
      key.sources.push_back(*item.pins[i]);
    }
    proof_.keys.push_back(std::move(key));
  }
}

// ---- writes

void GuardReader::insert(const parser::Insert& insert) {
  if (!with(insert.with, nullptr)) return;
  Frame frame{{}, {}, nullptr};
  add_table(insert.table, frame, true);
  if (!proof_.why.empty()) return;
  if (frame.items.empty() || frame.items[0].table == nullptr)
    return no("a write to something else than a sharded table");
  const Item target = frame.items[0];
  for (const parser::AssignTarget& column : insert.columns)
    if (!column.steps.empty()) no("an INSERT into a part of a column");
  const bool values = insert.source == nullptr || (insert.source->body != nullptr &&
                                                   insert.source->body->kind == SetOperand::Kind::kValues);
  if (insert.source != nullptr) query(*insert.source, nullptr, Context::kOutput);
  if (values)
    proof_.rows = true;
  else
    insert_query(insert, target);
  if (insert.on_conflict != nullptr) on_conflict(*insert.on_conflict, *target.table, frame);
  targets(insert.returning, frame, Context::kOutput);
}

// INSERT ... SELECT: the key column of the rows is a value, or a column that is pinned to one.
void GuardReader::insert_query(const parser::Insert& insert, const Item& target) {
  const parser::Select* select = insert.source->simple();
  if (select == nullptr) return no("INSERT of rows whose key is not written in it");
  Frame frame{{}, {}, nullptr};
  std::vector<Condition> conditions;
  const std::size_t commons_before = commons_.size();
  if (insert.source->with != nullptr)
    for (const parser::CommonTable* table : insert.source->with->tables) commons_.push_back(table->name.text);
  for (const parser::FromItem* item : select->from) add(*item, frame, conditions);
  if (select->where != nullptr) conditions.push_back({select->where, 0, frame.items.size()});
  pin(frame, conditions);
  commons_.resize(commons_before);
  GuardProof::Key key{target.display, target.table->map, {}};
  for (const std::string& name : target.table->key) {
    std::optional<std::size_t> place;
    if (insert.columns.empty()) {
      for (std::size_t i = 0; i < target.relation->columns.size(); ++i)
        if (target.relation->columns[i].name == name) place = i;
    }
    for (std::size_t i = 0; i < insert.columns.size(); ++i)
      if (insert.columns[i].column.text == name) place = i;
    const bool plain =
        std::none_of(select->targets.begin(), select->targets.end(), [](const parser::Target& each) {
          const auto* ref = as<parser::ColumnRef>(each.expr);
          return each.expr == nullptr || each.star || (ref != nullptr && ref->star);
        });
    std::optional<Source> source;
    if (place && plain && *place < select->targets.size())
      source = pinned_value(select->targets[*place].expr, frame);
    if (!source) return no("INSERT of rows whose key is not written in it");
    key.sources.push_back(*source);
  }
  proof_.keys.push_back(std::move(key));
}

// The row in conflict is the tenant's own when the index that finds it has the key.
void GuardReader::on_conflict(const parser::OnConflict& conflict, const shardmap::Table& table,
                              const Frame& frame) {
  for (const parser::IndexElement& element : conflict.target)
    if (element.expr != nullptr) no("ON CONFLICT of an expression");
  if (!conflict.do_update) return;
  if (!conflict.constraint.text.empty()) return no("ON CONFLICT ON CONSTRAINT ... DO UPDATE");
  for (const std::string& key : table.key) {
    if (std::none_of(conflict.target.begin(), conflict.target.end(),
                     [&](const parser::IndexElement& element) { return element.column.text == key; }))
      return no("ON CONFLICT DO UPDATE without the key " + key + " among the columns of the conflict");
    for (const parser::SetClause& set : conflict.set)
      for (const parser::AssignTarget& target : set.targets)
        if (target.column.text == key) no("ON CONFLICT DO UPDATE of the key " + key);
  }
  Frame both = frame;
  both.items.push_back({"excluded", frame.items[0].relation, nullptr, {}, {}, true});
  expr(conflict.target_where, both, Context::kFilter);
  for (const parser::SetClause& set : conflict.set) expr(set.value, both, Context::kOutput);
  expr(conflict.where, both, Context::kOutput);
}

void GuardReader::take_set(parser::List<parser::SetClause> set, const Frame& frame) {
  const Item& target = frame.items[0];
  for (const parser::SetClause& clause : set) {
    expr(clause.value, frame, Context::kOutput);
    for (const parser::AssignTarget& assigned : clause.targets) {
      const auto& key = target.table->key;
      if (std::find(key.begin(), key.end(), assigned.column.text) == key.end()) continue;
      const auto source = clause.multiple || key.size() != 1 ? std::nullopt : analyzer_.source_of(clause.value);
      if (!source) return no("a change of the key " + std::string(assigned.column.text));
      proof_.keys.push_back({target.display, target.table->map, {*source}});
    }
  }
}

void GuardReader::update(const parser::Update& update) {
  if (!update.current_of.text.empty()) return no("WHERE CURRENT OF");
  if (!with(update.with, nullptr)) return;
  Frame frame{{}, {}, nullptr};
  add_table(update.table, frame, false);
  if (!proof_.why.empty()) return;
  if (frame.items.empty() || frame.items[0].table == nullptr)
    return no("a write to " + (frame.items.empty() ? std::string("that") : frame.items[0].display) +
              ", which all tenants share,");
  read_from(update.from, update.where, frame, Context::kOutput);
  if (!proof_.why.empty()) return;
  take_set(update.set, frame);
  targets(update.returning, frame, Context::kOutput);
}

void GuardReader::del(const parser::Delete& del) {
  if (!del.current_of.text.empty()) return no("WHERE CURRENT OF");
  if (!with(del.with, nullptr)) return;
  Frame frame{{}, {}, nullptr};
  add_table(del.table, frame, false);
  if (!proof_.why.empty()) return;
  if (frame.items.empty() || frame.items[0].table == nullptr)
    return no("a write to " + (frame.items.empty() ? std::string("that") : frame.items[0].display) +
              ", which all tenants share,");
  read_from(del.using_items, del.where, frame, Context::kOutput);
  targets(del.returning, frame, Context::kOutput);
}

}  // namespace kintsugi::planner
