#include "planner/read_first.h"

#include <algorithm>

#include "base/sql_quote.h"
#include "parser/scanner.h"
#include "planner/row_filters.h"

namespace kintsugi::planner {
namespace {

using parser::as;
using Form = ReadFirst::Read::Form;
using Kind = RelationUse::Kind;

bool contains(parser::Range outer, parser::Range inner) {
  return inner.begin >= outer.begin && inner.end <= outer.end;
}

class PartFinder {
 public:
  PartFinder(const Analyzer& analyzer, const parser::WithClause* with) : analyzer_(analyzer), with_(with) {}

  // A WITH that reads tables of one place: the first, which sees those before it only.
  bool take_with() {
    if (with_ == nullptr) return false;
    for (std::size_t i = 0; i < with_->tables.size(); ++i) {
      const parser::CommonTable& table = *with_->tables[i];
      if (table.body.query == nullptr ||
          (placed_in(table.body.query->range).empty() && !analyzer_.by_chance.contains(table.body.query)))
        continue;
      if (table.search || table.cycle) return false;
      TextTemplate query = with_of(i + 1);
      query.push_back({.text = " SELECT * FROM " + quote_identifier(table.name.text)});
      made_.reads.push_back({.range = table.body.query->range, .query = std::move(query)});
      return true;
    }
    return false;
  }

  // A WITH that writes.
  bool take_write() {
    for (std::size_t i = 0; with_ != nullptr && i < with_->tables.size(); ++i) {
      const parser::Preparable& body = with_->tables[i]->body;
      if (body.query != nullptr) continue;
      TextTemplate query = with_of(i);
      query.push_back({.kind = Piece::Kind::kOwn, .range = body.range});
      made_.reads.push_back({.range = body.range, .query = std::move(query), .writes = true});
      return true;
    }
    return false;
  }

  void take_from(const parser::FromItem& item, const Block& block, bool outermost) {
    if (const auto* join = as<parser::Join>(&item)) {
      take_from(*join->left, block, false);
      return take_from(*join->right, block, false);
    }
    if (const auto* query = as<parser::SubqueryRef>(&item)) {
      if (placed_in(query->query->range).empty() && !analyzer_.by_chance.contains(query->query)) return;
      exact_ &= !item.lateral;
      return take_query(*query->query);
    }
    const auto* ref = as<parser::TableRef>(&item);
    if (ref == nullptr) {
      exact_ &= placed_in(item.range).empty();
      return;
    }
    const auto found = placed_in(ref->range);
    if (found.empty()) return;
    if (found.size() == 1 && beside_target(analyzer_.uses[found.front()])) return;
    take_table(*ref, found, outermost ? &block : nullptr);
  }

  void take_subquery(const Analyzer::Apart& apart) {
    const parser::Subquery& subquery = *apart.subquery;
    // One in a query of FROM that is read as a whole.
    if (std::any_of(made_.reads.begin(), made_.reads.end(),
                    [&](const auto& read) { return contains(read.range, subquery.query->range); }))
      return;
    if (apart.alone) {
      const auto in = in_of(subquery);
      if (!in) return take_query(*subquery.query);
      TextTemplate query = whole_with();
      query.push_back({.text = "("});
      query.push_back({.kind = Piece::Kind::kOwn, .range = subquery.query->range});
      query.push_back({.text = ")"});
      made_.reads.push_back({.range = *in, .query = std::move(query), .form = Form::kArray, .after = ") "});
      opened_.push_back(subquery.test->range.begin);
      return;
    }
    // What it speaks of stays; the tables in it are read.
    if (analyzer_.locks) exact_ = false;
    std::vector<const parser::TableRef*> refs;
    for (const std::size_t use : placed_in(subquery.query->range)) {
      const parser::TableRef* ref = main_ref(analyzer_.uses[use]);
      if (std::find(refs.begin(), refs.end(), ref) == refs.end()) refs.push_back(ref);
    }
    for (const parser::TableRef* ref : refs) take_table(*ref, placed_in(ref->range), nullptr);
  }

