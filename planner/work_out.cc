#include "planner/work_out.h"

#include <algorithm>

#include "base/sql_quote.h"
#include "parser/scanner.h"
#include "planner/parameter_text.h"

namespace kintsugi::planner {

using parser::Token;
using parser::TokenKind;

bool stands_alone(std::string_view text, parser::Range range) {
  parser::Scanner scanner(text.substr(0, range.end));
  scanner.seek(range.begin);
  for (;;) {
    const Token token = scanner.next();
    if (token.kind == TokenKind::kEnd) return true;
    if (token.kind == TokenKind::kError || parser::is_keyword(text, token, "select") ||
        parser::is_keyword(text, token, "table") || parser::is_keyword(text, token, "values")) {
      return false;
    }
  }
}

std::string default_of(const Relation& relation, const Column& column) {
  if (column.identity == 0) return column.default_expression;
  const std::string table = quote_identifier(relation.schema) + "." + quote_identifier(relation.name);
  return "pg_catalog.nextval(pg_catalog.pg_get_serial_sequence(" + quote_literal(table) + ", " +
         quote_literal(column.name) + ")::pg_catalog.regclass)";
}

bool CellCollector::take_default(const Column& column, std::optional<std::size_t> position) {
  if (insert_.with != nullptr || insert_.overriding == "user") return false;
  std::string expression = default_of(relation_, column);
  if (expression.empty()) return false;
  if (column.identity == 'a') overrides_ = true;
  rows_.back().push_back({position, std::move(expression), {}});
  if (!position && rows_.size() == 1) added_.push_back(column.name);
  return true;
}

bool CellCollector::take_value(const parser::Expr& value, std::size_t position) {
  if (insert_.with != nullptr || insert_.overriding == "user" || !stands_alone(text_, value.range))
    return false;
  rows_.back().push_back({position, {}, {}});
  return true;
}

bool CellCollector::take_key(const parser::Expr& value, std::size_t position, std::string type) {
  if (!take_value(value, position)) return false;
  rows_.back().back().type = std::move(type);
  return true;
}

bool CellCollector::empty() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const auto& row) { return row.empty(); });
}

namespace {

// The text of `whole` with the calls taken out of it. False: they do not lie there one after the other.
bool take_out(std::vector<parser::Range> calls, parser::Range whole, const TextEdits& edits,
              WorkOutTemplate& made) {
  std::sort(calls.begin(), calls.end(),
            [](const parser::Range& a, const parser::Range& b) { return a.begin < b.begin; });
  std::uint32_t at = whole.begin;
  for (const parser::Range& call : calls) {
    if (call.begin < at || call.end > whole.end) return false;
    made.parts.push_back(edits.make({at, call.begin}));
    made.expressions.push_back({call, {}});
    at = call.end;
  }
  made.parts.push_back(edits.make({at, whole.end}));
  return true;
}

}  // namespace

std::optional<WorkOutTemplate> CellCollector::make(parser::Range whole, std::size_t columns,
                                                   std::vector<parser::Range> times) {
  if (empty() && times.empty()) return std::nullopt;
  WorkOutTemplate made;
  if (!times.empty()) {
    if (insert_.source == nullptr) return std::nullopt;
    const std::uint32_t behind = insert_.source->body->value_rows.back().end;
    if (!take_out(std::move(times), {behind, whole.end}, TextEdits(text_, true), made)) return std::nullopt;
  }
  TextEdits edits(text_, true);
  std::string added;
  for (const std::string& name : added_) added += ", " + quote_identifier(name);
  const std::string overriding =
      overrides_ && insert_.overriding.empty() ? " OVERRIDING SYSTEM VALUE " : std::string();
  made.default_values = insert_.source == nullptr;
  std::uint32_t rows_begin = 0;
  if (!insert_.columns_range.empty()) {
    if (!added.empty()) edits.insert(insert_.columns_range.end - 1, added);
    if (!overriding.empty()) edits.insert(insert_.columns_range.end, overriding);
  } else {
    std::string names;
    for (std::size_t i = 0; i < columns && i < relation_.columns.size(); ++i)
      names += ", " + quote_identifier(relation_.columns[i].name);
    names += added;
    std::string list = added.empty() ? std::string() : " (" + names.substr(2) + ")";
    edits.insert(insert_.table.range.end, list + overriding);
  }
  if (made.default_values) {
    rows_begin = insert_.columns_range.empty() ? insert_.table.range.end : insert_.columns_range.end;
  } else {
    rows_begin = insert_.source->body->value_rows.front().begin;
  }
  made.head = edits.make({whole.begin, rows_begin});
  made.rows = std::move(rows_);
  return made;
}

