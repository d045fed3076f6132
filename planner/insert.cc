// INSERT: where its rows belong, from VALUES, from defaults, or from the rows of a SELECT.
#include <algorithm>

#include "parser/scanner.h"
#include "planner/analyse.h"
#include "planner/read_first.h"
#include "planner/work_out.h"

namespace kintsugi::planner {

using parser::as;
using Kind = RelationUse::Kind;

namespace {

// A default that is a plain literal: 7, -1, 'x'::text, true. As pg_get_expr() writes it.
std::optional<Constant> constant_default(std::string_view text) {
  Constant constant;
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (digits(text)) {
    constant.kind = parser::SlotKind::kInteger;
    constant.text = text;
    return constant;
  }
  if (text == "true" || text == "false") {
    constant.kind = text == "true" ? parser::SlotKind::kTrue : parser::SlotKind::kFalse;
    return constant;
  }
  if (text.size() < 2 || text.front() != '\'') return std::nullopt;
  std::size_t at = 1;
  for (; at < text.size(); ++at) {
    if (text[at] == '\'') {
      if (at + 1 >= text.size() || text[at + 1] != '\'') break;
      ++at;
    }
    constant.text += text[at];
  }
  if (at >= text.size()) return std::nullopt;
  const std::string_view rest = text.substr(at + 1);
  if (!rest.empty() && (!rest.starts_with("::") || rest.find_first_of("(") != std::string_view::npos))
    return std::nullopt;
  constant.kind = parser::SlotKind::kString;
  return constant;
}

class InsertAnalysis {
 public:
  InsertAnalysis(Analyzer& analyzer, const parser::Insert& insert, Analysis& analysis)
      : analyzer_(analyzer), insert_(insert), analysis_(analysis) {}

  void run() {
    analyzer_.no_top();
    analyzer_.with(insert_.with, nullptr, nullptr);
    const auto index = static_cast<std::size_t>(analyzer_.target(insert_.table));
    const parser::Query* source = insert_.source;
    values_ = source != nullptr && source->body != nullptr &&
                      source->body->kind == parser::SetOperand::Kind::kValues && source->with == nullptr &&
                      source->order_by.empty() && source->limit == nullptr && source->offset == nullptr
                  ? source->body
                  : nullptr;
    if (source != nullptr) shape_ = analyzer_.query(*source, nullptr, nullptr);
    // RETURNING and ON CONFLICT see the target's columns.
    target_ = &analyzer_.uses[index];
    view_ = target_->relation != nullptr && target_->relation->kind == RelationKind::kView;
    const Own of_source = take_own();
    walk_rest();
    of_rest_ = take_own();
    give_back(of_source);
    give_back(of_rest_);
    analyzer_.finish();
    target_ = &analyzer_.uses[index];
    const RelationUse target = *target_;
    // Its own rows are not read: it is no table whose keys are looked for.
    analyzer_.uses.erase(analyzer_.uses.begin() + static_cast<std::ptrdiff_t>(index));
    take_tables(analyzer_, analysis_);
    analysis_.writes = true;
    analysis_.anywhere = false;
    analysis_.unhideable.clear();
    if (analyzer_.modifies && values_ == nullptr && source != nullptr && insert_.on_conflict == nullptr &&
        !view_ && analyzer_.reads_tables.empty() && analyzer_.opaque.empty()) {
      if (auto parts = written_first(analyzer_, insert_.with)) {
        refuse_always({});
        analysis_.several = std::move(*parts);
        if (analyzer_.statement().parameters() > 0) analysis_.depends_on_parameters = true;
        return;
      }
    }
    if (analysis_.replicated_target && target.kind != Kind::kReplicated)
      return refuse_always(refused("a WITH that writes to a replicated table",
                                   "Run the write as a statement of its own, in the same transaction."));
    switch (target.kind) {
      case Kind::kSharded: sharded(target); break;
      case Kind::kReplicated: replicated(target); break;
      default: at_home(target); break;
    }
  }

