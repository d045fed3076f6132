// UPDATE, DELETE and MERGE.
#include <algorithm>

#include "planner/analyse.h"
#include "planner/chance.h"
#include "planner/read_first.h"
#include "planner/work_out.h"

namespace kintsugi::planner {

using parser::as;
using Kind = RelationUse::Kind;

std::vector<shardmap::ShardId> replicated_shards(const shardmap::ShardMap& map) {
  std::vector<shardmap::ShardId> all;
  for (const shardmap::Shard* shard : map.shards())
    if (shard->state != shardmap::ShardState::kPreparing) all.push_back(shard->id);
  return all;
}

namespace {

const RelationUse* target_of(const Analyzer& analyzer) {
  for (const RelationUse& use : analyzer.uses)
    if (use.target) return &use;
  return nullptr;
}

// The keys that SET changes.
void take_key_updates(Analyzer& analyzer, parser::List<parser::SetClause> set, const Block& block,
                      Analysis& analysis) {
  const RelationUse* target = target_of(analyzer);
  if (target == nullptr || target->kind != Kind::kSharded) return;
  const auto table =
      std::find_if(analysis.tables.begin(), analysis.tables.end(), [&](const TouchedTable& each) {
        return each.map == target->table->map && each.condition == target->condition;
      });
  for (const parser::SetClause& clause : set)
    for (std::size_t i = 0; i < clause.targets.size(); ++i) {
      const auto& key = target->table->key;
      const auto at = std::find(key.begin(), key.end(), clause.targets[i].column.text);
      if (at == key.end()) continue;
      const parser::Expr* value = clause.value;
      if (clause.multiple) {
        const auto* row = as<parser::Row>(value);
        value = row != nullptr && i < row->elements.size() ? row->elements[i] : nullptr;
      }
      const auto column = static_cast<std::uint8_t>(at - key.begin());
      // SET key = key.
      const TermId term = value == nullptr ? kNoTerm : analyzer.term_of(value, *block.scope);
      if (term == target->first_term + column) continue;
      Analysis::KeyUpdate update{static_cast<std::size_t>(table - analysis.tables.begin()), column, {}, *at};
      if (value != nullptr) update.value = analyzer.source_of(value);
      if (update.value && update.value->kind == Source::Kind::kParameter) analysis.depends_on_parameters = true;
      analysis.key_updates.push_back(std::move(update));
    }
}

// Whether rows that UPDATE joins are one at most for each row of its target, or what is set says nothing of
// them.
bool one_for_each(Analyzer& analyzer, const Block& block, parser::List<parser::SetClause> set) {
  RowsTold rows(analyzer, block);
  rows.tell_part(0);
  const bool one = rows.all();
  const bool same = std::all_of(set.begin(), set.end(), [&](const parser::SetClause& clause) {
    return as<parser::Default>(clause.value) != nullptr || rows.told(clause.value);
  });
  analyzer.once |=
      rows.by_literals() || (!one && std::any_of(block.parts.begin(), block.parts.end(),
                                                 [](const FromPart& part) { return part.literals; }));
  return one || same;
}

// A statement whose rows or values each shard would choose for itself.
std::optional<Error> chosen_by_chance(const Analyzer& analyzer, const Block& block,
                                      const std::string& display) {
  const std::string write = "a write to the replicated table " + display;
  if (!analyzer.system_column.empty())
    return refused(write + " that names " + analyzer.system_column + ", which is another on each shard",
                   "Name rows by their primary key.");
  std::string why = block.problem;
  if (why.empty() && block.from.kind == Distribution::Kind::kSpread) why = block.from.why;
  if (why.empty()) return std::nullopt;
  return refused(write + " of which " + why,
                 "ORDER BY a unique key as well, or read the rows first and write them by their keys.");
}

// One statement on all shards: they must do the very same.
void write_everywhere(Analyzer& analyzer, const Block& block, parser::Range returning, Analysis& analysis) {
  const std::string display = target_of(analyzer)->display;
  if (!analysis.tables.empty() || analysis.home) {
    analysis.several =
        refused("a write to the replicated table " + display + " that reads other tables than replicated ones",
                "Read the rows first, then write them with INSERT ... VALUES or by their keys.");
    analysis.tables.clear();
    analysis.point.reset();
    return;
  }
  if (auto error = chosen_by_chance(analyzer, block, display)) {
    analysis.several = std::move(*error);
    return;
  }
  const std::string volatile_name = block.row_volatile               ? "a volatile function"
                                    : analyzer.session_time          ? "the time"
                                    : !analyzer.one_place.empty()    ? "the function " + analyzer.one_place
                                    : !analyzer.reads_tables.empty() ? "the function " + analyzer.reads_tables
                                                                     : "";
  const bool times_only = !block.row_volatile && analyzer.one_place.empty() && analyzer.reads_tables.empty();
  if (times_only && times_can_be_worked_out(analyzer, returning)) {
    analysis.work_out = times_worked_out(analyzer, analyzer.whole);
    if (analysis.work_out) return;
  }
  if (!volatile_name.empty()) {
    analysis.several = refused("a write to the replicated table " + display +
                                   " with a value that each shard would have "
                                   "to make for itself, by " +
                                   volatile_name,
                               "Give the value itself, as a literal or a parameter.");
    return;
  }
  FanOut plan;
  plan.writes = true;
  plan.merge.kind = Merge::Kind::kOne;
  for (const shardmap::ShardId shard : replicated_shards(analyzer.map())) plan.tasks.push_back({shard, {}});
  analysis.fixed = FixedPlan{std::move(plan)};
}

// What UPDATE and DELETE have in common once they are read.
void place_write(Analyzer& analyzer, const Block& block, const WriteClauses& clauses, bool current_of,
                 Analysis& analysis) {
  analyzer.finish();
  take_tables(analyzer, analysis);
  analysis.writes = true;
  analysis.anywhere = false;
  if (analysis.replicated_target) return write_everywhere(analyzer, block, clauses.returning, analysis);
  TextEdits edits(analyzer.statement().text(), true);
  add_ownership(analyzer, analysis, edits, &clauses);
  if (analysis.tables.empty()) {
    if (auto error = sees_one_shard(analyzer)) analysis.several = std::move(*error);
    return;
  }
  if (auto error = hopeless(analyzer)) {
    analysis.several = std::move(*error);
    return;
  }
  const std::string pin = "Say with = which sharding key it is for.";
  const RelationUse* target = target_of(analyzer);
  if (target == nullptr || target->kind != Kind::kSharded) {
    analysis.several = refused("a write to " + (target == nullptr ? "a table" : target->display) +
                                   " that reads sharded tables of several shards",
                               "Read the rows first, then write them by their keys.");
  } else if (analysis.home) {
    analysis.several =
        refused("a write over several shards that names a table which is on the home shard alone",
                "Read its rows first, or say with = which sharding key it is for.");
  } else if (current_of) {
    analysis.several = refused("WHERE CURRENT OF a cursor over several shards", pin);
  } else if (!block.problem.empty() || block.from.kind != Distribution::Kind::kSharded) {
    analysis.several = refused(
        "a write over several shards of which " + (block.problem.empty() ? block.from.why : block.problem),
        pin);
  } else if (analyzer.system_value == "ctid") {
    analysis.several = refused("a write over several shards that says by ctid which rows it is about",
                               "On each shard that is another row. Name rows by their primary key, or say with "
                               "= which sharding key it is for.");
  } else if (!analyzer.one_place.empty()) {
    analysis.several = refused("the function " + analyzer.one_place + " in a write over several shards",
                               "Call it in a statement of its own and give its value.");
  } else {
    FanOutTemplate fan_out;
    fan_out.writes = true;
    analysis.several = std::move(fan_out);
  }
}

// A column whose default each shard would make for itself, and to which SET says DEFAULT.
std::string set_to_default(const Analyzer& analyzer, parser::List<parser::SetClause> set) {
  const RelationUse* target = target_of(analyzer);
  for (const parser::SetClause& clause : set)
    for (std::size_t i = 0; i < clause.targets.size(); ++i) {
      const auto* row = clause.multiple ? as<parser::Row>(clause.value) : nullptr;
      const parser::Expr* value =
          row != nullptr ? (i < row->elements.size() ? row->elements[i] : nullptr) : clause.value;
      if (as<parser::Default>(value) == nullptr) continue;
      const Column* column =
          target->relation == nullptr ? nullptr : target->relation->column(clause.targets[i].column.text);
      if (column == nullptr || is_made(*column)) return std::string(clause.targets[i].column.text);
    }
  return {};
}

void refuse_default(const Analyzer& analyzer, const std::string& column, Analysis& analysis) {
  analysis.fixed.reset();
  analysis.work_out.reset();
  analysis.several =
      refused("a write to the replicated table " + target_of(analyzer)->display +
                  " with a value that each shard would have to make for itself, by the default of "
                  "column " +
                  column,
              "Give the value itself, as a literal or a parameter.");
}

// What is refused may be exact when parts of it are read first.
void finish_write(Analyzer& analyzer, const Block& block, const WriteClauses& clauses, bool current_of,
                  const parser::WithClause* with, const parser::Expr* where,
                  parser::List<const parser::FromItem*> items, bool sets, Analysis& analysis) {
  place_write(analyzer, block, clauses, current_of, analysis);
  if (!std::holds_alternative<Error>(analysis.several) || current_of || hopeless(analyzer)) return;
  auto parts = parts_of_write(analyzer, with, block, where, items, sets);
  if (!parts) return;
  analysis.several = std::move(*parts);
  if (analyzer.statement().parameters() > 0) analysis.depends_on_parameters = true;
}

}  // namespace

void analyse_update(Analyzer& analyzer, const parser::Update& update, Analysis& analysis) {
  analyzer.no_top();
  analyzer.with(update.with, nullptr, nullptr);
  Block* block = analyzer.modification(update.table, update.from, update.where);
  for (const parser::SetClause& set : update.set) analyzer.expression(set.value, *block);
  analyzer.returning(update.returning, *block);
  const std::uint32_t where_goes = update.from.empty() ? update.set_clause.end : update.from_clause.end;
  const WriteClauses clauses{block, update.where == nullptr ? parser::Range{} : update.where_clause, where_goes,
                             update.returning_clause};
  finish_write(analyzer, *block, clauses, !update.current_of.text.empty(), update.with, update.where,
               update.from, true, analysis);
  if (analysis.replicated_target && !std::holds_alternative<Error>(analysis.several)) {
    if (!update.from.empty() && !one_for_each(analyzer, *block, update.set)) {
      analysis.fixed.reset();
      analysis.work_out.reset();
      analysis.several =
          refused("an UPDATE of the replicated table " + target_of(analyzer)->display +
                      " by rows of FROM of which several may match one of its rows",
                  "Each shard would take another. Make them one for each row, by a unique key, GROUP BY "
                  "or DISTINCT ON with ORDER BY, or use MERGE.");
    } else if (const std::string column = set_to_default(analyzer, update.set); !column.empty()) {
      refuse_default(analyzer, column, analysis);
    }
  }
  if (!analysis.fixed) take_key_updates(analyzer, update.set, *block, analysis);
}

void analyse_delete(Analyzer& analyzer, const parser::Delete& del, Analysis& analysis) {
  analyzer.no_top();
  analyzer.with(del.with, nullptr, nullptr);
  Block* block = analyzer.modification(del.table, del.using_items, del.where);
  analyzer.returning(del.returning, *block);
  const std::uint32_t where_goes = del.using_items.empty() ? del.table.range.end : del.using_clause.end;
  const WriteClauses clauses{block, del.where == nullptr ? parser::Range{} : del.where_clause, where_goes,
                             del.returning_clause};
  finish_write(analyzer, *block, clauses, !del.current_of.text.empty(), del.with, del.where, del.using_items,
               false, analysis);
}

namespace {

// A column that rows of MERGE leave to a default that is no constant.
std::string made_by_default(const parser::Merge& merge, const RelationUse& target) {
  if (target.relation == nullptr) return {};
  for (const parser::MergeWhen& when : merge.when) {
    if (when.action != parser::MergeWhen::Action::kInsert) continue;
    for (std::size_t i = 0; i < target.relation->columns.size(); ++i) {
      const Column& column = target.relation->columns[i];
      if (!is_made(column) || column.generated) continue;
      std::optional<std::size_t> position;
      if (when.columns.empty()) position = i;
      for (std::size_t k = 0; k < when.columns.size(); ++k)
        if (when.columns[k].column.text == column.name) position = k;
      if (!position || *position >= when.values.size() ||
          as<parser::Default>(when.values[*position]) != nullptr)
        return column.name;
    }
  }
  return {};
}

}  // namespace

void analyse_merge(Analyzer& analyzer, const parser::Merge& merge, Analysis& analysis) {
  analyzer.no_top();
  analyzer.with(merge.with, nullptr, nullptr);
  Block* block = analyzer.merge(merge);
  const RelationUse* target = target_of(analyzer);
  for (const parser::MergeWhen& when : merge.when) {
    analyzer.expression(when.condition, *block);
    for (const parser::SetClause& set : when.set) analyzer.expression(set.value, *block);
    for (const parser::Expr* value : when.values) analyzer.expression(value, *block);
  }
  analyzer.finish();
  take_tables(analyzer, analysis);
  analysis.writes = true;
  analysis.anywhere = false;
  if (analysis.replicated_target) {
    std::string column = made_by_default(merge, *target);
    for (const parser::MergeWhen& when : merge.when)
      if (column.empty()) column = set_to_default(analyzer, when.set);
    if (!column.empty()) return refuse_default(analyzer, column, analysis);
    return write_everywhere(analyzer, *block, {}, analysis);
  }
  TextEdits edits(analyzer.statement().text(), true);
  add_ownership(analyzer, analysis, edits);
  analysis.unhideable = "MERGE";
  const Error one_shard =
      refused("MERGE over several shards",
              "Say in ON with = which sharding key it is for, or use INSERT ... ON CONFLICT, UPDATE "
              "and DELETE.");
  if (!analysis.tables.empty()) analysis.several = one_shard;
  if (target == nullptr || target->kind != Kind::kSharded) return;
  for (const parser::MergeWhen& when : merge.when) {
    take_key_updates(analyzer, when.set, *block, analysis);
    if (when.action != parser::MergeWhen::Action::kInsert) continue;
    // What it inserts must have the key that ON names, or nobody knows where it belongs.
    for (std::size_t i = 0; i < target->table->key.size(); ++i) {
      std::optional<std::size_t> position;
      if (when.columns.empty()) {
        for (std::size_t k = 0; target->relation != nullptr && k < target->relation->columns.size(); ++k)
          if (target->relation->columns[k].name == target->table->key[i]) position = k;
      }
      for (std::size_t k = 0; k < when.columns.size(); ++k)
        if (when.columns[k].column.text == target->table->key[i]) position = k;
      Analysis::KeyUpdate update{0, static_cast<std::uint8_t>(i), {}, target->table->key[i]};
      for (std::size_t k = 0; k < analysis.tables.size(); ++k)
        if (analysis.tables[k].condition == target->condition && analysis.tables[k].map == target->table->map)
          update.table = k;
      if (position && *position < when.values.size()) update.value = analyzer.source_of(when.values[*position]);
      update.inserted = true;
      analysis.key_updates.push_back(std::move(update));
    }
  }
  if (analyzer.statement().parameters() > 0) analysis.depends_on_parameters = true;
}

}  // namespace kintsugi::planner
