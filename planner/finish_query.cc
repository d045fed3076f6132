// Tier 3: shards compute partial rows, and the rest of the query runs over them in one PostgreSQL. Two forms:
// groups whose aggregates have parts that can be put together, and rows that each shard finds for itself but
// only PostgreSQL can order or tell apart.
#include <algorithm>

#include "base/sql_quote.h"
#include "planner/analyse.h"

namespace kintsugi::planner {

using parser::as;
using parser::ExprKind;
using Kind = Distribution::Kind;

namespace {

tl::unexpected<Error> no(std::string why) {
  return fail(sqlstate::kNotSupported, std::move(why));
}

// The name that PostgreSQL gives a column without one, and whether it is more than a last resort.
struct GivenName {
  bool strong = false;
  std::optional<std::string> name;  // none: it is not known here
};

GivenName name_of(const parser::Expr* expr) {
  switch (expr->kind) {
    case ExprKind::kColumnRef: {
      const auto& ref = *as<parser::ColumnRef>(expr);  // o.* within an expression is the row, and called o
      return {true, std::string(ref.star ? ref.qualifier() : ref.column())};
    }
    case ExprKind::kFuncCall: {
      const auto& call = *as<parser::FuncCall>(expr);
      const std::string_view name = call.name.name();
      static constexpr std::string_view kKnown[] = {"coalesce", "greatest", "least", "nullif", "extract"};
      if (call.special && std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
        return {true, std::nullopt};
      return {true, std::string(name)};
    }
    case ExprKind::kCollate: return name_of(as<parser::Collate>(expr)->arg);
    case ExprKind::kCast: {
      const GivenName inner = name_of(as<parser::Cast>(expr)->arg);
      return inner.strong ? inner : GivenName{true, std::nullopt};
    }
    case ExprKind::kCase: {
      const auto& node = *as<parser::Case>(expr);
      if (node.otherwise != nullptr)
        if (GivenName inner = name_of(node.otherwise); inner.strong) return inner;
      return {false, "case"};
    }
    case ExprKind::kOperator:
    case ExprKind::kBool:
    case ExprKind::kNot:
    case ExprKind::kIsTest:
    case ExprKind::kDistinctFrom:
    case ExprKind::kLike:
    case ExprKind::kBetween:
    case ExprKind::kInList:
    case ExprKind::kLiteral: return {false, "?column?"};
    default: return {true, std::nullopt};
  }
}

class FinishPlanner {
 public:
  FinishPlanner(Analyzer& analyzer, const Analysis& analysis, const parser::Query& query, const Shape& shape,
                const TextEdits& ownership)
      : analyzer_(analyzer),
        analysis_(analysis),
        query_(query),
        shape_(shape),
        ownership_(ownership),
        select_(query.simple()),
        block_(select_ == nullptr ? nullptr : analyzer.top_block()),
        text_(analyzer.statement().text()),
        final_(text_, true) {}

  Result<GatherTemplate> make() {
    if (analysis_.home || analyzer_.locks || !analyzer_.one_place.empty() || !shape_.known ||
        analyzer_.system_value == "tableoid")
      return no("it is not a query of sharded tables alone");
    if (block_ != nullptr &&
        (!block_->problem.empty() || block_->from.kind != Kind::kSharded || block_->row_volatile))
      return no("its rows are not those of each shard");
    GatheredTemplate relation;
    relation.relation.temporary = "kg_0";
    relation.relation.of = "partial rows";
    for (std::size_t i = 0; i < analysis_.tables.size(); ++i) relation.tables.push_back(i);
    const bool whole_rows = shape_.distribution.kind == Kind::kSharded;
    if (!whole_rows && block_ == nullptr) return no("a set operation over rows of several shards");
    const bool groups =
        block_ != nullptr && (block_->aggregates || !select_->group_by.empty() || select_->having != nullptr);
    if (whole_rows || !groups) {
      KG_CHECK(rows(relation, whole_rows));
    } else {
      KG_CHECK(grouped(relation));
    }
    made_.tier = Tier::kFinish;
    made_.relations.push_back(std::move(relation));
    return std::move(made_);
  }

 private:
  static Piece own(parser::Range range) { return {.kind = Piece::Kind::kOwn, .range = range}; }
  static Piece text(std::string words) { return {.text = std::move(words)}; }
  static void append(TextTemplate& to, const TextTemplate& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  // WITH, as the shards need it.
  void put_with(TextTemplate& to) const {
    if (query_.with == nullptr) return;
    append(to, ownership_.make(query_.with->range));
    to.push_back(text(" "));
  }

  // ---- rows that are whole on each shard, or need DISTINCT over all

  Status rows(GatheredTemplate& relation, bool whole_rows) {
    const bool distinct = select_ != nullptr && select_->distinct;
    if (!whole_rows && (!distinct || !select_->distinct_on.empty() || !block_->window_calls.empty()))
      return no("its rows are made of rows of several shards");
    if (query_.with_ties) return no("WITH TIES");
    for (std::size_t i = 0; select_ != nullptr && i < select_->targets.size(); ++i)
      if (const parser::Expr* target = select_->targets[i].expr;
          target != nullptr && target->kind == ExprKind::kRow)
        return no("a row as a value");
    TextEdits edits = ownership_;
    TextTemplate order;
    std::string hidden_names;
    int hidden = 0;
    std::vector<std::uint32_t> hidden_types;
    std::vector<std::pair<parser::Range, std::string>> ordered;
    TextTemplate more;
    for (const parser::SortItem& item : query_.order_by) {
      if (item.direction == parser::SortItem::Direction::kUsing) return no("ORDER BY USING");
      KG_TRY(const int column, output_of(item.expr));
      if (column >= 0) {
        ordered.emplace_back(item.expr->range, "kg_c" + std::to_string(column + 1));
        continue;
      }
      if (select_ == nullptr || distinct || select_->select_list.empty() || item.expr->kind == ExprKind::kRow)
        return no("ORDER BY something that is not among the columns of the result");
      more.push_back(text(", "));
      append(more, ownership_.make(item.expr->range));
      hidden_types.push_back(type_of(item.expr));
      const std::string name = "kg_o" + std::to_string(++hidden);
      more.push_back(text(" AS " + name));
      hidden_names += name;
      ordered.emplace_back(item.expr->range, name);
    }
    if (!more.empty()) {
      for (const parser::GroupItem& item : select_->group_by)
        if (as<parser::Literal>(item.expr) != nullptr) return no("GROUP BY a position beside hidden columns");
      edits.insert(select_->select_list.end, more);
    }
    KG_TRY(const std::vector<std::string> names, output_names());
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string column = "kg_c" + std::to_string(i + 1);
      relation.relation.columns.push_back(column);
      relation.relation.oids.push_back(base_of(shape_.columns[i].type));
      list += (i > 0 ? ", " : "") + column + " AS " + quote_identifier(names[i]);
    }
    for (int i = 1; i <= hidden; ++i) relation.relation.columns.push_back("kg_o" + std::to_string(i));
    relation.relation.oids.insert(relation.relation.oids.end(), hidden_types.begin(), hidden_types.end());
    if (list.empty()) return no("a result without columns");
    relation.text = edits.make({query_.range.begin, query_.body->range.end});
    const bool limited = query_.limit != nullptr || query_.limit_one;
    if (limited || (select_ != nullptr && !select_->distinct_on.empty() && !query_.order_by.empty())) {
      if (!query_.order_by.empty()) {
        relation.text.push_back(text(" "));
        append(relation.text, ownership_.make(query_.order_clause));
      }
    }
    if (limited) {
      relation.text.push_back(text(" LIMIT ("));
      relation.text.push_back(query_.limit_one ? text("1") : own(query_.limit->range));
      relation.text.push_back(text(")"));
      if (query_.offset != nullptr) {
        relation.text.push_back(text(" + ("));
        relation.text.push_back(own(query_.offset->range));
        relation.text.push_back(text(")"));
      }
    }
    made_.text.push_back(text(std::string("SELECT ") + (whole_rows ? "" : "DISTINCT ") + list + " FROM kg_0"));
    for (const auto& [range, name] : ordered) final_.replace(range, name);
    for (const parser::Range clause : {query_.order_clause, query_.limit_clause, query_.offset_clause}) {
      if (clause.empty()) continue;
      made_.text.push_back(text(" "));
      append(made_.text, final_.make(clause));
    }
    return {};
  }

  // The output column that ORDER BY names by position, name or as the same expression; -1: none.
  Result<int> output_of(const parser::Expr* expr) {
    if (const auto* literal = as<parser::Literal>(expr)) {
      if (literal->literal != parser::LiteralKind::kInteger) return no("ORDER BY a constant");
      const auto position = std::strtoul(std::string(literal->value).c_str(), nullptr, 10);
      if (position < 1 || position > shape_.columns.size()) return no("ORDER BY a position that is not there");
      return static_cast<int>(position) - 1;
    }
    const auto* ref = as<parser::ColumnRef>(expr);
    int found = -1;
    if (ref == nullptr || ref->parts.size() != 1) return found;
    for (std::size_t i = 0; i < shape_.columns.size(); ++i) {
      if (shape_.columns[i].name != ref->column()) continue;
      if (found >= 0) return no("ORDER BY a name that several columns of the result have");
      found = static_cast<int>(i);
    }
    return found;
  }

  Result<std::vector<std::string>> output_names() const {
    std::vector<std::string> names;
    for (const ScopeColumn& column : shape_.columns) names.emplace_back(column.name);
    if (select_ == nullptr) return names;
    std::size_t at = 0;
    for (const parser::Target& target : select_->targets) {
      const auto* ref = as<parser::ColumnRef>(target.expr);
      if (target.expr == nullptr) {
        at += block_->scope->visible.size();
      } else if (ref != nullptr && ref->star) {
        const ScopeItem* item = find_item(*block_->scope, ref->qualifier());
        at += item == nullptr ? 0 : item->columns.size();
      } else {
        if (at >= names.size()) return no("columns that could not be counted");
        KG_TRY(names[at], name_of_target(target));
        ++at;
      }
    }
    if (at != names.size()) return no("columns that could not be counted");
    return names;
  }

  static Result<std::string> name_of_target(const parser::Target& target) {
    if (!target.alias.text.empty()) return std::string(target.alias.text);
    GivenName given = name_of(target.expr);
    if (!given.name) return no("a column whose name only PostgreSQL knows");
    return std::move(*given.name);
  }

  // ---- groups

  Status grouped(GatheredTemplate& relation) {
    if (select_->select_list.empty() || select_->from_clause.empty()) return no("it has no columns or tables");
    for (const parser::GroupItem& item : select_->group_by) KG_CHECK(group(item));
    for (const parser::Target& target : select_->targets) {
      if (target.expr == nullptr) return no("* beside groups");
      if (const auto* ref = as<parser::ColumnRef>(target.expr); ref != nullptr && ref->star)
        return no("* beside groups");
      KG_CHECK(rewrite(target.expr));
      KG_TRY(const std::string name, name_of_target(target));
      if (target.alias.text.empty()) final_.insert(target.range.end, " AS " + quote_identifier(name));
    }
    for (const parser::Expr* expr : select_->distinct_on) KG_CHECK(rewrite(expr));
    if (select_->having != nullptr) KG_CHECK(rewrite(select_->having));
    for (const parser::WindowDefinition& window : select_->windows)
      if (window.spec != nullptr) KG_CHECK(rewrite(*window.spec));
    for (const parser::SortItem& item : query_.order_by) {
      if (as<parser::Literal>(item.expr) != nullptr || is_output_name(item.expr)) continue;
      KG_CHECK(rewrite(item.expr));
    }
    for (const parser::Expr* count : {query_.limit, query_.offset})
      if (count != nullptr && !analyzer_.source_of(count)) return no("LIMIT is an expression");
    // What the shards run.
    put_with(relation.text);
    relation.text.push_back(text("SELECT "));
    bool first = true;
    std::string positions;
    for (const Part& part : parts_) {
      if (!first) relation.text.push_back(text(", "));
      first = false;
      append(relation.text, part.text);
      relation.relation.columns.push_back(part.name);
      relation.relation.oids.push_back(part.type);
      if (!part.grouped) continue;
      positions += (positions.empty() ? "" : ", ") + std::to_string(relation.relation.columns.size());
    }
    if (parts_.empty()) return no("groups of nothing");
    relation.text.push_back(text(" "));
    append(relation.text, ownership_.make({select_->from_clause.begin, select_->where_clause.empty()
                                                                           ? select_->from_clause.end
                                                                           : select_->where_clause.end}));
    if (!positions.empty()) relation.text.push_back(text(" GROUP BY " + positions));
    // And what is left to do.
    final_.replace(select_->from_clause, "FROM kg_0");
    if (!select_->where_clause.empty()) final_.replace(select_->where_clause, TextTemplate{});
    made_.text = final_.make({query_.body->range.begin, query_.range.end});
    return {};
  }

  struct Part {
    std::string name;
    TextTemplate text;
    std::uint32_t type = 0;  // pg_type OID; 0: not known
    bool grouped = false;
    const parser::Expr* expr = nullptr;  // of a group
    bool each_once = false;              // only what DISTINCT in an aggregate is of
  };

  std::string add_part(std::string_view letter, TextTemplate what, std::uint32_t type,
                       const parser::Expr* group = nullptr) {
    std::string name = "kg_" + std::string(letter) + std::to_string(parts_.size() + 1);
    parts_.push_back({name, std::move(what), type, group != nullptr, group});
    return name;
  }

  // A domain's values travel as those of what it is made of.
  [[nodiscard]] std::uint32_t base_of(std::uint32_t type) const {
    const Type* known = analyzer_.catalog().type(type);
    for (; known != nullptr && known->kind == 'd'; known = analyzer_.catalog().type(type)) type = known->base;
    return type;
  }
  std::uint32_t type_of(const parser::Expr* expr) {
    return base_of(analyzer_.type_of(expr, *block_->scope).oid);
  }

  Status group(const parser::GroupItem& item) {
    if (item.expr != nullptr) KG_CHECK(group(item.expr));
    for (const parser::Expr* expr : item.exprs) KG_CHECK(group(expr));
    for (const parser::GroupItem& set : item.sets) KG_CHECK(group(set));
    return {};
  }

  Status group(const parser::Expr* expr) {
    const parser::Expr* meant = expr;
    bool by_name = false;
    if (const auto* literal = as<parser::Literal>(expr)) {
      if (literal->literal != parser::LiteralKind::kInteger) return no("GROUP BY a constant");
      const auto position = std::strtoul(std::string(literal->value).c_str(), nullptr, 10);
      if (position < 1 || position > select_->targets.size())
        return no("GROUP BY a position that is not there");
      meant = select_->targets[position - 1].expr;
      by_name = true;
    } else if (const auto* ref = as<parser::ColumnRef>(expr); ref != nullptr && ref->parts.size() == 1) {
      const FoundColumn found = find_column(*block_->scope, *ref);
      if (found.column == nullptr || found.depth > 0) {
        meant = nullptr;
        for (const parser::Target& target : select_->targets)
          if (target.alias.text == ref->column()) {
            if (meant != nullptr) return no("GROUP BY a name that several columns have");
            meant = target.expr;
          }
        by_name = true;
      }
    }
    if (meant == nullptr || meant->kind == ExprKind::kRow || as<parser::Literal>(meant) != nullptr)
      return no("GROUP BY something that is not an expression over the tables");
    std::string name;
    if (const Part* known = group_of(meant)) {
      name = known->name;
    } else {
      name = add_part("g", ownership_.make(meant->range), type_of(meant), meant);
    }
    if (!by_name) final_.replace(expr->range, name);
    return {};
  }

  [[nodiscard]] bool is_output_name(const parser::Expr* expr) const {
    const auto* ref = as<parser::ColumnRef>(expr);
    return ref != nullptr && ref->parts.size() == 1 &&
           std::any_of(shape_.columns.begin(), shape_.columns.end(),
                       [&](const ScopeColumn& column) { return column.name == ref->column(); });
  }

  // The group that an expression is.
  const Part* group_of(const parser::Expr* expr, bool in_distinct = false) {
    for (const Part& part : parts_) {
      if (!part.grouped || part.expr == nullptr || (part.each_once && !in_distinct)) continue;
      if (part.expr == expr) return &part;
      const auto* left = as<parser::ColumnRef>(part.expr);
      const auto* right = as<parser::ColumnRef>(expr);
      if (left != nullptr && right != nullptr && !left->star && !right->star) {
        const FoundColumn a = find_column(*block_->scope, *left);
        const FoundColumn b = find_column(*block_->scope, *right);
        if (a.column != nullptr && b.column != nullptr && a.depth == 0 && b.depth == 0 && a.column->use >= 0 &&
            left->column() == right->column() && a.column->use == b.column->use &&
            a.column->column == b.column->column &&
            !analyzer_.uses[static_cast<std::size_t>(a.column->use)].nullable)
          return &part;
      }
      if (part.expr->kind == expr->kind && part.expr->range.of(text_) == expr->range.of(text_)) {
        pin(part.expr->range);
        pin(expr->range);
        return &part;
      }
    }
    return nullptr;
  }

  // The same texts are the same expressions as long as their literals are.
  void pin(parser::Range range) {
    const std::uint32_t begin = analyzer_.begin();
    const auto inside = [&](const parser::Range& each) {
      return each.begin >= begin + range.begin && each.end <= begin + range.end;
    };
    for (const parser::SlotGroup& group : analyzer_.normal().groups()) analyzer_.once |= inside(group.range);
    const auto& slots = analyzer_.normal().slots();
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].parameter == 0 && inside(slots[i].token.range()))
        analyzer_.pinned.push_back(static_cast<std::uint32_t>(i));
  }