 private:
  // What each shard would answer for itself.
  struct Own {
    bool time = false;
    std::string one_place, reads_tables;
    [[nodiscard]] std::string what(bool row_volatile) const {
      return row_volatile            ? "a volatile function"
             : time                  ? "the time"
             : !one_place.empty()    ? "the function " + one_place
             : !reads_tables.empty() ? "the function " + reads_tables
                                     : "";
    }
  };
  Own take_own() {
    return {std::exchange(analyzer_.session_time, false), std::exchange(analyzer_.one_place, {}),
            std::exchange(analyzer_.reads_tables, {})};
  }
  void give_back(const Own& own) {
    analyzer_.session_time |= own.time;
    if (analyzer_.one_place.empty()) analyzer_.one_place = own.one_place;
    if (analyzer_.reads_tables.empty()) analyzer_.reads_tables = own.reads_tables;
  }
  // Of one value of a row that stands alone.
  std::string own_of(const parser::Expr& value) {
    const Own before = take_own();
    Scope scope;
    Block block;
    block.scope = &scope;
    block.from_done = true;
    analyzer_.expression(&value, block);
    const Own own = take_own();
    give_back(before);
    return own.what(block.row_volatile);
  }

  void walk_rest() {
    Scope scope;
    if (target_->relation != nullptr)
      for (const Column& column : target_->relation->columns)
        scope.visible.push_back({column.name, column.type, column.collation, kNoTerm, -1, -1});
    Block block;
    block.scope = &scope;
    block.from_done = true;
    if (insert_.on_conflict != nullptr) {
      for (const parser::SetClause& set : insert_.on_conflict->set) analyzer_.expression(set.value, block);
      analyzer_.expression(insert_.on_conflict->where, block);
    }
    for (const parser::Target& target : insert_.returning) analyzer_.expression(target.expr, block);
    rest_problem_ = block.problem;
    row_volatile_ = block.row_volatile;
  }

  void at_home(const RelationUse& target) {
    analysis_.home = true;
    if (view_) {
      // A view that can be written to: its table is what counts.
      analysis_.several = refused("INSERT into the view " + target.display, "Insert into its table.");
      if (view_of_placed_table(target)) {
        analysis_.fixed.reset();
        refuse_always(refused("INSERT into the view " + target.display, "Insert into its table."));
      }
      return;
    }
    if (auto error = sees_one_shard(analyzer_)) analysis_.several = std::move(*error);
    if (analysis_.tables.empty()) return;
    if (auto pour = pour_of_source())
      analysis_.several = std::move(*pour);
    else if (auto parts = subqueries_first())
      analysis_.several = std::move(*parts);
    else
      analysis_.several = refused("INSERT into " + target.display +
                                      ", which is on the home shard alone, of rows that "
                                      "several shards have",
                                  "Read the rows first, then insert them with VALUES or COPY.");
  }

  [[nodiscard]] bool view_of_placed_table(const RelationUse& target) {
    const auto* query = target.relation->query ? target.relation->query->get<parser::Query>() : nullptr;
    const parser::Select* select = query == nullptr ? nullptr : query->simple();
    if (select == nullptr || select->from.size() != 1) return true;
    const auto* ref = as<parser::TableRef>(select->from[0]);
    return ref == nullptr || analyzer_.resolve(ref->name).kind != Kind::kHome;
  }

  // The rows are read first, whatever it takes, and inserted then.
  [[nodiscard]] std::optional<PourTemplate> pour_of_source() const {
    const parser::Query* source = insert_.source;
    if (source == nullptr || values_ != nullptr || !shape_ || !shape_->known) return std::nullopt;
    const parser::Range whole = analyzer_.whole;
    const parser::Range behind{source->range.end, whole.end};
    if (has_parameters(behind)) return std::nullopt;
    // WITH goes with the query, where nothing else can speak of it.
    const parser::WithClause* with = insert_.with;
    if (with != nullptr && (analyzer_.modifies || !stands_alone(analyzer_.statement().text(), behind)))
      return std::nullopt;
    const auto own = [](std::uint32_t begin, std::uint32_t end) {
      return TextTemplate{Piece{.kind = Piece::Kind::kOwn, .range = {begin, end}}};
    };
    PourTemplate made;
    made.at_once = insert_.on_conflict != nullptr && insert_.on_conflict->do_update;
    made.source = own(source->range.begin, source->range.end);
    made.head = own(with == nullptr ? whole.begin : with->range.end, source->range.begin);
    if (with != nullptr) {
      made.source.insert(made.source.begin(),
                         {{.kind = Piece::Kind::kOwn, .range = with->range}, {.text = " ("}});
      made.source.push_back({.text = ")"});
    }
    if (source->range.end < whole.end) made.tail = own(source->range.end, whole.end);
    const parser::Select* select = source->simple();
    if (select != nullptr)
      for (const parser::Target& target : select->targets) {
        const auto* literal = as<parser::Literal>(target.expr);
        made.untyped.push_back(literal != nullptr && (literal->literal == parser::LiteralKind::kString ||
                                                      literal->literal == parser::LiteralKind::kNull));
      }
    return made;
  }
  [[nodiscard]] bool has_parameters(parser::Range range) const {
    parser::Scanner scanner(analyzer_.statement().text().substr(0, range.end));
    scanner.seek(range.begin);
    for (;;) {
      const parser::Token token = scanner.next();
      if (token.kind == parser::TokenKind::kParameter) return true;
      if (token.kind == parser::TokenKind::kEnd || token.kind == parser::TokenKind::kError) return false;
    }
  }
  // True: so it will be, for any values.
  bool pour_always() {
    analysis_.pour = pour_of_source();
    if (!analysis_.pour) return false;
    analysis_.tables.clear();
    analysis_.point.reset();
    analysis_.depends_on_parameters |= analyzer_.statement().parameters() > 0;
    return true;
  }