namespace {

// Takes the calls out of the statement and of the views it names, whose texts it puts in their places.
class TextsWithViews {
 public:
  TextsWithViews(const Analyzer& analyzer, const std::vector<parser::Range>& calls, const TextEdits& edits)
      : analyzer_(analyzer), edits_(edits) {
    for (const parser::Range& call : calls) cuts_of_.push_back({0, {call, 0}});
    for (const Analyzer::ViewTime& time : analyzer.view_times) {
      if (is_read_again(time.unit)) continue;
      cuts_of_.push_back({time.unit, {time.range, 0}});
      for (int unit = time.unit; unit > 0; unit = at(unit).parent) {
        const Cut view{at(unit).ref->name.range, unit};
        if (std::none_of(cuts_of_.begin(), cuts_of_.end(),
                         [&](const auto& each) { return each.second.view == unit; }))
          cuts_of_.push_back({at(unit).parent, view});
      }
    }
  }

  bool make(WorkOutTemplate& made) {
    if (!put(0, analyzer_.whole, made)) return false;
    made.parts.push_back(std::move(now_));
    return true;
  }

 private:
  struct Cut {
    parser::Range range;
    int view;  // a unit; 0: it is a call
  };
  // A WITH that is used twice is read twice, and the views in it.
  [[nodiscard]] bool is_read_again(int unit) const {
    for (; unit > 0; unit = at(unit).parent)
      for (int other = 1; other < unit; ++other)
        if (at(other).ref == at(unit).ref && at(other).parent == at(unit).parent) return true;
    return false;
  }
  [[nodiscard]] const Unit& at(int unit) const { return analyzer_.units[static_cast<std::size_t>(unit)]; }

  void put_text(int unit, parser::Range range) {
    if (unit != 0) {
      now_.push_back({.text = std::string(range.of(at(unit).statement->text()))});
      return;
    }
    TextTemplate text = edits_.make(range);
    now_.insert(now_.end(), text.begin(), text.end());
  }

  bool put(int unit, parser::Range whole, WorkOutTemplate& made) {
    std::vector<Cut> cuts;
    for (const auto& [where, cut] : cuts_of_)
      if (where == unit) cuts.push_back(cut);
    std::sort(cuts.begin(), cuts.end(),
              [](const Cut& a, const Cut& b) { return a.range.begin < b.range.begin; });
    std::uint32_t from = whole.begin;
    for (const Cut& cut : cuts) {
      if (cut.range.begin < from || cut.range.end > whole.end) return false;
      put_text(unit, {from, cut.range.begin});
      from = cut.range.end;
      if (cut.view == 0) {
        made.parts.push_back(std::exchange(now_, {}));
        made.expressions.push_back(
            {cut.range, unit == 0 ? std::string() : std::string(cut.range.of(at(unit).statement->text()))});
        continue;
      }
      const Unit& view = at(cut.view);
      const std::string_view text = view.statement->text();
      std::uint32_t end = static_cast<std::uint32_t>(text.size());
      while (end > 0 && (text[end - 1] == ';' || text[end - 1] == ' ' || text[end - 1] == '\n')) --end;
      now_.push_back({.text = "("});
      if (!put(cut.view, {0, end}, made)) return false;
      now_.push_back({.text = ")"});
      if (!view.ref->alias.given()) now_.push_back({.text = " AS " + quote_identifier(view.ref->name.name())});
      now_.push_back({.text = " "});
    }
    put_text(unit, {from, whole.end});
    return true;
  }

  const Analyzer& analyzer_;
  const TextEdits& edits_;
  std::vector<std::pair<int, Cut>> cuts_of_;  // by unit
  TextTemplate now_;
};

}  // namespace

std::optional<WorkOutTemplate> times_taken_out(std::vector<parser::Range> times, parser::Range whole,
                                               const TextEdits& edits) {
  WorkOutTemplate made;
  if (!take_out(std::move(times), whole, edits, made)) return std::nullopt;
  return made;
}

std::optional<WorkOutTemplate> times_worked_out(const Analyzer& analyzer, parser::Range whole) {
  if (analyzer.time_calls.empty()) return std::nullopt;
  WorkOutTemplate made;
  if (!take_out(analyzer.time_calls, whole, TextEdits(analyzer.statement().text(), true), made))
    return std::nullopt;
  return made;
}

namespace {

std::optional<WorkOutTemplate> named_and_taken_out(const Analyzer& analyzer, std::vector<parser::Range> ranges,
                                                   bool views) {
  TextEdits edits(analyzer.statement().text(), true);
  for (const auto& [end, name] : analyzer.named_by_time) edits.insert(end, " AS " + quote_identifier(name));
  WorkOutTemplate made;
  if (views && !analyzer.view_times.empty()) {
    if (!TextsWithViews(analyzer, ranges, edits).make(made)) return std::nullopt;
    return made;
  }
  if (!take_out(std::move(ranges), analyzer.whole, edits, made)) return std::nullopt;
  return made;
}

}  // namespace