  // The only row's only column, where a value of VALUES is no more than that.
  void take_value(const parser::Subquery& subquery) {
    TextTemplate query = whole_with();
    query.push_back({.text = "("});
    query.push_back({.kind = Piece::Kind::kOwn, .range = subquery.query->range});
    query.push_back({.text = ")"});
    made_.reads.push_back({.range = subquery.range, .query = std::move(query), .form = Form::kValue});
  }

  std::optional<ReadFirstTemplate> make() {
    if (!exact_ || made_.reads.empty()) return std::nullopt;
    std::sort(made_.reads.begin(), made_.reads.end(),
              [](const auto& a, const auto& b) { return a.range.begin < b.range.begin; });
    TextEdits edits(analyzer_.statement().text(), true);
    for (const std::uint32_t at : opened_) edits.insert(at, "(");
    std::uint32_t at = analyzer_.whole.begin;
    for (const auto& read : made_.reads) {
      if (read.range.begin < at || read.range.end > analyzer_.whole.end) return std::nullopt;
      made_.parts.push_back(edits.make({at, read.range.begin}));
      at = read.range.end;
    }
    made_.parts.push_back(edits.make({at, analyzer_.whole.end}));
    return std::move(made_);
  }

  // Whether the only part has all the tables of the statement.
  [[nodiscard]] bool alone() const {
    return made_.reads.size() == 1 &&
           std::all_of(analyzer_.uses.begin(), analyzer_.uses.end(), [&](const RelationUse& use) {
             const parser::TableRef* ref = main_ref(use);
             return ref != nullptr && contains(made_.reads.front().range, ref->range);
           });
  }
  void set_alone() { made_.alone = true; }

  // Whether the parts have nothing but tables that the catalogue does not know, even when it has been read
  // again: temporary ones of the session, which nobody else changes, so that their moment does not matter.
  [[nodiscard]] bool of_this_session() const {
    std::size_t found = 0;
    for (const RelationUse& use : analyzer_.uses) {
      const parser::TableRef* ref = main_ref(use);
      if (ref == nullptr || std::none_of(made_.reads.begin(), made_.reads.end(),
                                         [&](const auto& read) { return contains(read.range, ref->range); }))
        continue;
      if (use.kind != Kind::kUnknown || use.relation != nullptr || use.table != nullptr) return false;
      ++found;
    }
    return found > 0;
  }

 private:
  // Where the main text names it, or the view that it stands in.
  [[nodiscard]] const parser::TableRef* main_ref(const RelationUse& use) const {
    const parser::TableRef* ref = use.ref;
    for (int unit = use.unit; unit > 0; unit = analyzer_.units[static_cast<std::size_t>(unit)].parent)
      ref = analyzer_.units[static_cast<std::size_t>(unit)].ref;
    return ref;
  }
  // Uses of tables in it that not every shard has.
  [[nodiscard]] std::vector<std::size_t> placed_in(parser::Range range) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < analyzer_.uses.size(); ++i) {
      const RelationUse& use = analyzer_.uses[i];
      const parser::TableRef* ref = main_ref(use);
      if (use.kind != Kind::kReplicated && ref != nullptr && contains(range, ref->range)) found.push_back(i);
    }
    return found;
  }
  // Rows of the same key as the target's.
  [[nodiscard]] bool beside_target(const RelationUse& use) const {
    if (use.kind != Kind::kSharded || use.unit != 0 || use.nullable) return false;
    return std::any_of(analyzer_.uses.begin(), analyzer_.uses.end(), [&](const RelationUse& target) {
      if (!target.target || target.kind != Kind::kSharded || target.mapping != use.mapping) return false;
      for (std::size_t i = 0; i < use.table->key.size(); ++i)
        if (!analyzer_.equal(target.first_term + static_cast<TermId>(i),
                             use.first_term + static_cast<TermId>(i)))
          return false;
      return true;
    });
  }

  [[nodiscard]] TextTemplate with_of(std::size_t count) const {
    if (with_ == nullptr || count == 0) return {};
    return {{.text = with_->recursive ? "WITH RECURSIVE " : "WITH "},
            {.kind = Piece::Kind::kOwn,
             .range = {with_->tables[0]->range.begin, with_->tables[count - 1]->range.end}},
            {.text = " "}};
  }
  [[nodiscard]] TextTemplate whole_with() const { return with_of(with_ == nullptr ? 0 : with_->tables.size()); }