  // VALUES whose subqueries have to be read first.
  [[nodiscard]] std::optional<ReadFirstTemplate> subqueries_first() {
    if (values_ == nullptr || !rest_problem_.empty() || hopeless(analyzer_)) return std::nullopt;
    if (analyzer_.statement().parameters() > 0) analysis_.depends_on_parameters = true;
    return parts_of_rows(analyzer_, insert_.with, *values_);
  }

  // No plan for any values.
  void refuse_always(Error error) {
    analysis_.tables.clear();
    analysis_.point.reset();
    analysis_.several = std::move(error);
  }

  void replicated(const RelationUse& target) {
    if (!analysis_.tables.empty() || analysis_.home ||
        (shape_ && shape_->distribution.kind != Distribution::Kind::kEverywhere)) {
      if (pour_always()) return;
      if (auto parts = subqueries_first()) {
        refuse_always({});
        analysis_.several = std::move(*parts);
        return;
      }
      return refuse_always(
          refused("INSERT into the replicated table " + target.display + " of rows that not every shard has",
                  "Read the rows first, then insert them with VALUES or COPY."));
    }
    std::string own = of_rest_.what(row_volatile_);
    const bool by_time = !row_volatile_ && of_rest_.what(false) == "the time" && of_rest_.one_place.empty() &&
                         of_rest_.reads_tables.empty() && values_ != nullptr && insert_.with == nullptr &&
                         times_can_be_worked_out(analyzer_, insert_.returning_clause);
    if ((own.empty() || by_time) && target.relation != nullptr &&
        (values_ != nullptr || insert_.source == nullptr))
      own = work_out_rows(target);
    else if (own.empty())
      own = own_of_query(target);
    if (analysis_.insert) return;
    if (!own.empty() && of_rest_.what(row_volatile_).empty() && pour_always()) return;
    if (!own.empty())
      return refuse_always(refused("INSERT into the replicated table " + target.display +
                                       " with a value that each shard would have to make for itself, by " + own,
                                   "Give the value itself, as a literal or a parameter."));
    FanOut plan;
    plan.writes = true;
    plan.merge.kind = Merge::Kind::kOne;
    for (const shardmap::ShardId shard : replicated_shards(analyzer_.map())) plan.tasks.push_back({shard, {}});
    analysis_.fixed = FixedPlan{std::move(plan)};
  }

  // What shards would make for themselves in the rows of a query.
  [[nodiscard]] std::string own_of_query(const RelationUse& target) const {
    const Own own{analyzer_.session_time, analyzer_.one_place, analyzer_.reads_tables};
    if (const std::string what = own.what(false); !what.empty()) return what;
    if (target.relation == nullptr) return {};
    for (const Column& column : target.relation->columns) {
      const auto position = position_of(*target.relation, column.name);
      const bool given = position && !(shape_ && shape_->known && *position >= shape_->columns.size());
      if (column.generated || given) continue;
      if (const std::string what = own_default(column); !what.empty()) return what;
    }
    return {};
  }

