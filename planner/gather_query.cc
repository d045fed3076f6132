// Tier 4: the rows of each sharded table that the query can need, of all their shards, come together in
// temporary tables on one, and the query runs there over them.
#include <algorithm>

#include "base/sql_quote.h"
#include "planner/analyse.h"

namespace kintsugi::planner {

using parser::as;
using parser::ExprKind;
using Kind = RelationUse::Kind;

namespace {

// Whether a condition speaks of one table's own columns and of values, and of nothing that could mean
// something else where that table is read.
class OwnCondition {
 public:
  OwnCondition(const Analyzer& analyzer, int use, const Scope& scope)
      : analyzer_(analyzer), use_(use), scope_(scope) {}

  bool holds(const parser::Expr* expr) const {
    if (expr == nullptr) return true;
    const auto all = [&](auto list) {
      return std::all_of(list.begin(), list.end(), [&](const parser::Expr* each) { return holds(each); });
    };
    switch (expr->kind) {
      case ExprKind::kLiteral:
      case ExprKind::kParameter: return true;
      case ExprKind::kColumnRef: {
        const auto& ref = *as<parser::ColumnRef>(expr);
        if (ref.star || ref.parts.size() > 2) return false;
        const FoundColumn found = find_column(scope_, ref);
        return found.column != nullptr && found.depth == 0 && found.column->use == use_;
      }
      case ExprKind::kOperator: {
        const auto& node = *as<parser::Operator>(expr);
        return node.schema.empty() && holds(node.left) && holds(node.right);
      }
      case ExprKind::kBool: return all(as<parser::BoolExpr>(expr)->args);
      case ExprKind::kNot: return holds(as<parser::Not>(expr)->arg);
      case ExprKind::kIsTest: return holds(as<parser::IsTest>(expr)->arg);
      case ExprKind::kDistinctFrom: {
        const auto& node = *as<parser::DistinctFrom>(expr);
        return holds(node.left) && holds(node.right);
      }
      case ExprKind::kLike: {
        const auto& node = *as<parser::Like>(expr);
        return holds(node.arg) && holds(node.pattern) && holds(node.escape);
      }
      case ExprKind::kBetween: {
        const auto& node = *as<parser::Between>(expr);
        return holds(node.arg) && holds(node.low) && holds(node.high);
      }
      case ExprKind::kInList: {
        const auto& node = *as<parser::InList>(expr);
        return holds(node.arg) && all(node.list);
      }
      case ExprKind::kQuantified: {
        const auto& node = *as<parser::Quantified>(expr);
        return node.schema.empty() && holds(node.arg) && holds(node.array);
      }
      case ExprKind::kCast: return holds(as<parser::Cast>(expr)->arg);
      case ExprKind::kArray: return all(as<parser::Array>(expr)->elements);
      case ExprKind::kRow: return all(as<parser::Row>(expr)->elements);
      case ExprKind::kFuncCall: {
        const auto& call = *as<parser::FuncCall>(expr);
        static constexpr std::string_view kSpecial[] = {"coalesce", "greatest", "least", "nullif", "substring"};
        if (call.over != nullptr || call.filter != nullptr || !call.order_by.empty()) return false;
        if (call.special)
          return std::find(std::begin(kSpecial), std::end(kSpecial), call.name.name()) != std::end(kSpecial) &&
                 std::all_of(call.args.begin(), call.args.end(),
                             [&](const parser::Argument& arg) { return holds(arg.value); });
        if (analyzer_.is_aggregate(call)) return false;
        const Function* function = analyzer_.function_of(call);
        return function != nullptr && function->schema == "pg_catalog" && function->volatility == 'i' &&
               std::all_of(call.args.begin(), call.args.end(),
                           [&](const parser::Argument& arg) { return holds(arg.value); });
      }
      default: return false;
    }
  }

 private:
  const Analyzer& analyzer_;
  int use_;
  const Scope& scope_;
};

class GatherPlanner {
 public:
  GatherPlanner(Analyzer& analyzer, const Analysis& analysis, std::string prefix)
      : analyzer_(analyzer), analysis_(analysis), prefix_(std::move(prefix)) {}

