// Tier 4: the rows of each sharded table that the query can need, of all their shards, come together in
// temporary tables on one, and the query runs there over them.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/sql_quote.h"
#include "planner/analyse.h"
#include "planner/group_key.h"
#include "planner/row_filters.h"

namespace kintsugi::planner {

using parser::as;
using parser::ExprKind;
using Kind = RelationUse::Kind;

namespace {

class GatherPlanner {
 public:
  GatherPlanner(Analyzer& analyzer, const Analysis& analysis, std::string prefix)
      : analyzer_(analyzer), analysis_(analysis), prefix_(std::move(prefix)), filters_(analyzer) {}

  Result<GatherTemplate> make() {
    if (analyzer_.locks)
      return fail(sqlstate::kNotSupported, "FOR UPDATE of rows that are brought together from several shards");
    for (std::size_t i = 1; i < analyzer_.units.size(); ++i)
      of_units_.push_back(std::make_unique<TextEdits>(analyzer_.units[i].statement->text(), false));
    holds_.assign(analyzer_.units.size(), false);
    made_.needs_home = analysis_.home || !analyzer_.one_place.empty();
    for (std::size_t i = 0; i < analyzer_.uses.size(); ++i) share(static_cast<int>(i));
    put_in_order();
    for (std::size_t i = 0; i < analyzer_.uses.size(); ++i) {
      const RelationUse& use = analyzer_.uses[i];
      if (use.kind == Kind::kSystem) made_.needs_home = true;
      if (use.kind == Kind::kSharded) KG_CHECK(gather(static_cast<int>(i)));
    }
    put_whole_rows();
    put_views();
    made_.text = main_.make(analyzer_.whole);
    name_key_filters();
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
    // Columns that have a value of another's, which is gathered before.
    struct Link {
      int column = 0;
      std::size_t other = 0;
      int other_column = 0;
      auto operator<=>(const Link&) const = default;
    };
    struct Key {
      int column;
      std::size_t other;
      int other_column;
      std::string mark;
    };
    std::vector<Key> keys;
  };

  // All that leaves out rows of a table.
  struct Needed {
    std::vector<RowFilter> own;
    SemiJoin beside;
    std::vector<std::pair<int, RowFilter>> of_those;  // what an OR says of the tables beside

    [[nodiscard]] std::vector<const parser::Expr*> conditions() const {
      std::vector<const parser::Expr*> all;
      for (const RowFilter& filter : own) all.push_back(filter.whole);
      all.insert(all.end(), beside.conditions.begin(), beside.conditions.end());
      for (const auto& [use, filter] : of_those) all.push_back(filter.whole);
      return all;
    }
  };

  const Needed& needed_of(int index) {
    auto [at, made] = needed_.try_emplace(index);
    if (!made) return at->second;
    at->second.own = filters_.filters_of(index);
    at->second.beside = filters_.semi_join_of(index);
    for (const int use : at->second.beside.uses)
      for (RowFilter& filter : filters_.filters_of(use))
        if (!filter.arms.empty()) at->second.of_those.emplace_back(use, std::move(filter));
    return at->second;
  }