std::optional<WorkOutTemplate> one_time_for_all(const Analyzer& analyzer) {
  if (analyzer.time_calls.empty() && analyzer.view_times.empty()) return std::nullopt;
  return named_and_taken_out(analyzer, analyzer.time_calls, true);
}

std::optional<WorkOutTemplate> keys_worked_out(const Analyzer& analyzer, bool times) {
  if (analyzer.folds.empty()) return std::nullopt;
  std::vector<parser::Range> ranges = analyzer.folds;
  if (times) ranges.insert(ranges.end(), analyzer.time_calls.begin(), analyzer.time_calls.end());
  return named_and_taken_out(analyzer, std::move(ranges), times);
}

bool times_can_be_worked_out(const Analyzer& analyzer, parser::Range returning) {
  if (analyzer.other_times || !analyzer.view_times.empty()) return false;
  return std::none_of(analyzer.time_calls.begin(), analyzer.time_calls.end(), [&](const parser::Range& call) {
    return call.begin >= returning.begin && call.end <= returning.end;
  });
}

namespace {

// The values of a row in parentheses, each as a range of the text.
std::vector<parser::Range> values_of(std::string_view text, parser::Range row) {
  std::vector<parser::Range> values;
  parser::Scanner scanner(text.substr(0, row.end));
  scanner.seek(row.begin);
  int depth = 0;
  for (;;) {
    const Token token = scanner.next();
    if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kError) return values;
    const bool opens = parser::is_symbol(text, token, "(") || parser::is_symbol(text, token, "[");
    const bool closes = parser::is_symbol(text, token, ")") || parser::is_symbol(text, token, "]");
    if (closes) --depth;
    if (depth >= 1) {
      if (depth == 1 && parser::is_symbol(text, token, ",")) {
        values.push_back({});
      } else {
        if (values.empty()) values.push_back({});
        parser::Range& value = values.back();
        if (value.empty()) value.begin = token.begin;
        value.end = token.end;
      }
    }
    if (opens) ++depth;
  }
}

// Where DEFAULT VALUES stands.
std::optional<parser::Range> default_values_in(std::string_view text, std::uint32_t begin) {
  parser::Scanner scanner(text);
  scanner.seek(begin);
  Token before;
  for (;;) {
    const Token token = scanner.next();
    if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kError) return std::nullopt;
    if (parser::is_keyword(text, before, "default") && parser::is_keyword(text, token, "values"))
      return parser::Range{before.begin, token.end};
    before = token;
  }
}

// Puts a row together: its text with the worked out values in their places.
class Pieces {
 public:
  explicit Pieces(std::string head) { plan_.parts.push_back(std::move(head)); }
  void text(std::string_view text) { plan_.parts.back() += text; }
  void worked(std::string expression) {
    plan_.expressions.push_back(std::move(expression));
    plan_.parts.emplace_back();
  }
  WorkOut take() { return std::move(plan_); }

 private:
  WorkOut plan_;
};

}  // namespace

// What stands there in this execution, with its parameters' values.
static Result<std::string> expression_of(const WorkOutTemplate::Expression& each,
                                         const RenderContext& context) {
  if (!each.text.empty()) return each.text;
  KG_TRY(const std::string expression,
         render({Piece{.kind = Piece::Kind::kOwn, .range = each.range}}, context));
  return with_parameters(expression, context.values.parameters);
}