  template <class List>
  Status rewrite_all(const List& list) {
    for (const parser::Expr* each : list) KG_CHECK(rewrite(each));
    return {};
  }

  Status rewrite(const parser::WindowSpec& spec) {
    KG_CHECK(rewrite_all(spec.partition_by));
    for (const parser::SortItem& item : spec.order_by) KG_CHECK(rewrite(item.expr));
    KG_CHECK(rewrite(spec.start.offset));
    return rewrite(spec.end.offset);
  }

  // Puts parts in the place of what the shards have computed.
  Status rewrite(const parser::Expr* expr) {
    if (expr == nullptr) return {};
    if (expr->kind != ExprKind::kLiteral)
      if (const Part* part = group_of(expr)) {
        final_.replace(expr->range, part->name);
        return {};
      }
    switch (expr->kind) {
      case ExprKind::kLiteral:
      case ExprKind::kParameter: return {};
      case ExprKind::kOperator: {
        const auto& node = *as<parser::Operator>(expr);
        KG_CHECK(rewrite(node.left));
        return rewrite(node.right);
      }
      case ExprKind::kBool: return rewrite_all(as<parser::BoolExpr>(expr)->args);
      case ExprKind::kNot: return rewrite(as<parser::Not>(expr)->arg);
      case ExprKind::kIsTest: return rewrite(as<parser::IsTest>(expr)->arg);
      case ExprKind::kDistinctFrom: {
        const auto& node = *as<parser::DistinctFrom>(expr);
        KG_CHECK(rewrite(node.left));
        return rewrite(node.right);
      }
      case ExprKind::kLike: {
        const auto& node = *as<parser::Like>(expr);
        KG_CHECK(rewrite(node.arg));
        KG_CHECK(rewrite(node.pattern));
        return rewrite(node.escape);
      }
      case ExprKind::kBetween: {
        const auto& node = *as<parser::Between>(expr);
        KG_CHECK(rewrite(node.arg));
        KG_CHECK(rewrite(node.low));
        return rewrite(node.high);
      }
      case ExprKind::kInList: {
        const auto& node = *as<parser::InList>(expr);
        KG_CHECK(rewrite(node.arg));
        return rewrite_all(node.list);
      }
      case ExprKind::kCase: {
        const auto& node = *as<parser::Case>(expr);
        KG_CHECK(rewrite(node.arg));
        for (const auto& arm : node.arms) {
          KG_CHECK(rewrite(arm.when));
          KG_CHECK(rewrite(arm.then));
        }
        return rewrite(node.otherwise);
      }
      case ExprKind::kCast: return rewrite(as<parser::Cast>(expr)->arg);
      case ExprKind::kCollate: return rewrite(as<parser::Collate>(expr)->arg);
      case ExprKind::kArray: return rewrite_all(as<parser::Array>(expr)->elements);
      case ExprKind::kFuncCall: {
        const auto& call = *as<parser::FuncCall>(expr);
        if (analyzer_.is_aggregate(call)) return aggregate(call);
        const Function* function = analyzer_.function_of(call);
        if (!call.special && (function == nullptr || function->schema != "pg_catalog"))
          return no("a function that is not PostgreSQL's own beside groups");
        for (const parser::Argument& arg : call.args) KG_CHECK(rewrite(arg.value));
        for (const parser::SortItem& item : call.order_by) KG_CHECK(rewrite(item.expr));
        KG_CHECK(rewrite(call.filter));
        if (call.over != nullptr && call.over->spec != nullptr) return rewrite(*call.over->spec);
        return {};
      }
      default: return no("a part of the result that cannot be finished over partial rows");
    }
  }