  Result<GatherTemplate> make() {
    if (analyzer_.locks)
      return fail(sqlstate::kNotSupported, "FOR UPDATE of rows that are brought together from several shards");
    if (analyzer_.whole_row)
      return fail(sqlstate::kNotSupported,
                  "a whole row as a value, of a table whose rows are brought together");
    for (std::size_t i = 1; i < analyzer_.units.size(); ++i)
      of_units_.push_back(std::make_unique<TextEdits>(analyzer_.units[i].statement->text(), false));
    holds_.assign(analyzer_.units.size(), false);
    made_.needs_home = analysis_.home || !analyzer_.one_place.empty();
    for (std::size_t i = 0; i < analyzer_.uses.size(); ++i) share(static_cast<int>(i));
    for (std::size_t i = 0; i < analyzer_.uses.size(); ++i) {
      const RelationUse& use = analyzer_.uses[i];
      if (use.kind == Kind::kSystem) made_.needs_home = true;
      if (use.kind == Kind::kSharded) KG_CHECK(gather(static_cast<int>(i)));
    }
    put_views();
    made_.text = main_.make(analyzer_.whole);
    return std::move(made_);
  }

 private:
  TextEdits& edits_of(int unit) { return unit == 0 ? main_ : *of_units_[static_cast<std::size_t>(unit) - 1]; }

  [[nodiscard]] std::size_t table_of(const RelationUse& use) const {
    for (std::size_t i = 0; i < analysis_.tables.size(); ++i)
      if (analysis_.tables[i].map == use.table->map && analysis_.tables[i].condition == use.condition) return i;
    return 0;
  }

  // Uses of one table that need the same rows have them in one temporary table: it costs less, and expressions
  // that are the same stay the same (DISTINCT ON and GROUP BY with subqueries).
  struct Shared {
    int use;
    std::size_t table;
    std::string signature;
    std::vector<bool> needed;
    std::optional<std::size_t> relation;
  };

  void share(int index) {
    const RelationUse& use = analyzer_.uses[static_cast<std::size_t>(index)];
    shared_of_.push_back(kNotShared);
    if (use.kind != Kind::kSharded || use.relation == nullptr || use.ref == nullptr) return;
    Shared mine{index, table_of(use), use.display + (use.ref->only ? "|only" : ""), use.needed, {}};
    const std::string_view text = analyzer_.units[static_cast<std::size_t>(use.unit)].statement->text();
    std::vector<std::uint32_t> slots;
    bool grouped = false;
    const auto filters = filters_of_use(index);
    if (!filters.empty()) mine.signature += "|" + std::string(alias_of(use));
    for (const Filter& filter : filters) {
      mine.signature += "|" + std::string(filter.whole->range.of(text));
      if (use.unit == 0) grouped |= !slots_in(filter.whole->range, slots);
    }
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      Shared& other = shared_[i];
      if (other.table != mine.table || other.signature != mine.signature) continue;
      // They are the same as long as their literals are.
      std::vector<std::uint32_t> others;
      const RelationUse& first = analyzer_.uses[static_cast<std::size_t>(other.use)];
      if (first.unit == 0)
        for (const Filter& filter : filters_of_use(other.use))
          grouped |= !slots_in(filter.whole->range, others);
      if (grouped) analyzer_.once = true;
      analyzer_.pinned.insert(analyzer_.pinned.end(), slots.begin(), slots.end());
      analyzer_.pinned.insert(analyzer_.pinned.end(), others.begin(), others.end());
      for (std::size_t c = 0; c < other.needed.size(); ++c)
        if (mine.needed[c]) other.needed[c] = true;
      shared_of_.back() = i;
      return;
    }
    shared_of_.back() = shared_.size();
    shared_.push_back(std::move(mine));
  }

