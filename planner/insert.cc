// INSERT: where its rows go, on shards, on all of them or at home.
#include <algorithm>

#include "planner/insert_analysis.h"
#include "planner/read_first.h"

namespace kintsugi::planner {

using parser::as;
using Kind = RelationUse::Kind;

void InsertAnalysis::run() {
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

std::string InsertAnalysis::own_of(const parser::Expr& value) {
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

void InsertAnalysis::walk_rest() {
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

void InsertAnalysis::at_home(const RelationUse& target) {
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

bool InsertAnalysis::view_of_placed_table(const RelationUse& target) {
  const auto* query = target.relation->query ? target.relation->query->get<parser::Query>() : nullptr;
  const parser::Select* select = query == nullptr ? nullptr : query->simple();
  if (select == nullptr || select->from.size() != 1) return true;
  const auto* ref = as<parser::TableRef>(select->from[0]);
  return ref == nullptr || analyzer_.resolve(ref->name).kind != Kind::kHome;
}

void InsertAnalysis::replicated(const RelationUse& target) {
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
  if (auto error = conflict_by_chance(target)) return refuse_always(std::move(*error));
  // Of two rows in conflict the first one counts.
  const bool first_counts = insert_.on_conflict != nullptr && insert_.source != nullptr && values_ == nullptr;
  if (first_counts || !analyzer_.system_column.empty()) {
    if (pour_always()) return;
    return refuse_always(refused(
        "INSERT into the replicated table " + target.display + " of rows of which each shard might take others",
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

std::optional<Error> InsertAnalysis::conflict_by_chance(const RelationUse& target) const {
  if (!rest_problem_.empty())
    return refused(
        "INSERT into the replicated table " + target.display + " with ON CONFLICT, of which " + rest_problem_,
        "Read the value first, then give it as a literal or a parameter.");
  if (insert_.on_conflict == nullptr || target.relation == nullptr) return std::nullopt;
  for (const parser::SetClause& set : insert_.on_conflict->set)
    for (std::size_t i = 0; i < set.targets.size(); ++i) {
      const auto* row = set.multiple ? as<parser::Row>(set.value) : nullptr;
      const bool inside = row != nullptr && i < row->elements.size();
      if (as<parser::Default>(inside ? row->elements[i] : set.value) == nullptr) continue;
      const Column* column = target.relation->column(set.targets[i].column.text);
      if (column != nullptr && is_made(*column))
        return refused(
            "INSERT into the replicated table " + target.display +
                " with a value that each shard would have to make for itself, by the default of column " +
                column->name,
            "Give the value itself, as a literal or a parameter.");
    }
  return std::nullopt;
}

void InsertAnalysis::sharded(const RelationUse& target) {
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

std::optional<Error> InsertAnalysis::mistake_in_columns(const RelationUse& target) {
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

std::optional<std::string> InsertAnalysis::key_in_conflict(const RelationUse& target) const {
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

void analyse_insert(Analyzer& analyzer, const parser::Insert& insert, Analysis& analysis) {
  InsertAnalysis(analyzer, insert, analysis).run();
}

}  // namespace kintsugi::planner