  // Rows for all shards: what each would make for itself is worked out once. Says what cannot be.
  std::string work_out_rows(const RelationUse& target) {
    if (sees_one_shard(analyzer_)) return "the function " + analyzer_.reads_sharded;
    const Relation& relation = *target.relation;
    CellCollector cells(insert_, relation, analyzer_.statement().text());
    const std::size_t count = values_ == nullptr ? 1 : values_->values.size();
    std::size_t width = 0;
    for (std::size_t i = 0; i < count; ++i) {
      cells.next_row();
      const auto* row = values_ == nullptr ? nullptr : &values_->values[i];
      if (row != nullptr) width = row->size();
      for (const Column& column : relation.columns) {
        if (column.generated) continue;
        const auto position = row == nullptr ? std::nullopt : position_of(relation, column.name);
        const bool in_row = position && *position < row->size();
        if (!in_row || as<parser::Default>((*row)[*position]) != nullptr) {
          const std::string own = own_default(column);
          if (!own.empty() && !cells.take_default(column, in_row ? position : std::nullopt)) return own;
        }
      }
      for (std::size_t at = 0; row != nullptr && at < row->size(); ++at) {
        const parser::Expr* value = (*row)[at];
        if (as<parser::Default>(value) != nullptr) continue;
        if (analyzer_.source_of(value)) continue;
        if (!stands_alone(analyzer_.statement().text(), value->range)) {
          const Own own{analyzer_.session_time, analyzer_.one_place, analyzer_.reads_tables};
          if (std::string what = own.what(false); !what.empty()) return what;
          continue;
        }
        if (const std::string own = own_of(*value); !own.empty() && !cells.take_value(*value, at)) return own;
      }
    }
    std::vector<parser::Range> times;
    for (const parser::Range& call : analyzer_.time_calls)
      if (values_ != nullptr && call.begin >= values_->value_rows.back().end) times.push_back(call);
    if (cells.empty() && times.empty()) return {};
    InsertTemplate made = rows_as_written(target);
    made.work_out = cells.make(analyzer_.whole, width, std::move(times));
    if (!made.work_out) return "the time";
    analysis_.insert = std::move(made);
    return {};
  }

  // The rows' places in the text, without keys.
  InsertTemplate rows_as_written(const RelationUse& target) {
    InsertTemplate made;
    made.display = target.display;
    made.rows.resize(values_ == nullptr ? 1 : values_->values.size());
    place_rows(made);
    return made;
  }

  void place_rows(InsertTemplate& made) const {
    if (values_ == nullptr) return;
    made.values_range = {values_->value_rows.front().begin, values_->value_rows.back().end};
    const std::uint32_t begin = analyzer_.begin() + made.values_range.begin;
    const auto& groups = analyzer_.normal().groups();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!groups[i].rows || groups[i].range.begin != begin) continue;
      made.group = static_cast<std::uint32_t>(i);
      made.group_rows = static_cast<std::size_t>(std::count_if(
          values_->value_rows.begin(), values_->value_rows.end(),
          [&](const parser::Range& row) { return analyzer_.begin() + row.end <= groups[i].range.end; }));
    }
  }

  // The place of a column in the rows.
  [[nodiscard]] std::optional<std::size_t> position_of(const Relation& relation, std::string_view name) const {
    if (!insert_.columns.empty()) {
      for (std::size_t i = 0; i < insert_.columns.size(); ++i)
        if (insert_.columns[i].column.text == name && insert_.columns[i].steps.empty()) return i;
      return std::nullopt;
    }
    for (std::size_t i = 0; i < relation.columns.size(); ++i)
      if (relation.columns[i].name == name) return i;
    return std::nullopt;
  }

  void sharded(const RelationUse& target) {
    analysis_.read_write_shardlets = true;
    if (target.relation == nullptr && insert_.columns.empty())
      return refuse_always(
          {.sqlstate = "42P01", .message = "relation \"" + target.display + "\" does not exist"});
    if (auto mistake = mistake_in_columns(target)) return refuse_always(std::move(*mistake));
    if (const auto why = key_in_conflict(target))
      return refuse_always(refused("ON CONFLICT DO UPDATE of the sharding key " + *why,
                                   "Leave the key out of SET: the row that is there has the same."));
    if (insert_.source == nullptr || values_ != nullptr)
      rows(target);
    else
      of_query(target);
  }