Result<Plan> work_out_insert(const WorkOutTemplate& work, const InsertRows& rows, const InsertTemplate& insert,
                             const RenderContext& context) {
  const std::string_view text = context.values.normal->text();
  const std::uint32_t end = context.values.normal->units().back().end;
  KG_TRY(std::string head, render(work.head, context));
  Pieces made(std::move(head));
  std::uint32_t rest = end;
  if (work.default_values) {
    const auto words = default_values_in(text.substr(0, end), context.values.begin);
    if (!words)
      return fail(sqlstate::kNotSupported, "this INSERT ... DEFAULT VALUES", "Name the key's column.");
    made.text(" VALUES (");
    bool first = true;
    for (const auto& cell : work.rows.front()) {
      if (!std::exchange(first, false)) made.text(", ");
      made.worked(cell.expression);
    }
    made.text(")");
    rest = words->end;
  } else {
    const auto texts = rows.texts();
    if (texts.empty() || texts.size() != rows.size())
      return fail(sqlstate::kNotSupported, "INSERT of these rows into " + insert.display,
                  "Give the values themselves, as literals or parameters.");
    for (std::size_t row = 0; row < texts.size(); ++row) {
      if (row > 0) made.text(", ");
      const auto& cells = work.rows[rows.analysed(row)];
      const auto values = values_of(text, texts[row]);
      made.text("(");
      bool first = true;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::exchange(first, false)) made.text(", ");
        const auto cell =
            std::find_if(cells.begin(), cells.end(), [&](const auto& each) { return each.position == i; });
        if (cell == cells.end())
          made.text(values[i].of(text));
        else {
          std::string expression = cell->expression;
          if (expression.empty()) {
            KG_TRY(expression, with_parameters(values[i].of(text), context.values.parameters));
          }
          if (!cell->type.empty()) expression = "CAST((" + expression + ") AS " + cell->type + ")";
          made.worked(std::move(expression));
        }
      }
      for (const auto& cell : cells) {
        if (cell.position) continue;
        if (!std::exchange(first, false)) made.text(", ");
        made.worked(cell.expression);
      }
      made.text(")");
    }
    rest = texts.back().end;
  }
  if (work.parts.empty()) {
    made.text(text.substr(rest, end - rest));
  } else {
    for (std::size_t i = 0; i < work.parts.size(); ++i) {
      KG_TRY(const std::string part, render(work.parts[i], context));
      if (i > 0) {
        KG_TRY(std::string expression, expression_of(work.expressions[i - 1], context));
        made.worked(std::move(expression));
      }
      made.text(" " + part);
    }
  }
  WorkOut plan = made.take();
  plan.shard = context.shard;
  return Plan(std::move(plan));
}

Result<Plan> work_out_write(const WorkOutTemplate& work, const RenderContext& context) {
  WorkOut plan;
  plan.shard = context.shard;
  for (const WorkOutTemplate::Expression& each : work.expressions) {
    KG_TRY(std::string expression, expression_of(each, context));
    plan.expressions.push_back(std::move(expression));
  }
  for (const TextTemplate& part : work.parts) {
    KG_TRY(std::string text, render(part, context));
    plan.parts.push_back(std::move(text));
  }
  return Plan(std::move(plan));
}

std::string query_of(const WorkOut& plan) {
  std::string query;
  for (std::size_t i = 0; i < plan.expressions.size(); ++i) {
    // OFFSET 0 keeps PostgreSQL from working a value out twice.
    // JSON writes times so that every session reads the same in them.
    query += (i > 0 ? " UNION ALL SELECT " : "SELECT ") + std::to_string(i) +
             ", CASE pg_catalog.pg_typeof(v)::pg_catalog.oid WHEN 1184 THEN pg_catalog.to_json(v) #>> '{}' "
             "ELSE v::pg_catalog.text END, pg_catalog.format_type(pg_catalog.pg_typeof(v)::pg_catalog.oid, -1) "
             "FROM (SELECT (" +
             plan.expressions[i] + ") AS v OFFSET 0) AS worked";
  }
  return query + " ORDER BY 1";
}

namespace {

// The (3) of current_timestamp(3), where the expression is no more than that.
std::string_view precision_of(std::string_view expression) {
  parser::Scanner scanner(expression);
  const Token name = scanner.next();
  constexpr std::string_view kTimes[] = {"current_timestamp", "localtimestamp", "current_time", "localtime"};
  if (std::none_of(std::begin(kTimes), std::end(kTimes),
                   [&](std::string_view each) { return parser::is_keyword(expression, name, each); }))
    return {};
  const Token open = scanner.next();
  const Token digits = scanner.next();
  const Token close = scanner.next();
  if (!parser::is_symbol(expression, open, "(") || digits.kind != TokenKind::kInteger ||
      !parser::is_symbol(expression, close, ")") || scanner.next().kind != TokenKind::kEnd)
    return {};
  return expression.substr(open.begin, close.end - open.begin);
}

}  // namespace

std::string text_with(const WorkOut& plan, const std::vector<std::vector<std::optional<std::string>>>& rows) {
  std::string text = plan.parts.front();
  for (std::size_t i = 0; i < plan.expressions.size(); ++i) {
    const auto& value = rows[i][1];
    std::string type = rows[i][2].value_or("text");
    // timestamp(3) with time zone
    const std::string_view precision = precision_of(plan.expressions[i]);
    type.insert(std::min(type.find(' '), type.size()), precision);
    text += " " + (value ? quote_literal(*value) : std::string("NULL"));
    text += "::" + type + " " + plan.parts[i + 1];
  }
  return text;
}

}  // namespace kintsugi::planner