  void take_query(const parser::Query& query) {
    TextTemplate text = whole_with();
    text.push_back({.text = "("});
    text.push_back({.kind = Piece::Kind::kOwn, .range = query.range});
    text.push_back({.text = ")"});
    made_.reads.push_back({.range = query.range, .query = std::move(text)});
  }

  // All its rows, or those that the write's own conditions leave of them.
  void take_table(const parser::TableRef& ref, const std::vector<std::size_t>& uses, const Block* block) {
    exact_ &= ref.sample == nullptr && !analyzer_.whole_row &&
              std::none_of(uses.begin(), uses.end(), [&](std::size_t use) {
                const Kind kind = analyzer_.uses[use].kind;
                return kind == Kind::kSystem || analyzer_.uses[use].target;
              });
    TextTemplate text{{.text = "SELECT * FROM "}, {.kind = Piece::Kind::kOwn, .range = ref.range}};
    if (block != nullptr && uses.size() == 1 && analyzer_.uses[uses.front()].unit == 0) {
      bool first = true;
      for (const parser::Expr* condition :
           RowFilters(analyzer_).alone(static_cast<int>(uses.front()), *block->scope, conditions_)) {
        text.push_back({.text = std::exchange(first, false) ? " WHERE (" : " AND ("});
        text.push_back({.kind = Piece::Kind::kOwn, .range = condition->range});
        text.push_back({.text = ")"});
      }
    }
    const std::string alias(ref.alias.given() ? ref.alias.name.text : ref.name.name());
    made_.reads.push_back({.range = ref.range,
                           .query = std::move(text),
                           .before = " (",
                           .after = ") AS " + quote_identifier(alias) + " "});
  }

  // From behind the column to the end, where it is `column IN (SELECT ...)`.
  [[nodiscard]] std::optional<parser::Range> in_of(const parser::Subquery& subquery) const {
    if (subquery.form != parser::Subquery::Form::kIn || subquery.negated || subquery.test == nullptr ||
        as<parser::ColumnRef>(subquery.test) == nullptr)
      return std::nullopt;
    const parser::Select* select = subquery.query->simple();
    if (select == nullptr || select->targets.size() != 1 || select->targets[0].expr == nullptr ||
        select->targets[0].star)
      return std::nullopt;
    if (const auto* ref = as<parser::ColumnRef>(select->targets[0].expr); ref != nullptr && ref->star)
      return std::nullopt;
    const std::string_view text = analyzer_.statement().text();
    parser::Scanner scanner(text);
    scanner.seek(subquery.test->range.end);
    if (!parser::is_keyword(text, scanner.next(), "in") || !parser::is_symbol(text, scanner.next(), "(") ||
        scanner.next().begin != subquery.query->range.begin)
      return std::nullopt;
    return parser::Range{subquery.test->range.end, subquery.range.end};
  }

  const Analyzer& analyzer_;
  const parser::WithClause* with_;
  ReadFirstTemplate made_;
  std::vector<std::uint32_t> opened_;  // parentheses before a column
  bool exact_ = true;

 public:
  std::vector<const parser::Expr*> conditions_;  // of the write
};

bool writes_in(const parser::WithClause* with) {
  return with != nullptr && std::any_of(with->tables.begin(), with->tables.end(),
                                        [](const auto* table) { return table->body.query == nullptr; });
}

}  // namespace

std::optional<ReadFirstTemplate> parts_of_write(const Analyzer& analyzer, const parser::WithClause* with,
                                                const Block& block, const parser::Expr* where,
                                                parser::List<const parser::FromItem*> items, bool sets) {
  // What is read is rows, and no longer those of a table; and a ctid is another row's on another shard.
  if (analyzer.modifies || writes_in(with) || !analyzer.system_column.empty()) return std::nullopt;
  // Which of several rows of FROM a row gets is chance, and would not be the same on all shards.
  if (sets && !items.empty() &&
      std::any_of(analyzer.uses.begin(), analyzer.uses.end(),
                  [](const RelationUse& use) { return use.target && use.kind == Kind::kReplicated; }))
    return std::nullopt;
  PartFinder finder(analyzer, with);
  if (where != nullptr) Analyzer::conjuncts(where, finder.conditions_);
  if (!finder.take_with()) {
    for (const parser::FromItem* item : items) finder.take_from(*item, block, true);
    for (const Analyzer::Apart& apart : analyzer.apart) finder.take_subquery(apart);
  }
  if (finder.of_this_session()) finder.set_alone();
  return finder.make();
}