  // What PostgreSQL would say before it missed the key.
  [[nodiscard]] std::optional<Error> mistake_in_columns(const RelationUse& target) {
    if (target.relation == nullptr) return std::nullopt;
    for (std::size_t i = 0; i < insert_.columns.size(); ++i) {
      const std::string name(insert_.columns[i].column.text);
      if (target.relation->column(name) == nullptr) {
        analyzer_.unknown_names = true;
        return Error{
            .sqlstate = "42703",
            .message = "column \"" + name + "\" of relation \"" + target.relation->name + "\" does not exist"};
      }
      for (std::size_t j = 0; j < i; ++j)
        if (insert_.columns[j].column.text == name && insert_.columns[i].steps.empty())
          return Error{.sqlstate = "42701", .message = "column \"" + name + "\" specified more than once"};
    }
    return std::nullopt;
  }

  // A key column that ON CONFLICT would change.
  [[nodiscard]] std::optional<std::string> key_in_conflict(const RelationUse& target) const {
    if (insert_.on_conflict == nullptr) return std::nullopt;
    const auto& key = target.table->key;
    for (const parser::SetClause& set : insert_.on_conflict->set)
      for (const parser::AssignTarget& assigned : set.targets) {
        if (std::find(key.begin(), key.end(), assigned.column.text) == key.end()) continue;
        // key = EXCLUDED.key, when the rows in conflict have the same key.
        const auto* ref = as<parser::ColumnRef>(set.value);
        const bool same =
            ref != nullptr && ref->qualifier() == "excluded" && ref->column() == assigned.column.text;
        const bool in_target = std::any_of(
            insert_.on_conflict->target.begin(), insert_.on_conflict->target.end(),
            [&](const parser::IndexElement& element) { return element.column.text == assigned.column.text; });
        if (!same || !in_target) return std::string(assigned.column.text);
      }
    return std::nullopt;
  }

  // One column of a row's key. What is neither a value nor missing is left to PostgreSQL to work out.
  InsertTemplate::Value value_of(const RelationUse& target, std::size_t key,
                                 const parser::List<const parser::Expr*>* row, CellCollector* cells) {
    const std::string& name = target.table->key[key];
    std::optional<std::size_t> position;
    if (target.relation != nullptr)
      position = position_of(*target.relation, name);
    else
      position = position_of(Relation{}, name);
    InsertTemplate::Value value;
    const bool in_row = row != nullptr && position && *position < row->size();
    if (in_row && as<parser::Default>((*row)[*position]) == nullptr) {
      value.source = analyzer_.source_of((*row)[*position]);
      const bool anywhere = !sees_one_shard(analyzer_);
      if (!value.source && cells != nullptr && anywhere) cells->take_value(*(*row)[*position], *position);
      return value;
    }
    const Column* column = target.relation == nullptr ? nullptr : target.relation->column(name);
    value.missing = true;
    if (column == nullptr) return value;
    if (auto constant = constant_default(column->default_expression)) {
      analyzer_.constants.push_back(std::move(*constant));
      Source source;
      source.index = static_cast<std::uint32_t>(analyzer_.constants.size() - 1);
      value = {source, false};
    } else if (cells != nullptr) {
      cells->take_default(*column, in_row ? position : std::nullopt);
    }
    return value;
  }

  // The keys that stand there as values.
  void take_keys(const RelationUse& target, const parser::List<const parser::Expr*>* row,
                 CellCollector& cells) {
    cells.next_row();
    if (row == nullptr || sees_one_shard(analyzer_)) return;
    for (std::size_t i = 0; i < target.table->key.size(); ++i) {
      const auto position = position_of(*target.relation, target.table->key[i]);
      if (!position || *position >= row->size() || as<parser::Default>((*row)[*position]) != nullptr) continue;
      const parser::Expr& value = *(*row)[*position];
      const auto source = analyzer_.source_of(&value);
      const shardmap::KeyType type = target.mapping->key_types()[i];
      // '7'::text is none for a bigint, though a cast would make one.
      if (!source || (source->cast && !(is_number(*source->cast) && is_number(type)))) continue;
      const Column* column = target.relation->column(target.table->key[i]);
      const std::string own = column == nullptr ? "" : column->type_name;
      cells.take_key(value, *position, limit_of(own).digits >= 0 ? own : std::string(shardmap::name_of(type)));
    }
  }
  // What the key's column of the target stores of a value.
  [[nodiscard]] static KeyLimit limit_of_key(const RelationUse& target, std::size_t key) {
    const Column* column =
        target.relation == nullptr ? nullptr : target.relation->column(target.table->key[key]);
    return column == nullptr ? KeyLimit{} : limit_of(column->type_name);
  }

