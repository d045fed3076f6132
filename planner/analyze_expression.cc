// Expressions: which columns they need, which functions they call, whether a subquery in them can be evaluated
// beside the row it belongs to.
#include <algorithm>

#include "parser/literals.h"
#include "planner/analyse.h"
#include "planner/analyzer.h"

namespace kintsugi::planner {

using parser::as;
using parser::ExprKind;
using Kind = Distribution::Kind;

namespace {

// VOLATILE functions of PostgreSQL that mean the same wherever a row is: another value each time is all they
// promise.
constexpr std::string_view kRowVolatile[] = {
    "random",           "gen_random_uuid", "clock_timestamp",  "timeofday", "uuid_generate_v1",
    "uuid_generate_v4", "random_normal",   "gen_random_bytes", "gen_salt",  "uuid_generate_v1mc"};
constexpr std::string_view kSessionTime[] = {"now",          "transaction_timestamp", "statement_timestamp",
                                             "current_date", "current_time",          "current_timestamp",
                                             "localtime",    "localtimestamp",        "age"};
// STABLE functions whose answer is the session's or the server's own.
constexpr std::string_view kPlaceStable[] = {"txid_current",
                                             "txid_current_snapshot",
                                             "pg_current_xact_id",
                                             "pg_current_snapshot",
                                             "pg_current_xact_id_if_assigned",
                                             "txid_current_if_assigned",
                                             "inet_server_addr",
                                             "inet_server_port",
                                             "pg_postmaster_start_time",
                                             "pg_conf_load_time",
                                             "pg_is_in_recovery",
                                             "pg_backend_pid",
                                             "current_database"};

constexpr std::string_view kSystemColumns[] = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"};

// A table by its name, which means the same on every shard.
bool is_regclass(const parser::Expr* expr) {
  const auto* cast = as<parser::Cast>(expr);
  return cast != nullptr && cast->type->name.name() == "regclass";
}

template <std::size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

void Analyzer::conjuncts(const parser::Expr* expr, std::vector<const parser::Expr*>& out) {
  if (const auto* both = as<parser::BoolExpr>(expr); both != nullptr && !both->is_or) {
    for (const parser::Expr* arg : both->args) conjuncts(arg, out);
    return;
  }
  if (expr != nullptr) out.push_back(expr);
}

void Analyzer::need(const ScopeColumn& column) {
  if (column.use < 0 || column.column < 0) return;
  RelationUse& use = uses[static_cast<std::size_t>(column.use)];
  if (static_cast<std::size_t>(column.column) < use.needed.size())
    use.needed[static_cast<std::size_t>(column.column)] = true;
}

void Analyzer::need_all(const ScopeItem& item) {
  for (const ScopeColumn& column : item.columns) need(column);
}

// Subqueries that are being read are not alone when the scope is around them; null: it may be.
void Analyzer::speaks_of(const Scope* scope) {
  for (Inside& each : inside_) {
    const Scope* at = each.around;
    while (scope != nullptr && at != nullptr && at != scope) at = at->parent;
    if (at != nullptr) each.alone = false;
  }
}

const Scope* Analyzer::scope_of(const Scope& scope, const parser::ColumnRef& ref) {
  const FoundColumn found = find_column(scope, ref);
  const Scope* at = found.column == nullptr ? nullptr : &scope;
  for (int depth = found.depth; at != nullptr && depth > 0; --depth) at = at->parent;
  return at;
}

void Analyzer::note_whole_row(const parser::ColumnRef& ref, const ScopeItem& item) {
  whole_row = true;
  // A WITH that is used twice is read twice.
  if (item.relation != nullptr &&
      std::none_of(whole_rows.begin(), whole_rows.end(), [&](const WholeRow& other) {
        return other.unit == unit_ && other.range.begin == ref.range.begin;
      }))
    whole_rows.push_back({unit_, ref.range, item.alias, item.ref, item.relation});
}

void Analyzer::walk_column(const parser::ColumnRef& ref, Block& block) {
  if (ref.star) {
    for (const Scope* at = block.scope; at != nullptr; at = at->parent)
      if (const ScopeItem* item = find_item(*at, ref.qualifier())) {
        speaks_of(at);
        return need_all(*item);
      }
    return speaks_of(nullptr);
  }
  const FoundColumn found = find_column(*block.scope, ref);
  if (found.column != nullptr) {
    if (!inside_.empty()) speaks_of(scope_of(*block.scope, ref));
    if (found.column->use >= 0) named_columns.push_back({found.column->use, found.column->column, ref.range});
    return need(*found.column);
  }
  if (ref.parts.size() == 1) {
    // An alias alone is its whole row.
    for (const Scope* at = block.scope; at != nullptr; at = at->parent)
      if (const ScopeItem* item = find_item(*at, ref.column())) {
        note_whole_row(ref, *item);
        speaks_of(at);
        return need_all(*item);
      }
  }
  if (among(kSystemColumns, ref.column())) system_column = system_value = ref.column();
  // ORDER BY what the select list calls so.
  const bool own_output =
      block.select != nullptr && ref.parts.size() == 1 &&
      std::any_of(block.select->targets.begin(), block.select->targets.end(),
                  [&](const parser::Target& target) { return target.alias.text == ref.column(); });
  if (!own_output) speaks_of(nullptr);
  // Not found or ambiguous: whatever bears that name may be meant.
  for (RelationUse& use : uses)
    for (std::size_t i = 0; use.relation != nullptr && i < use.relation->columns.size(); ++i)
      if (use.relation->columns[i].name == ref.column()) use.needed[i] = true;
}

const Function* Analyzer::function_of(const parser::FuncCall& call) const {
  if (call.special) return catalog_.function("pg_catalog", call.name.name());
  if (!call.name.schema().empty()) return catalog_.function(call.name.schema(), call.name.name());
  return catalog_.find_function(names_.search_path, call.name.name());
}

bool Analyzer::is_aggregate(const parser::FuncCall& call) const {
  if (call.special || call.over != nullptr) return false;
  if (call.star || call.distinct || call.filter != nullptr || !call.order_by.empty() ||
      !call.within_group.empty())
    return true;
  const Function* function = function_of(call);
  return function != nullptr && function->kinds.find('a') != std::string::npos;
}

void Analyzer::note_time(const parser::FuncCall& call) {
  session_time = true;
  if (!(call.args.empty() || call.special)) {
    other_times = true;
    return;
  }
  if (unit_ != 0) {
    const auto known = [&](const ViewTime& other) {
      return other.unit == unit_ && other.range.begin == call.range.begin;
    };
    if (std::none_of(view_times.begin(), view_times.end(), known)) view_times.push_back({unit_, call.range});
    return;
  }
  const auto same = [&](const parser::Range& other) { return other.begin == call.range.begin; };
  // A WITH that is used twice is read twice.
  if (std::none_of(time_calls.begin(), time_calls.end(), same)) time_calls.push_back(call.range);
}

void Analyzer::note_name_of(const parser::Target& target) {
  if (!target.alias.text.empty()) return;
  const parser::Expr* named = target.expr;
  for (;;) {
    const parser::Expr* inner = nullptr;
    if (const auto* cast = as<parser::Cast>(named))
      inner = cast->arg;
    else if (const auto* collate = as<parser::Collate>(named))
      inner = collate->arg;
    else if (const auto* either = as<parser::Case>(named))
      inner = either->otherwise;
    if (inner == nullptr) break;
    named = inner;
  }
  for (WholeRow& row : whole_rows)
    if (row.unit == unit_ && named != nullptr && row.range.begin == named->range.begin &&
        row.range.end == named->range.end)
      row.name_at = target.range.end;
  if (unit_ != 0) return;
  const auto* call = as<parser::FuncCall>(named);
  if (call == nullptr || std::none_of(time_calls.begin(), time_calls.end(), [&](const parser::Range& time) {
        return time.begin == call->range.begin && time.end == call->range.end;
      }))
    return;
  named_by_time.emplace_back(target.range.end, call->name.name());
}

void Analyzer::look_into(const Function& function) {
  for (const shardmap::Table* table : map_.tables()) {
    if (table->kind == shardmap::TableKind::kReplicated && writes_copies.empty() &&
        std::binary_search(function.writes.begin(), function.writes.end(), table->name))
      writes_copies =
          function.name + ", which writes to the replicated table " + table->schema + "." + table->name;
    if (table->kind != shardmap::TableKind::kSharded || !reads_sharded.empty()) continue;
    if (std::binary_search(function.mentions.begin(), function.mentions.end(), table->name))
      reads_sharded = function.name + ", which names the sharded table " + table->schema + "." + table->name;
    else if (std::binary_search(function.mentions.begin(), function.mentions.end(), kAnyRelation))
      reads_sharded = function.name + ", which puts the statements together that it EXECUTEs";
  }
}

void Analyzer::walk_call(const parser::FuncCall& call, Block& block) {
  const bool window = call.over != nullptr;
  if (window) block.window_calls.push_back(&call);
  if (!window && is_aggregate(call)) {
    // An aggregate over nothing but outer columns belongs to the query outside.
    bool outer_only = false;
    bool own = call.star || call.args.empty();
    for (const parser::Argument& arg : call.args)
      if (const auto* ref = as<parser::ColumnRef>(arg.value)) {
        const FoundColumn found = find_column(*block.scope, *ref);
        (found.column != nullptr && found.depth > 0 ? outer_only : own) = true;
      } else {
        own = true;
      }
    block.aggregates = true;
    block.aggregate_calls.push_back(&call);
    if (outer_only && !own)
      for (Block* each = &block; each != nullptr; each = each->outer)
        each->problem = "an aggregate in a subquery over the columns of the query outside";
  }
  const std::string_view name = call.name.name();
  note_setval(*this, call);
  if (call.special && among(kSessionTime, name)) note_time(call);
  if (call.special && name == "current_catalog" && one_place.empty()) one_place = name;
  if (!call.special) {
    const Function* function = function_of(call);
    if (function == nullptr) {
      unknown_names = true;
      if (one_place.empty()) one_place = name;
    } else {
      const bool built_in = function->schema == "pg_catalog";
      const bool stands_for_it = !built_in && catalog_.function("pg_catalog", name) != nullptr;
      if (!stands_for_it && among(kSessionTime, name)) note_time(call);
      if (function->volatility == 'v') {
        if (!stands_for_it && among(kRowVolatile, name))
          block.row_volatile = true;
        else if (one_place.empty())
          one_place = name;
      } else if (built_in && among(kPlaceStable, name) && one_place.empty()) {
        one_place = name;
      }
      if (!built_in && function->reads_tables) {
        if (reads_tables.empty()) reads_tables = name;
        look_into(*function);
      }
    }
    // A function that finds its table by a name in its arguments.
    static constexpr std::string_view kByName[] = {"query_to_xml",
                                                   "table_to_xml",
                                                   "cursor_to_xml",
                                                   "schema_to_xml",
                                                   "database_to_xml",
                                                   "ts_stat",
                                                   "table_to_xml_and_xmlschema",
                                                   "pg_relation_size",
                                                   "pg_total_relation_size",
                                                   "pg_table_size",
                                                   "pg_indexes_size",
                                                   "pg_database_size"};
    if (among(kByName, name) && one_place.empty()) one_place = name;
    // And one that runs what a text says.
    static constexpr std::string_view kRuns[] = {
        "query_to_xml",  "query_to_xml_and_xmlschema",  "table_to_xml",    "table_to_xml_and_xmlschema",
        "schema_to_xml", "schema_to_xml_and_xmlschema", "database_to_xml", "database_to_xml_and_xmlschema",
        "ts_stat"};
    const bool runs = among(kRuns, name) || (name == "ts_rewrite" && call.args.size() == 2);
    if (runs && reads_sharded.empty() && std::ranges::any_of(map_.tables(), [](const shardmap::Table* table) {
          return table->kind == shardmap::TableKind::kSharded;
        }))
      reads_sharded = std::string(name) + ", which reads tables that its arguments name";
  }
  for (const parser::Argument& arg : call.args) {
    walk(arg.value, block);
    // f(c.*) gets the row.
    if (const auto* ref = as<parser::ColumnRef>(arg.value); ref != nullptr && ref->star)
      for (const Scope* at = block.scope; at != nullptr; at = at->parent)
        if (const ScopeItem* item = find_item(*at, ref->qualifier())) {
          note_whole_row(*ref, *item);
          break;
        }
  }
  for (const parser::SortItem& item : call.order_by) walk(item.expr, block);
  for (const parser::SortItem& item : call.within_group) walk(item.expr, block);
  walk(call.filter, block);
  if (window && call.over->spec != nullptr) {
    for (const parser::Expr* expr : call.over->spec->partition_by) walk(expr, block);
    for (const parser::SortItem& item : call.over->spec->order_by) walk(item.expr, block);
    walk(call.over->spec->start.offset, block);
    walk(call.over->spec->end.offset, block);
  }
}

// Whether rows of a subquery lie where the row lies that it is evaluated for.
bool Analyzer::linked(const Distribution& inner, const Block& block) const {
  for (const Block* each = &block; each != nullptr; each = each->outer) {
    if (!each->from_done || each->from.kind != Kind::kSharded || each->from.mapping != inner.linked_by)
      continue;
    Distribution links;
    links.keys = inner.links;
    if (keys_match(each->from, links, each->equalities)) return true;
  }
  return false;
}

void Analyzer::walk_subquery(const parser::Subquery& subquery, Block& block) {
  walk(subquery.test, block);
  inside_.push_back({block.scope});
  exists_ = subquery.form == parser::Subquery::Form::kExists;
  const Shape shape = query(*subquery.query, block.scope, &block);
  const bool alone = inside_.back().alone;
  inside_.pop_back();
  const Distribution& inner = shape.distribution;
  if (inner.kind == Kind::kEverywhere || linked(inner, block)) return;
  const bool equality = subquery.form == parser::Subquery::Form::kIn ||
                        (subquery.form == parser::Subquery::Form::kAny && subquery.op == "=");
  if (equality && inner.kind == Kind::kSharded && block.from_done) {
    // key IN (SELECT key ...): only rows of the same key can be equal.
    std::vector<const parser::Expr*> tests{subquery.test};
    if (const auto* row = as<parser::Row>(subquery.test))
      tests.assign(row->elements.begin(), row->elements.end());
    std::vector<KeyTerms> seen;
    for (const KeyTerms& key : inner.keys) {
      KeyTerms outer;
      for (const TermId term : key)
        for (std::size_t i = 0; i < tests.size() && i < shape.columns.size(); ++i)
          if (equalities_.same(shape.columns[i].term, term)) {
            outer.push_back(term_of(tests[i], *block.scope));
            break;
          }
      if (outer.size() == key.size()) seen.push_back(std::move(outer));
    }
    Distribution links;
    links.links = std::move(seen);
    links.linked_by = inner.mapping;
    // A positive IN among AND's arms also says what the outer keys are.
    if (linked(links, block)) return;
  }
  if (block.outer == nullptr && unit_ == 0) apart.push_back({&subquery, alone});
  if (block.problem.empty()) {
    if (inner.kind == Kind::kSpread)
      block.problem = "in a subquery, " + inner.why;
    else if (inner.kind == Kind::kHome && block.from_done && block.from.kind != Kind::kSharded) {
      // Home with home, or with what is everywhere.
      block.from.kind = block.from.kind == Kind::kEverywhere ? Kind::kHome : block.from.kind;
    } else if (inner.kind == Kind::kHome) {
      block.problem = "a subquery reads a table that is on the home shard alone";
    } else {
      block.problem = "a subquery reads a sharded table, not by the key of the row outside";
    }
  }
}

void Analyzer::walk(const parser::Expr* expr, Block& block) {
  if (expr == nullptr) return;
  switch (expr->kind) {
    case ExprKind::kLiteral:
    case ExprKind::kParameter:
    case ExprKind::kDefault: return;
    case ExprKind::kColumnRef: return walk_column(*as<parser::ColumnRef>(expr), block);
    case ExprKind::kIndirection: {
      const auto& node = *as<parser::Indirection>(expr);
      walk(node.base, block);
      for (const auto& step : node.steps) {
        walk(step.low, block);
        walk(step.high, block);
      }
      return;
    }
    case ExprKind::kOperator: {
      const auto& node = *as<parser::Operator>(expr);
      const std::string value_before = system_value;
      walk(node.left, block);
      walk(node.right, block);
      if ((as<parser::ColumnRef>(node.left) != nullptr && as<parser::ColumnRef>(node.right) != nullptr) ||
          (system_value == "tableoid" && (is_regclass(node.left) || is_regclass(node.right))))
        system_value = value_before;
      return;
    }
    case ExprKind::kBool:
      for (const parser::Expr* arg : as<parser::BoolExpr>(expr)->args) walk(arg, block);
      return;
    case ExprKind::kNot: return walk(as<parser::Not>(expr)->arg, block);
    case ExprKind::kIsTest: return walk(as<parser::IsTest>(expr)->arg, block);
    case ExprKind::kDistinctFrom: {
      const auto& node = *as<parser::DistinctFrom>(expr);
      walk(node.left, block);
      return walk(node.right, block);
    }
    case ExprKind::kLike: {
      const auto& node = *as<parser::Like>(expr);
      walk(node.arg, block);
      walk(node.pattern, block);
      return walk(node.escape, block);
    }
    case ExprKind::kBetween: {
      const auto& node = *as<parser::Between>(expr);
      walk(node.arg, block);
      walk(node.low, block);
      return walk(node.high, block);
    }
    case ExprKind::kInList: {
      const auto& node = *as<parser::InList>(expr);
      walk(node.arg, block);
      for (const parser::Expr* each : node.list) walk(each, block);
      return;
    }
    case ExprKind::kQuantified: {
      const auto& node = *as<parser::Quantified>(expr);
      walk(node.arg, block);
      return walk(node.array, block);
    }
    case ExprKind::kSubquery: return walk_subquery(*as<parser::Subquery>(expr), block);
    case ExprKind::kFuncCall: return walk_call(*as<parser::FuncCall>(expr), block);
    case ExprKind::kCase: {
      const auto& node = *as<parser::Case>(expr);
      walk(node.arg, block);
      for (const auto& arm : node.arms) {
        walk(arm.when, block);
        walk(arm.then, block);
      }
      return walk(node.otherwise, block);
    }
    case ExprKind::kArray:
      for (const parser::Expr* each : as<parser::Array>(expr)->elements) walk(each, block);
      return;
    case ExprKind::kRow:
      for (const parser::Expr* each : as<parser::Row>(expr)->elements) walk(each, block);
      return;
    case ExprKind::kCast: {
      const parser::Expr* arg = as<parser::Cast>(expr)->arg;
      const std::string value_before = system_value;
      walk(arg, block);
      if (system_value == "tableoid" && as<parser::ColumnRef>(arg) != nullptr && is_regclass(expr))
        system_value = value_before;
      return;
    }
    case ExprKind::kCollate: return walk(as<parser::Collate>(expr)->arg, block);
    case ExprKind::kAtTimeZone: {
      const auto& node = *as<parser::AtTimeZone>(expr);
      walk(node.arg, block);
      return walk(node.zone, block);
    }
  }
}

void Analyzer::expression(const parser::Expr* expr, Block& block) {
  walk(expr, block);
}

}  // namespace kintsugi::planner