  // False: there is a list among them, whose length differs from text to text.
  bool slots_in(parser::Range range, std::vector<std::uint32_t>& found) const {
    const std::uint32_t begin = analyzer_.begin();
    const auto inside = [&](const parser::Range& each) {
      return each.begin >= begin + range.begin && each.end <= begin + range.end;
    };
    for (const parser::SlotGroup& group : analyzer_.normal().groups())
      if (inside(group.range)) return false;
    const auto& slots = analyzer_.normal().slots();
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].parameter == 0 && inside(slots[i].token.range()))
        found.push_back(static_cast<std::uint32_t>(i));
    return true;
  }

  static std::string_view alias_of(const RelationUse& use) {
    return use.ref->alias.given() ? use.ref->alias.name.text : use.ref->name.name();
  }

  // A condition of WHERE that speaks of one table alone, or what an OR says of it: in every arm something.
  struct Filter {
    const parser::Expr* whole;
    std::vector<std::vector<const parser::Expr*>> arms;  // none: the whole
  };

  std::vector<Filter> filters_of_use(int index) const {
    const RelationUse& use = analyzer_.uses[static_cast<std::size_t>(index)];
    return use.nullable || use.owner == nullptr ? std::vector<Filter>{} : filters_of(index);
  }

  // The text gets the temporary table's name.
  void put_name(const RelationUse& use, std::size_t relation) {
    std::string name = made_.relations[relation].relation.temporary;
    if (prefix_ != "kg") name = quote_identifier(name);
    if (!use.ref->alias.given() && use.block != nullptr) name += " AS " + quote_identifier(alias_of(use));
    edits_of(use.unit).replace(use.ref->name.range, std::move(name));
    for (int unit = use.unit; unit > 0; unit = analyzer_.units[static_cast<std::size_t>(unit)].parent)
      holds_[static_cast<std::size_t>(unit)] = true;
    gathered_.emplace_back(&use, relation);
  }

  Status gather(int index) {
    const RelationUse& use = analyzer_.uses[static_cast<std::size_t>(index)];
    if (use.relation == nullptr || use.ref == nullptr)
      return fail(sqlstate::kNotSupported, "the columns of " + use.display + " are not known");
    // The same place in the text, read twice because a WITH is used twice.
    for (auto& [other, relation] : gathered_)
      if (other->ref == use.ref && other->unit == use.unit) {
        made_.relations[relation].tables.push_back(table_of(use));
        return {};
      }
    Shared& shared = shared_[shared_of_[static_cast<std::size_t>(index)]];
    if (shared.relation) {
      put_name(use, *shared.relation);
      return {};
    }
    std::vector<bool> needed = shared.needed;
    for (const RelationUse& other : analyzer_.uses)
      if (other.ref == use.ref && other.unit == use.unit)
        for (std::size_t i = 0; i < needed.size() && i < other.needed.size(); ++i)
          if (other.needed[i]) needed[i] = true;
    if (std::find(needed.begin(), needed.end(), true) == needed.end())
      for (std::size_t i = 0; i < needed.size(); ++i)
        needed[i] = use.relation->columns[i].name == use.table->key.front();
    GatheredTemplate relation;
    relation.relation.temporary = prefix_ + "_" + std::to_string(made_.relations.size());
    relation.relation.of = use.display;
    relation.tables.push_back(table_of(use));
    const std::string alias = quote_identifier(alias_of(use));
    std::string head = "SELECT ";
    for (std::size_t i = 0; i < needed.size(); ++i) {
      if (!needed[i]) continue;
      const Column& column = use.relation->columns[i];
      if (!relation.relation.columns.empty()) head += ", ";
      head += quote_identifier(column.name);
      relation.relation.columns.push_back(column.name);
      std::string type = column.type_name;
      if (!column.collation.empty() && column.collation != "default")
        type += " COLLATE " + quote_identifier(column.collation);
      relation.relation.types.push_back(std::move(type));
    }
    head += std::string(" FROM ") + (use.ref->only ? "ONLY " : "") + quote_identifier(use.relation->schema) +
            "." + quote_identifier(use.relation->name) + " AS " + alias;
    // Renamed columns cannot be told apart in its conditions' text.
    const bool renamed = !use.ref->alias.columns.empty();
    if (renamed) return fail(sqlstate::kNotSupported, "new names for the columns of " + use.display);
    relation.text.push_back({.text = std::move(head)});
    std::vector<std::string> key;
    for (const std::string& column : use.table->key) key.push_back(alias + "." + quote_identifier(column));
    const std::vector<Owned> owned{{use.table->map, std::move(key)}};
    const auto filters = filters_of_use(index);
    if (filters.empty()) {
      relation.text.push_back({.kind = Piece::Kind::kOwnedWhere, .owned = owned});
    } else {
      relation.text.push_back({.text = " WHERE "});
      relation.text.push_back({.kind = Piece::Kind::kOwnedOpen, .owned = owned});
      bool first = true;
      for (const Filter& filter : filters) {
        relation.text.push_back({.text = std::exchange(first, false) ? "(" : " AND ("});
        if (filter.arms.empty()) put_expression(use, filter.whole, relation.text);
        bool first_arm = true;
        for (const auto& arm : filter.arms) {
          relation.text.push_back({.text = std::exchange(first_arm, false) ? "(" : " OR ("});
          for (const parser::Expr* each : arm) {
            relation.text.push_back({.text = each == arm.front() ? "(" : " AND ("});
            put_expression(use, each, relation.text);
            relation.text.push_back({.text = ")"});
          }
          relation.text.push_back({.text = ")"});
        }
        relation.text.push_back({.text = ")"});
      }
      relation.text.push_back({.kind = Piece::Kind::kOwnedClose, .owned = owned});
    }
    for (std::size_t i = 0; i < analyzer_.uses.size(); ++i)
      if (shared_of_[i] == shared_of_[static_cast<std::size_t>(index)])
        add_indexed(static_cast<int>(i), relation.relation.indexed);
    shared.relation = made_.relations.size();
    made_.relations.push_back(std::move(relation));
    put_name(use, *shared.relation);
    return {};
  }

  // A correlated subquery with an aggregate is run for every row outside: the columns that it looks its rows up
  // by.
  void add_indexed(int index, std::vector<std::string>& columns) const {
    const RelationUse& use = analyzer_.uses[static_cast<std::size_t>(index)];
    if (use.block == nullptr || use.block->where == nullptr || use.owner == nullptr || !use.owner->aggregates ||
        !use.block->group_by.empty() || !columns.empty())
      return;
    std::vector<const parser::Expr*> all;
    Analyzer::conjuncts(use.block->where, all);
    for (const parser::Expr* conjunct : all) {
      const auto* equal = as<parser::Operator>(conjunct);
      if (equal == nullptr || equal->op != "=" || equal->left == nullptr) continue;
      const auto* left = as<parser::ColumnRef>(equal->left);
      const auto* right = as<parser::ColumnRef>(equal->right);
      if (left == nullptr || right == nullptr) continue;
      FoundColumn own = find_column(*use.owner->scope, *left);
      FoundColumn outer = find_column(*use.owner->scope, *right);
      if (own.depth > 0) std::swap(own, outer);
      if (own.column == nullptr || outer.column == nullptr || own.depth > 0 || outer.depth == 0 ||
          own.column->use != index || own.column->column < 0)
        continue;
      columns.push_back(use.relation->columns[static_cast<std::size_t>(own.column->column)].name);
    }
  }

  // WHERE's conditions on this table alone.
  void put_expression(const RelationUse& use, const parser::Expr* expr, TextTemplate& to) const {
    if (use.unit == 0)
      to.push_back({.kind = Piece::Kind::kOwn, .range = expr->range});
    else
      to.push_back({.text = std::string(expr->range.of(
                        analyzer_.units[static_cast<std::size_t>(use.unit)].statement->text()))});
  }

  [[nodiscard]] std::vector<Filter> filters_of(int index) const {
    const RelationUse& use = analyzer_.uses[static_cast<std::size_t>(index)];
    std::vector<Filter> found;
    if (use.block == nullptr || use.block->where == nullptr) return found;
    std::vector<const parser::Expr*> all;
    Analyzer::conjuncts(use.block->where, all);
    const OwnCondition own(analyzer_, index, *use.owner->scope);
    for (const parser::Expr* conjunct : all)
      if (conjunct->kind != ExprKind::kLiteral && own.holds(conjunct)) {
        found.push_back({conjunct, {}});
      } else if (const auto* either = as<parser::BoolExpr>(conjunct); either != nullptr && either->is_or) {
        Filter filter{conjunct, {}};
        for (const parser::Expr* arm : either->args) {
          std::vector<const parser::Expr*> parts, mine;
          Analyzer::conjuncts(arm, parts);
          for (const parser::Expr* part : parts)
            if (part->kind != ExprKind::kLiteral && own.holds(part)) mine.push_back(part);
          if (mine.empty()) break;
          filter.arms.push_back(std::move(mine));
        }
        if (filter.arms.size() == either->args.size()) found.push_back(std::move(filter));
      }
    return found;
  }

  void put_views() {
    for (std::size_t i = analyzer_.units.size(); i-- > 1;) {
      if (!holds_[i]) continue;
      const Unit& unit = analyzer_.units[i];
      const std::string_view text = unit.statement->text();
      std::uint32_t end = static_cast<std::uint32_t>(text.size());
      while (end > 0 && (text[end - 1] == ';' || text[end - 1] == ' ' || text[end - 1] == '\n')) --end;
      TextTemplate pieces{{.text = "("}};
      TextTemplate body = of_units_[i - 1]->make({0, end});
      pieces.insert(pieces.end(), body.begin(), body.end());
      pieces.push_back({.text = ")"});
      if (!unit.ref->alias.given())
        pieces.push_back({.text = " AS " + quote_identifier(unit.ref->name.name())});
      edits_of(unit.parent).replace(unit.ref->name.range, std::move(pieces));
    }
  }

  Analyzer& analyzer_;
  const Analysis& analysis_;
  std::string prefix_;
  TextEdits main_{analyzer_.statement().text(), true};
  std::vector<std::unique_ptr<TextEdits>> of_units_;
  std::vector<bool> holds_;  // units with a gathered table in them
  std::vector<std::pair<const RelationUse*, std::size_t>> gathered_;
  static constexpr std::size_t kNotShared = SIZE_MAX;
  std::vector<Shared> shared_;
  std::vector<std::size_t> shared_of_;  // as analyzer_.uses
  GatherTemplate made_;
};

}  // namespace

Result<GatherTemplate> gather_of(Analyzer& analyzer, const Analysis& analysis, std::string prefix) {
  return GatherPlanner(analyzer, analysis, std::move(prefix)).make();
}

}  // namespace kintsugi::planner