  // Whether what is read stands in a value for the key.
  [[nodiscard]] bool is_key(const RelationUse& target, const parser::List<const parser::Expr*>& row,
                            parser::Range read) const {
    return std::any_of(target.table->key.begin(), target.table->key.end(), [&](const std::string& name) {
      const auto at = position_of(target.relation != nullptr ? *target.relation : Relation{}, name);
      return at && *at < row.size() && read.begin >= row[*at]->range.begin && read.end <= row[*at]->range.end;
    });
  }

  void rows(const RelationUse& target) {
    InsertTemplate made;
    made.map = target.table->map;
    made.display = target.display;
    made.key = target.table->key;
    for (std::size_t i = 0; i < made.key.size(); ++i) made.limits.push_back(limit_of_key(target, i));
    made.returning = !insert_.returning.empty();
    // What the key wants worked out, and that with what says the time.
    std::optional<CellCollector> cells, timed, unsure;
    const std::string_view text = analyzer_.statement().text();
    if (target.relation != nullptr) {
      cells.emplace(insert_, *target.relation, text);
      timed.emplace(insert_, *target.relation, text);
      unsure.emplace(insert_, *target.relation, text);
    }
    std::size_t width = 0;
    const auto& calls = analyzer_.time_calls;
    const auto says_time = [&](const parser::Expr& value) {
      return std::any_of(calls.begin(), calls.end(), [&](const parser::Range& call) {
        return call.begin >= value.range.begin && call.end <= value.range.end;
      });
    };
    bool timely = false;
    const auto add = [&](const parser::List<const parser::Expr*>* row) {
      if (cells) cells->next_row();
      if (timed) timed->next_row();
      for (std::size_t at = 0; timed && row != nullptr && at < row->size(); ++at)
        if (says_time(*(*row)[at])) timely |= timed->take_value(*(*row)[at], at);
      if (row != nullptr) width = row->size();
      auto& values = made.rows.emplace_back();
      for (std::size_t i = 0; i < made.key.size(); ++i)
        values.push_back(value_of(target, i, row, cells ? &*cells : nullptr));
      for (std::size_t i = 0; timed && i < made.key.size(); ++i) (void)value_of(target, i, row, &*timed);
      if (unsure) take_keys(target, row, *unsure);
    };
    if (values_ == nullptr)
      add(nullptr);
    else
      for (const auto& row : values_->values) add(&row);
    place_rows(made);
    std::vector<parser::Range> times;
    for (const parser::Range& call : calls)
      if (values_ != nullptr && call.begin >= values_->value_rows.back().end) times.push_back(call);
    const bool at_time = timely || !times.empty();
    if (cells && !cells->empty())
      made.work_out = at_time && insert_.returning.empty() ? timed->make(analyzer_.whole, width, times)
                                                           : cells->make(analyzer_.whole, width);
    else if (unsure && !unsure->empty())
      made.unsure = unsure->make(analyzer_.whole, width);
    if (timed && !made.work_out && at_time && insert_.returning.empty())
      made.timed = timed->make(analyzer_.whole, width, times);
    if (!rest_problem_.empty() ||
        (shape_ && shape_->distribution.kind == Distribution::Kind::kSpread && !analysis_.tables.empty()))
      made.unsplittable = refused("INSERT of rows for several shards that reads sharded tables in a subquery",
                                  "Read the values first, then insert them.");
    if (auto error = hopeless(analyzer_))
      made.unsplittable = std::move(*error);
    else
      made.read_first = subqueries_first();
    for (const auto& read : made.read_first ? made.read_first->reads : std::vector<ReadFirstTemplate::Read>())
      for (const auto& row : values_->values) made.key_read_first |= is_key(target, row, read.range);
    if (analyzer_.statement().parameters() > 0) analysis_.depends_on_parameters = true;
    analysis_.insert = std::move(made);
  }

