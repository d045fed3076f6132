// What a statement is, and where it goes.
#include <algorithm>

#include "frontend/encodings.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "parser/scanner.h"

namespace kintsugi::frontend {

// Whether the next statement may be looked up; it is asked once for each. Where that failed it may too, and
// look_up() refuses it.
//
// The question would be the first query of an open transaction, behind which PostgreSQL takes no SET
// TRANSACTION any more. What names nothing does without; SHOW kintsugi.shard_new_tables tells of them.
bool Session::names_are_known(std::string_view text) {
  const bool asked = std::exchange(names_asked_, false);
  return asked || names_known_ || home() == 0 || (txn_.open && names_nothing(text));
}

bool Session::names_nothing(std::string_view text) {
  parser::Scanner scanner(text);
  const parser::Token token = scanner.next();
  if (parser::is_keyword(text, token, "show")) return text.find("shard_new_tables") == std::string_view::npos;
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"set", "reset", "commit", "end", "rollback", "abort", "savepoint",
                                              "release", "begin", "start"},
      [&](std::string_view word) { return parser::is_keyword(text, token, word); });
}

// What of the session's settings the router has to know to read a text as PostgreSQL does.
void Session::note_how_texts_are_read() {
  if (read_as_ == reported_) return;
  read_as_ = reported_;
  const std::string* strings = reported_->find("standard_conforming_strings");
  const std::string* encoding = reported_->find("client_encoding");
  standard_strings_ = strings == nullptr || *strings != "off";
  utf8_ = encoding == nullptr || *encoding == "UTF8" || *encoding == "SQL_ASCII";
}

bool Session::standard_strings() {
  note_how_texts_are_read();
  return standard_strings_;
}

namespace {

// '...' with a backslash, which is another string when standard_conforming_strings is off.
bool has_backslash_strings(std::string_view text, parser::Range statement) {
  if (text.substr(statement.begin, statement.end - statement.begin).find('\\') == std::string_view::npos)
    return false;
  parser::Scanner scanner(text.substr(0, statement.end), false);
  scanner.seek(statement.begin);
  for (;;) {
    const parser::Token token = scanner.next();
    if (token.kind == parser::TokenKind::kEnd || token.kind == parser::TokenKind::kError) return false;
    const std::string_view own = token.of(text);
    if (token.kind == parser::TokenKind::kEscapeString && own.front() == '\'' &&
        own.find('\\') != std::string_view::npos)
      return true;
  }
}

KnownRef refused_as(Error error) {
  auto known = std::make_shared<KnownStatement>();
  known->kind = StatementKind::kPlanned;
  known->refusal = std::move(error);
  return known;
}

Error backslash_refusal() {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = "a backslash in '...' while standard_conforming_strings is off",
          .hint = "Write E'...', or SET standard_conforming_strings = on."};
}

}  // namespace

NamesRef Session::names() {
  if (names_ == nullptr || names_settings_ != settings_.get()) {
    const std::string* tables = settings_->find("kintsugi.shard_new_tables");
    names_ =
        names_with_changes(worker_.book().names(search_path_now_, user_now_, tables == nullptr ? "" : *tables));
    names_settings_ = settings_.get();
  }
  return names_;
}

KnownRef Session::look_up(std::string_view text, parser::Range statement, parser::Normaliser& normal,
                          bool* unknown_names) {
  const NamesRef meaning = names();
  if (!standard_strings() && has_backslash_strings(text, statement)) {
    static const KnownRef kRefused = refused_as(backslash_refusal());
    return kRefused;
  }
  if (!utf8_)
    if (auto error = misread_in(*reported_->find("client_encoding"), text))
      return refused_as(std::move(*error));
  KnownRef known = worker_.book().look_up(text, statement, *meaning, worker_.routing(), normal, unknown_names);
  const bool needs_names =
      known->kind == StatementKind::kPlanned || known->kind == StatementKind::kExplainRoute;
  if (!names_missing_ || !needs_names) return known;
  if (unknown_names != nullptr) *unknown_names = false;
  auto refused = std::make_shared<KnownStatement>(*known);
  refused->analysis.reset();
  refused->refusal = names_missing_;
  return refused;
}