  void share(int index) {
    const RelationUse& use = analyzer_.uses[static_cast<std::size_t>(index)];
    shared_of_.push_back(kNotShared);
    if (use.kind != Kind::kSharded || use.relation == nullptr || use.ref == nullptr) return;
    Shared mine{index, table_of(use), use.display + (use.ref->only ? "|only" : ""), use.needed, {}};
    const std::string_view text = analyzer_.units[static_cast<std::size_t>(use.unit)].statement->text();
    std::vector<std::uint32_t> slots;
    bool grouped = false;
    const Needed& wanted = needed_of(index);
    const auto conditions = wanted.conditions();
    if (!conditions.empty()) mine.signature += "|" + std::string(alias_of(use));
    for (const int each : wanted.beside.uses) {
      const RelationUse& other = analyzer_.uses[static_cast<std::size_t>(each)];
      mine.signature +=
          "|with " + other.display + (other.ref->only ? " only " : " ") + std::string(alias_of(other));
    }
    for (const parser::Expr* condition : conditions) {
      mine.signature += "|" + std::string(condition->range.of(text));
      if (use.unit == 0) grouped |= !slots_in(condition->range, slots);
    }
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      Shared& other = shared_[i];
      if (other.table != mine.table || other.signature != mine.signature) continue;
      // They are the same as long as their literals are.
      std::vector<std::uint32_t> others;
      const RelationUse& first = analyzer_.uses[static_cast<std::size_t>(other.use)];
      if (first.unit == 0)
        for (const parser::Expr* condition : needed_of(other.use).conditions())
          grouped |= !slots_in(condition->range, others);
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

  // What is gathered when: first what has few rows, then what those rows lead to.
  void put_in_order() {
    const std::size_t count = shared_.size();
    std::vector<std::set<Shared::Link>> links(count);
    std::vector<char> begun(count, 0), alone(count, 0);
    for (std::size_t i = 0; i < analyzer_.uses.size(); ++i) {
      const std::size_t group = shared_of_[i];
      if (group == kNotShared) continue;
      for (std::size_t j = 0; j < i; ++j)
        if (analyzer_.uses[j].ref == analyzer_.uses[i].ref && shared_of_[j] != kNotShared)
          alone[group] = alone[shared_of_[j]] = 1;  // a WITH that is used twice
      std::set<Shared::Link> mine;
      for (const KeyLink& link : filters_.links_of(static_cast<int>(i)))
        if (const std::size_t other = shared_of_[static_cast<std::size_t>(link.other)];
            other != kNotShared && other != group)
          mine.insert({link.column, other, link.other_column});
      // All uses of its rows have to say so.
      if (std::exchange(begun[group], 1) != 0)
        std::erase_if(links[group], [&](const auto& link) { return !mine.contains(link); });
      else
        links[group] = std::move(mine);
    }
    const auto own_key = [&](std::size_t group, int column) {
      const RelationUse& use = analyzer_.uses[static_cast<std::size_t>(shared_[group].use)];
      return use.table->key.size() == 1 &&
             use.relation->columns[static_cast<std::size_t>(column)].name == use.table->key.front();
    };
    std::vector<bool> chosen(count, false);
    while (order_.size() < count) {
      std::size_t best = count;
      std::tuple<bool, int, bool> best_rank;
      for (std::size_t group = 0; group < count; ++group) {
        if (chosen[group]) continue;
        const bool led_to = std::any_of(links[group].begin(), links[group].end(), [&](const auto& link) {
          return chosen[link.other] && alone[link.other] == 0;
        });
        const bool by_key = std::any_of(links[group].begin(), links[group].end(),
                                        [&](const auto& link) { return own_key(group, link.column); });
        const std::tuple<bool, int, bool> rank{!led_to || alone[group] != 0,
                                               filters_.left_over(shared_[group].use), !by_key};
        if (best == count || rank < best_rank) {
          best = group;
          best_rank = rank;
        }
      }
      for (const auto& link : links[best])
        if (chosen[link.other] && alone[link.other] == 0 && alone[best] == 0)
          shared_[best].keys.push_back(
              {link.column, link.other, link.other_column, " /* keys " + std::to_string(++marks_) + " */"});
      chosen[best] = true;
      order_.push_back(best);
    }
  }

  void name_key_filters() {
    for (const Shared& shared : shared_) {
      if (!shared.relation) continue;
      const RelationUse& use = analyzer_.uses[static_cast<std::size_t>(shared.use)];
      for (const Shared::Key& key : shared.keys) {
        const Shared& other = shared_[key.other];
        if (!other.relation) continue;
        const RelationUse& source = analyzer_.uses[static_cast<std::size_t>(other.use)];
        const Column& values = source.relation->columns[static_cast<std::size_t>(key.other_column)];
        made_.relations[*shared.relation].relation.keys.push_back(
            {.mark = key.mark,
             .column = quote_identifier(alias_of(use)) + "." +
                       quote_identifier(use.relation->columns[static_cast<std::size_t>(key.column)].name),
             .of = made_.relations[*other.relation].relation.temporary,
             .values = values.name,
             .type = values.type_name});
      }
    }
    std::vector<GatheredTemplate> ordered;
    for (const std::size_t group : order_)
      if (shared_[group].relation) ordered.push_back(made_.relations[*shared_[group].relation]);
    if (ordered.size() == made_.relations.size()) made_.relations = std::move(ordered);
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
    const Needed& wanted = needed_of(index);
    if (wanted.own.empty() && wanted.beside.uses.empty() && shared.keys.empty()) {
      relation.text.push_back({.kind = Piece::Kind::kOwnedWhere, .owned = owned});
    } else {
      relation.text.push_back({.text = " WHERE "});
      relation.text.push_back({.kind = Piece::Kind::kOwnedOpen, .owned = owned});
      bool first = true;
      for (const RowFilter& filter : wanted.own) {
        relation.text.push_back({.text = std::exchange(first, false) ? "(" : " AND ("});
        put_filter(use, filter, relation.text);
        relation.text.push_back({.text = ")"});
      }
      if (!wanted.beside.uses.empty()) {
        if (!std::exchange(first, false)) relation.text.push_back({.text = " AND "});
        put_beside(use, wanted, relation.text);
      }
      if (first) relation.text.push_back({.text = "true"});
      relation.text.push_back({.kind = Piece::Kind::kOwnedClose, .owned = owned});
      for (const Shared::Key& each : shared.keys) relation.text.push_back({.text = each.mark});
    }
    for (std::size_t i = 0; i < analyzer_.uses.size(); ++i)
      if (shared_of_[i] == shared_of_[static_cast<std::size_t>(index)])
        add_indexed(static_cast<int>(i), relation.relation.indexed);
    const auto& all = relation.relation.columns;
    const auto& key_columns = use.relation->primary_key;
    const bool has_key = std::all_of(key_columns.begin(), key_columns.end(), [&](const std::string& column) {
      return std::find(all.begin(), all.end(), column) != all.end();
    });
    for (std::size_t i = 0; has_key && i < analyzer_.uses.size(); ++i)
      if (shared_of_[i] == shared_of_[static_cast<std::size_t>(index)] &&
          groups_rely_on_key(analyzer_, static_cast<int>(i)))
        relation.relation.primary_key = key_columns;
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

  void put_filter(const RelationUse& use, const RowFilter& filter, TextTemplate& to) const {
    if (filter.arms.empty()) return put_expression(use, filter.whole, to);
    bool first_arm = true;
    for (const auto& arm : filter.arms) {
      to.push_back({.text = std::exchange(first_arm, false) ? "(" : " OR ("});
      for (const parser::Expr* each : arm) {
        to.push_back({.text = each == arm.front() ? "(" : " AND ("});
        put_expression(use, each, to);
        to.push_back({.text = ")"});
      }
      to.push_back({.text = ")"});
    }
  }

  // Rows of the tables beside it that go with the row.
  void put_beside(const RelationUse& use, const Needed& wanted, TextTemplate& to) const {
    std::string from;
    for (const int each : wanted.beside.uses) {
      const RelationUse& other = analyzer_.uses[static_cast<std::size_t>(each)];
      from += (from.empty() ? "" : ", ") + std::string(other.ref->only ? "ONLY " : "") +
              quote_identifier(other.relation->schema) + "." + quote_identifier(other.relation->name) + " AS " +
              quote_identifier(alias_of(other));
    }
    to.push_back({.text = "EXISTS (SELECT FROM " + from + " WHERE "});
    bool first = true;
    const auto open = [&] { to.push_back({.text = std::exchange(first, false) ? "(" : " AND ("}); };
    for (const parser::Expr* condition : wanted.beside.conditions) {
      open();
      put_expression(use, condition, to);
      to.push_back({.text = ")"});
    }
    for (const auto& [other, filter] : wanted.of_those) {
      open();
      put_filter(use, filter, to);
      to.push_back({.text = ")"});
    }
    to.push_back({.text = ")"});
  }

  // A condition of WHERE or ON.
  void put_expression(const RelationUse& use, const parser::Expr* expr, TextTemplate& to) const {
    if (use.unit == 0)
      to.push_back({.kind = Piece::Kind::kOwn, .range = expr->range});
    else
      to.push_back({.text = std::string(expr->range.of(
                        analyzer_.units[static_cast<std::size_t>(use.unit)].statement->text()))});
  }

  // A row as a value has the type of its table, which that of the temporary table is not. It is NULL where an
  // outer join has no row, unlike a row of NULLs.
  void put_whole_rows() {
    for (const Analyzer::WholeRow& row : analyzer_.whole_rows) {
      const bool gathered = std::any_of(gathered_.begin(), gathered_.end(),
                                        [&](const auto& each) { return each.first->ref == row.ref; });
      bool of_view = false;
      for (std::size_t i = 1; i < analyzer_.units.size(); ++i)
        of_view |= holds_[i] && analyzer_.units[i].ref == row.ref && analyzer_.units[i].parent == row.unit;
      if (!gathered && !of_view) continue;
      const std::string alias = quote_identifier(row.alias);
      std::string value = "(CASE WHEN " + alias + " IS DISTINCT FROM NULL THEN ROW(";
      for (const Column& column : row.relation->columns)
        value +=
            (&column == row.relation->columns.data() ? "" : ", ") + alias + "." + quote_identifier(column.name);
      value +=
          ")::" + quote_identifier(row.relation->schema) + "." + quote_identifier(row.relation->name) + " END)";
      edits_of(row.unit).replace(row.range, std::move(value));
      if (row.name_at > 0) edits_of(row.unit).insert(row.name_at, " AS " + alias);
    }
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
  RowFilters filters_;
  std::map<int, Needed> needed_;
  TextEdits main_{analyzer_.statement().text(), true};
  std::vector<std::unique_ptr<TextEdits>> of_units_;
  std::vector<bool> holds_;  // units with a gathered table in them
  std::vector<std::pair<const RelationUse*, std::size_t>> gathered_;
  static constexpr std::size_t kNotShared = SIZE_MAX;
  std::vector<Shared> shared_;
  std::vector<std::size_t> shared_of_;  // as analyzer_.uses
  std::vector<std::size_t> order_;      // of shared_
  int marks_ = 0;
  GatherTemplate made_;
};

}  // namespace

Result<GatherTemplate> gather_of(Analyzer& analyzer, const Analysis& analysis, std::string prefix) {
  if (!analyzer.system_column.empty())
    return fail(sqlstate::kNotSupported, "the column " + analyzer.system_column +
                                             " of rows that are brought together from several shards");
  if (!analyzer.guarded_view.empty())
    return fail(sqlstate::kNotSupported,
                "the view " + analyzer.guarded_view +
                    ", whose tables have row-level security, which is its owner's there");
  return GatherPlanner(analyzer, analysis, std::move(prefix)).make();
}

}  // namespace kintsugi::planner