std::optional<ReadFirstTemplate> parts_of_rows(const Analyzer& analyzer, const parser::WithClause* with,
                                               const parser::SetOperand& rows) {
  if (analyzer.modifies || analyzer.locks || !analyzer.system_column.empty()) return std::nullopt;
  PartFinder finder(analyzer, with);
  if (finder.take_with()) {
    if (finder.alone()) finder.set_alone();
    return finder.make();
  }
  for (const Analyzer::Apart& apart : analyzer.apart) {
    if (!apart.alone) return std::nullopt;
    bool whole = false;
    for (const auto& row : rows.values)
      for (const parser::Expr* value : row) whole |= value == apart.subquery;
    if (whole && apart.subquery->form == parser::Subquery::Form::kScalar)
      finder.take_value(*apart.subquery);
    else
      finder.take_subquery(apart);
  }
  if (finder.alone()) finder.set_alone();
  return finder.make();
}

std::optional<ReadFirstTemplate> arguments_first(Analyzer& analyzer, const parser::Query& query,
                                                 const parser::FuncCall& call, std::size_t first) {
  const parser::Select* select = query.simple();
  const Block* block = analyzer.top_block();
  if (select == nullptr || block == nullptr || query.with != nullptr || !query.order_by.empty() ||
      query.limit != nullptr || query.limit_one || query.offset != nullptr || analyzer.locks ||
      analyzer.modifies || select->distinct || !select->distinct_on.empty() || !select->group_by.empty() ||
      select->having != nullptr || select->into != nullptr)
    return std::nullopt;
  const bool one_row = select->from.empty() ? select->where == nullptr : block->aggregates;
  if (!one_row) return std::nullopt;
  // All of them in one row, of one moment.
  if (first >= call.args.size()) return std::nullopt;
  const parser::Range values{call.args[first].value->range.begin,
                             call.args[call.args.size() - 1].value->range.end};
  TextTemplate text{{.text = "SELECT "}, {.kind = Piece::Kind::kOwn, .range = values}};
  if (!select->from.empty()) {
    text.push_back({.text = " "});
    text.push_back({.kind = Piece::Kind::kOwn, .range = {select->from_clause.begin, query.range.end}});
  }
  ReadFirstTemplate made;
  TextEdits edits(analyzer.statement().text(), true);
  made.reads.push_back({.range = values, .query = std::move(text), .form = Form::kValue});
  made.parts = {edits.make({analyzer.whole.begin, values.begin}),
                edits.make({values.end, select->targets[0].range.end})};
  made.alone = true;
  return made;
}

std::optional<ReadFirstTemplate> written_first(const Analyzer& analyzer, const parser::WithClause* with) {
  if (!writes_in(with) || analyzer.locks) return std::nullopt;
  // Nobody else reads a table, not even one that a trigger might write to.
  std::size_t changes = 0;
  for (const parser::CommonTable* table : with->tables) {
    const parser::Preparable& body = table->body;
    if (body.query != nullptr) continue;
    if (body.insert == nullptr || body.insert->on_conflict != nullptr) ++changes;
  }
  const parser::CommonTable* first = nullptr;
  for (const parser::CommonTable* table : with->tables)
    if (first == nullptr && table->body.query == nullptr) first = table;
  const bool changes_first = first->body.insert == nullptr || first->body.insert->on_conflict != nullptr;
  if (changes > (changes_first ? 1U : 0U)) return std::nullopt;
  for (const RelationUse& use : analyzer.uses) {
    const parser::TableRef* ref = use.ref;
    for (int unit = use.unit; unit > 0; unit = analyzer.units[static_cast<std::size_t>(unit)].parent)
      ref = analyzer.units[static_cast<std::size_t>(unit)].ref;
    if (!use.target && (ref == nullptr || !contains(first->body.range, ref->range))) return std::nullopt;
  }
  PartFinder finder(analyzer, with);
  if (!finder.take_write()) return std::nullopt;
  finder.set_alone();
  return finder.make();
}

}  // namespace kintsugi::planner