Result<planner::Plan> Session::plan_on_map(const KnownStatement& known, const parser::Normaliser& normal,
                                           std::uint32_t begin,
                                           std::span<const planner::Parameter> parameters) {
  if (guarded_ != nullptr) {
    if (auto error = guard_refuses(known)) return fail(std::move(*error));
  }
  if (known.refusal) return fail(*known.refusal);
  if (home() == 0) return fail(pool_of(0).error());  // no plan for no shard: there is none yet
  if (auto error = concerns_new_table(normal.text())) return fail(std::move(*error));
  const shardmap::ShardMap& map = *worker_.map();
  if (guarded_ != nullptr) {
    if (auto error = planner::refuses(guard(), *known.analysis, {&normal, begin, parameters}, map))
      return fail(std::move(*error));
  }
  const bool explains = known.kind == StatementKind::kExplainRoute;
  note_how_texts_are_read();
  const bool other_encoding = !utf8_;
  auto plan = planner::make_plan(*known.analysis,
                                 {.normal = &normal,
                                  .begin = begin,
                                  .parameters = parameters,
                                  .past_holds = false,
                                  .explains = explains,
                                  .other_encoding = other_encoding},
                                 map);
  if (!utf8_ && plan)
    if (auto error = refused_in(*reported_->find("client_encoding"), *plan)) return fail(std::move(*error));
  if (guarded_ != nullptr && plan && !std::holds_alternative<planner::Route>(*plan) &&
      !std::holds_alternative<planner::Hold>(*plan)) {
    return fail(planner::outside(guard(), "a statement for several shards"));
  }
  if (!plan || !std::holds_alternative<planner::Hold>(*plan) || !txn_.open) return plan;
  // Who hands the shardlet over waits for the transactions that have written to it: they may not wait for him.
  auto past =
      planner::make_plan(*known.analysis, {&normal, begin, parameters, true, false, other_encoding}, map);
  const auto* route = past ? std::get_if<planner::Route>(&*past) : nullptr;
  return route != nullptr && has_written(route->shard) ? past : plan;
}

bool Session::has_written(ShardId shard) const {
  if (lease_ && here_ == shard && begun_) return wrote_;
  return std::ranges::any_of(
      away_, [shard](const Place& place) { return place.shard == shard && place.begun && place.wrote; });
}

// A statement that any shard can answer stays where the transaction is; one about the session's own sequences
// stays where they were used.
ShardId Session::place_of(const planner::Route& route, std::uint32_t effects) const {
  if ((effects & kReadsSequence) != 0 && lease_) return here_;
  return route.shard;
}

ShardId Session::cursor_place(const parser::Statement& statement) const {
  std::string_view name;
  if (const auto* fetch = statement.get<parser::Fetch>(); fetch != nullptr) name = fetch->cursor.text;
  if (const auto* close = statement.get<parser::CloseCursor>(); close != nullptr) name = close->name.text;
  const auto at = cursors_.find(name);
  return at == cursors_.end() ? 0 : at->second;
}

void Session::note_cursor(const parser::Statement& statement, ShardId shard) {
  constexpr std::size_t kMost = 1000;
  const auto* declare = statement.get<parser::DeclareCursor>();
  if (declare == nullptr) return;
  if (cursors_.size() >= kMost) cursors_.clear();
  cursors_[std::string(declare->name.text)] = shard;
}

bool Session::want_fresh_catalog() const {
  return !refreshed_ && worker_.services().catalogs != nullptr;
}

// Before the statement is planned: a name was not found, or this session has defined something and nobody knows
// it yet.
bool Session::must_read_catalog(const KnownStatement& known, bool unknown_names) const {
  const bool defined = defined_ && !txn_.open && known.kind == StatementKind::kPlanned;
  return (unknown_names || defined) && want_fresh_catalog();
}

// ---- EXPLAIN (ROUTE) ----

void Session::append_route_description(std::string& out) {
  constexpr std::uint32_t kText = 25;
  const wire::Column column{.name = "QUERY PLAN", .type_oid = kText, .type_size = -1};
  wire::append_row_description(out, std::span(&column, 1));
}

StatementEnd Session::explain_route(const KnownStatement& known, const parser::Normaliser& normal,
                                    parser::Range statement, std::span<const planner::Parameter> parameters,
                                    bool describe) {
  auto plan = plan_on_map(known, normal, statement.begin, parameters);
  if (!plan) return StatementEnd::refused(plan.error());
  const parser::Range body = known.tree->get<parser::Explain>()->body_range;
  const std::string_view own = normal.text().substr(statement.begin + body.begin, body.end - body.begin);
  std::string& out = to_client_.compose();
  if (describe) append_route_description(out);
  std::vector<std::string> lines = planner::lines_of(*plan, *worker_.map(), own);
  if (!std::holds_alternative<planner::Route>(*plan)) {
    for (const std::string& call : planner::worked_out_of(*known.analysis))
      lines.push_back("worked out first: " + call);
  }
  for (const std::string& line : lines) {
    const std::optional<std::string_view> value(line);
    wire::append_data_row(out, std::span(&value, 1));
  }
  return StatementEnd::complete("EXPLAIN");
}

}  // namespace kintsugi::frontend