  void of_query(const RelationUse& target) {
    const Shape& shape = *shape_;
    std::vector<std::optional<std::size_t>> positions;
    for (const std::string& name : target.table->key)
      positions.push_back(target.relation != nullptr ? position_of(*target.relation, name)
                                                     : position_of(Relation{}, name));
    const parser::Select* select = insert_.source->simple();
    // The same value for all rows.
    std::vector<KeyCondition> equal;
    KeyTerms terms;
    if (!shape.known) {
      return refuse_always(refused("INSERT INTO " + target.display + " of rows that a writing WITH gives",
                                   "Run the write in WITH as a statement of its own, in one transaction."));
    }
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (!positions[i] || *positions[i] >= shape.columns.size()) {
        const Column* column =
            target.relation == nullptr ? nullptr : target.relation->column(target.table->key[i]);
        if (column != nullptr && !default_of(*target.relation, *column).empty() && pour_always()) return;
        return refuse_always({.sqlstate = std::string(sqlstate::kKeyMissing),
                              .message = "INSERT ... SELECT into " + target.display +
                                         " without its sharding key " + target.table->key[i],
                              .hint = "Name the column in the INSERT and select a value for it."});
      }
      terms.push_back(shape.columns[*positions[i]].term);
      const bool plain =
          select != nullptr && *positions[i] < select->targets.size() &&
          std::none_of(select->targets.begin(), select->targets.end(),
                       [](const parser::Target& each) { return each.expr == nullptr || each.star; });
      if (!plain) continue;
      if (limit_of_key(target, i).any()) continue;
      if (auto source = analyzer_.source_of(select->targets[*positions[i]].expr)) {
        KeyCondition leaf;
        leaf.op = KeyCondition::Op::kEqual;
        leaf.column = static_cast<std::uint8_t>(i);
        leaf.source = *source;
        equal.push_back(std::move(leaf));
      }
    }
    const std::string pin =
        "Select the sharding key of the rows that are read as the key of the new ones, or give it as one "
        "literal or parameter.";
    const Error elsewhere = refused("INSERT ... SELECT into " + target.display +
                                        " of rows that other shards have, or whose sharding key is worked out",
                                    pin);
    if (auto pour = pour_of_source())
      analysis_.several = std::move(*pour);
    else
      analysis_.several = elsewhere;
    if (equal.size() == positions.size()) {
      TouchedTable table{target.display, target.table->map, KeyCondition::both(std::move(equal))};
      table.stored = true;
      analysis_.tables.push_back(std::move(table));
      if (std::find(analysis_.maps.begin(), analysis_.maps.end(), target.table->map) == analysis_.maps.end())
        analysis_.maps.push_back(target.table->map);
      analysis_.point.reset();
      analysis_.depends_on_parameters |= analyzer_.statement().parameters() > 0;
      return;
    }
    // The key of rows that are read: they stay where they are.
    const bool kept = std::any_of(analyzer_.uses.begin(), analyzer_.uses.end(), [&](const RelationUse& use) {
      if (use.kind != Kind::kSharded || use.mapping != target.mapping || use.nullable) return false;
      for (std::size_t i = 0; i < terms.size(); ++i) {
        if (!analyzer_.equal(terms[i], use.first_term + static_cast<TermId>(i))) return false;
        // As it is there, it is stored here.
        const KeyLimit limit = limit_of_key(target, i);
        if (limit.any() && !(limit_of_key(use, i) == limit)) return false;
      }
      return true;
    });
    if (!kept) {
      if (pour_always()) return;
      return refuse_always(elsewhere);
    }
    if (auto error = hopeless(analyzer_)) {
      if (!std::holds_alternative<PourTemplate>(analysis_.several)) analysis_.several = std::move(*error);
      return;
    }
    TextEdits edits(analyzer_.statement().text(), true);
    add_ownership(analyzer_, analysis_, edits);
    if (shape.distribution.kind == Distribution::Kind::kSharded &&
        shape.distribution.mapping == target.mapping && analyzer_.one_place.empty()) {
      FanOutTemplate fan_out;
      fan_out.writes = true;
      analysis_.several = std::move(fan_out);
    }
  }

  Analyzer& analyzer_;
  const parser::Insert& insert_;
  Analysis& analysis_;
  const parser::SetOperand* values_ = nullptr;
  std::optional<Shape> shape_;
  const RelationUse* target_ = nullptr;
  bool view_ = false;
  bool row_volatile_ = false;
  Own of_rest_;
  std::string rest_problem_;
};

}  // namespace

std::string own_default(const Column& column) {
  if (column.identity != 0) return "the identity column " + column.name;
  if (column.default_expression.empty() || constant_default(column.default_expression)) return {};
  return "the default of column " + column.name;
}

void analyse_insert(Analyzer& analyzer, const parser::Insert& insert, Analysis& analysis) {
  InsertAnalysis(analyzer, insert, analysis).run();
}

}  // namespace kintsugi::planner