  TextTemplate with_filter(TextTemplate call, const parser::FuncCall& of) const {
    if (of.filter == nullptr) return call;
    call.push_back(text(" FILTER (WHERE "));
    append(call, ownership_.make(of.filter->range));
    call.push_back(text(")"));
    return call;
  }

  TextTemplate part_of(std::string_view function, const parser::FuncCall& call) const {
    TextTemplate made{text("pg_catalog." + std::string(function) + "(")};
    append(made, ownership_.make(call.args[0].value->range));
    made.push_back(text(")"));
    return with_filter(std::move(made), call);
  }

  Status aggregate(const parser::FuncCall& call) {
    const Function* function = analyzer_.function_of(call);
    if (function == nullptr || function->schema != "pg_catalog" || !call.order_by.empty() ||
        !call.within_group.empty())
      return no("an aggregate that needs all rows");
    const std::string_view name = call.name.name();
    if (call.distinct) {
      // Every shard sends each value once.
      if (call.args.size() != 1 || call.filter != nullptr) return no("an aggregate that needs all rows");
      const parser::Expr* value = call.args[0].value;
      if (value == nullptr || value->kind == ExprKind::kRow) return no("an aggregate of rows as values");
      const Part* known = group_of(value, true);
      if (known == nullptr && as<parser::Literal>(value) != nullptr) return no("an aggregate of a constant");
      std::string part;
      if (known != nullptr) {
        part = known->name;
      } else {
        part = add_part("d", ownership_.make(value->range), type_of(value), value);
        parts_.back().each_once = true;
      }
      final_.replace(value->range, part);
      return {};
    }
    const std::uint32_t type =
        call.args.size() == 1 ? analyzer_.type_of(call.args[0].value, *block_->scope).oid : 0;
    const std::uint32_t sum_type = type == 21 || type == 23 ? 20 : type == 20 ? 1700 : type;
    const auto put = [&](const std::string& what) { final_.replace(call.range, what); };
    if (name == "count") {
      put("(coalesce(pg_catalog.sum(" + add_part("a", ownership_.make(call.range), 20) + "), 0)::bigint)");
      return {};
    }
    if (call.args.size() != 1) return no("an aggregate that needs all rows");
    const bool integer = type == 21 || type == 23;
    if (name == "sum") {
      if (!integer && type != 20 && type != 1700 && type != 700 && type != 701 && type != 1186)
        return no("a sum of a type that is not known");
      const std::string part = add_part("a", part_of("sum", call), sum_type);
      put(integer ? "(pg_catalog.sum(" + part + ")::bigint)" : "pg_catalog.sum(" + part + ")");
      return {};
    }
    if (name == "avg") {
      if (!integer && type != 20 && type != 1700 && type != 701)
        return no("an average of a type that is not known");
      const std::string sum = add_part("a", part_of("sum", call), sum_type);
      const std::string count = add_part("a", part_of("count", call), 20);
      put("(pg_catalog.sum(" + sum + ") / nullif(pg_catalog.sum(" + count + "), 0)" +
          (type == 701 ? "::double precision)" : ")"));
      return {};
    }
    static constexpr std::string_view kSame[] = {"min",   "max",     "bool_and", "bool_or",
                                                 "every", "bit_and", "bit_or"};
    if (std::find(std::begin(kSame), std::end(kSame), name) == std::end(kSame))
      return no("an aggregate that needs all rows");
    put("pg_catalog." + std::string(name) + "(" + add_part("a", part_of(name, call), type_of(&call)) + ")");
    return {};
  }

  Analyzer& analyzer_;
  const Analysis& analysis_;
  const parser::Query& query_;
  const Shape& shape_;
  const TextEdits& ownership_;
  const parser::Select* select_;
  Block* block_;
  std::string_view text_;
  TextEdits final_;
  std::vector<Part> parts_;
  GatherTemplate made_;
};

}  // namespace

Result<GatherTemplate> finish_of(Analyzer& analyzer, const Analysis& analysis, const parser::Query& query,
                                 const Shape& shape, const TextEdits& ownership) {
  return FinishPlanner(analyzer, analysis, query, shape, ownership).make();
}

}  // namespace kintsugi::planner
