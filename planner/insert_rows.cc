// INSERT ... VALUES: the keys of its rows, and what has to be worked out or read before they are known.
#include <algorithm>

#include "planner/insert_analysis.h"
#include "planner/read_first.h"

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

}  // namespace

std::string own_default(const Column& column) {
  if (column.identity != 0) return "the identity column " + column.name;
  if (column.default_expression.empty() || constant_default(column.default_expression)) return {};
  return "the default of column " + column.name;
}

bool is_made(const Column& column) {
  if (column.identity != 0) return true;
  const std::string& text = column.default_expression;
  static constexpr std::string_view kWords[] = {"(", "CURRENT_", "LOCALTIME"};
  return !own_default(column).empty() &&
         std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

std::optional<ReadFirstTemplate> InsertAnalysis::subqueries_first() {
  if (values_ == nullptr || !rest_problem_.empty() || hopeless(analyzer_)) return std::nullopt;
  if (analyzer_.statement().parameters() > 0) analysis_.depends_on_parameters = true;
  return parts_of_rows(analyzer_, insert_.with, *values_);
}

std::string InsertAnalysis::work_out_rows(const RelationUse& target) {
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

InsertTemplate InsertAnalysis::rows_as_written(const RelationUse& target) {
  InsertTemplate made;
  made.display = target.display;
  made.rows.resize(values_ == nullptr ? 1 : values_->values.size());
  place_rows(made);
  return made;
}

void InsertAnalysis::place_rows(InsertTemplate& made) const {
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

std::optional<std::size_t> InsertAnalysis::position_of(const Relation& relation, std::string_view name) const {
  if (!insert_.columns.empty()) {
    for (std::size_t i = 0; i < insert_.columns.size(); ++i)
      if (insert_.columns[i].column.text == name && insert_.columns[i].steps.empty()) return i;
    return std::nullopt;
  }
  for (std::size_t i = 0; i < relation.columns.size(); ++i)
    if (relation.columns[i].name == name) return i;
  return std::nullopt;
}

InsertTemplate::Value InsertAnalysis::value_of(const RelationUse& target, std::size_t key,
                                               const parser::List<const parser::Expr*>* row,
                                               CellCollector* cells) {
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

void InsertAnalysis::take_keys(const RelationUse& target, const parser::List<const parser::Expr*>* row,
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

KeyLimit InsertAnalysis::limit_of_key(const RelationUse& target, std::size_t key) {
  const Column* column = target.relation == nullptr ? nullptr : target.relation->column(target.table->key[key]);
  return column == nullptr ? KeyLimit{} : limit_of(column->type_name);
}

bool InsertAnalysis::is_key(const RelationUse& target, const parser::List<const parser::Expr*>& row,
                            parser::Range read) const {
  return std::any_of(target.table->key.begin(), target.table->key.end(), [&](const std::string& name) {
    const auto at = position_of(target.relation != nullptr ? *target.relation : Relation{}, name);
    return at && *at < row.size() && read.begin >= row[*at]->range.begin && read.end <= row[*at]->range.end;
  });
}

void InsertAnalysis::rows(const RelationUse& target) {
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

}  // namespace kintsugi::planner
