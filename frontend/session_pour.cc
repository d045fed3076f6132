// INSERT ... SELECT whose rows go elsewhere than they come from: the source is run as a statement of its own,
// and its rows, some at a time, become INSERT ... VALUES, which is planned as a client's would be. All in one
// transaction.
#include <algorithm>
#include <charconv>

#include "base/sql_quote.h"
#include "executor/describe.h"
#include "executor/exact_text.h"
#include "frontend/array_nulls.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 30s;
constexpr std::uint64_t kRowsAtFirst = 16;
constexpr std::uint64_t kRowsAtOnce = 500;
constexpr std::uint64_t kBytesAtOnce =
    1 << 20;  // about: the next portion is as long as the last one's rows allow

constexpr std::uint32_t kFirstMade = 16384;  // of the types that users have made

// Of a statement that must not hit a row twice, and so is one.
constexpr std::uint64_t kMostRows = 20'000;
constexpr std::uint64_t kMostBytes = 16 << 20;

Error too_many_at_once() {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = "INSERT ... SELECT ... ON CONFLICT DO UPDATE of more than " + std::to_string(kMostRows) +
                     " rows or 16 MB whose rows come from other shards than they go to",
          .hint = "Insert fewer rows at a time, with a WHERE that takes a part of them."};
}

std::uint64_t rows_of(std::string_view tag) {
  const std::size_t blank = tag.rfind(' ');
  std::uint64_t rows = 0;
  if (blank != std::string_view::npos) std::from_chars(tag.data() + blank + 1, tag.data() + tag.size(), rows);
  return rows;
}

}  // namespace

// What PostgreSQL has to say of the statement and of its source: mistakes, and the types of the columns.
io::Task<Result<Pouring>> Session::look_at_source(const planner::Pour& pour, const Run* run) {
  // Lazily chosen: `co_await` within ?: is more than g++ 12 gets right.
  std::optional<io::Task<Result<Place*>>> joining;
  if (pour.where == 0)
    joining.emplace(join_any());
  else
    joining.emplace(join(pour.where));
  auto joined = co_await std::move(*joining);
  if (!joined) co_return fail(std::move(joined).error());
  Place* place = *joined;
  auto opening_it = open_at(place, false);
  Status opened = co_await std::move(opening_it);
  if (!opened) co_return fail(std::move(opened).error());
  executor::Backend* backend = place->lease.get();
  std::string types(run->types.size() * 4, '\0');
  for (std::size_t i = 0; i < run->types.size(); ++i) wire::store_u32(types.data() + 4 * i, run->types[i]);
  const Deadline deadline = Deadline::in(kControlTimeout);
  auto describing = executor::describe_on(backend, run->text, types, &waiter_, deadline);
  auto statement = co_await std::move(describing);
  if (!statement) co_return fail(std::move(statement).error());
  auto describing_source = executor::describe_on(backend, pour.source, types, &waiter_, deadline);
  auto source = co_await std::move(describing_source);
  if (!source) co_return fail(std::move(source).error());
  KG_CO_TRY(const auto columns, wire::read_row_description(source->row_description));
  Pouring pouring;
  pouring.returning = std::move(statement->row_description);
  std::string sql =
      "SELECT pg_catalog.current_setting('transaction_read_only'), pg_catalog.current_setting('array_nulls')";
  for (std::size_t i = 0; i < columns.size(); ++i)
    // Without a modifier, and not as SQL's names without one mean: "character" would be one character.
    sql += ", pg_catalog.format_type(" + std::to_string(columns[i].type_oid) + ", -1)";
  auto asking = executor::run_control_query(backend, sql, &waiter_, deadline);
  auto names = co_await std::move(asking);
  if (!names) co_return fail(std::move(names).error());
  if (names->at(0).at(0) == "on") co_return fail("25006", "cannot execute INSERT in a read-only transaction");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool untyped = i < pour.untyped.size() && pour.untyped[i];
    const std::string type = names->at(0).at(i + 2).value_or("text");
    if (names->at(0).at(1) == "off" && (type.ends_with("[]") || columns[i].type_oid >= kFirstMade))
      co_return fail(no_array_nulls());
    pouring.oids.push_back(columns[i].type_oid);
    pouring.types.push_back(untyped ? "" : "::" + type);
  }
  co_return pouring;
}

io::Task<StatementEnd> Session::run_pour(planner::Pour pour, Run* run) {
  auto looking = look_at_source(pour, run);
  auto looked = co_await std::move(looking);
  if (!looked) co_return StatementEnd::refused(looked.error());
  Pouring pouring = std::move(*looked);
  pouring.head = std::move(pour.head);
  pouring.tail = std::move(pour.tail);
  pouring.formats = run->bind.result_formats;
  pouring.at_once = pour.at_once;
  pouring.rows_to = run->rows_to;
  if (run->describe && !pouring.returning.empty())
    wire::FrameWriter(to_client_.compose(), wire::server::kRowDescription).bytes(pouring.returning);

  auto planning = plan_of_part(std::move(pour.source), run);
  auto planned = co_await std::move(planning);
  if (!planned) co_return StatementEnd::refused(planned.error());
  Run source = std::move(*planned);
  source.bind.result_formats.clear();
  for (const std::uint32_t type : pouring.oids)
    source.bind.result_formats.push_back(executor::needs_exact_text(type));
  source.suspendable = true;
  source.pouring = &pouring;
  auto running = run_plan(std::move(source));
  StatementEnd end = co_await std::move(running);
  if (!end.failed) end.tag = "INSERT 0 " + std::to_string(pouring.inserted);
  if (!pouring.returning.empty()) end.moved = false;  // the client has been told of it
  co_return end;
}

// The last step of the source's plan: what it gives is inserted as it comes.
io::Task<StatementEnd> Session::pour_rows(planner::FanOut fan_out, Run* run) {
  Pouring& pouring = *run->pouring;
  executor::Outbox rows;
  run->rows_to = &rows;
  std::uint64_t portion = kRowsAtFirst, collected = 0;
  std::unique_ptr<executor::Fan> fan;
  for (bool first = true;; first = false) {
    const std::uint64_t before = rows.kept_bytes();
    executor::FanStep step;
    if (first) {
      auto beginning = begin_fan(std::move(fan_out), run, portion, &fan);
      auto begun = co_await std::move(beginning);
      if (!begun) co_return StatementEnd::refused(begun.error());
      step = std::move(*begun);
    } else {
      auto advancing = fan->advance(portion);
      step = co_await std::move(advancing);
    }
    if (step.kind == executor::FanStep::kFailed) co_return end_of(step);
    if (step.rows > 0)
      portion = std::clamp<std::uint64_t>(kBytesAtOnce * step.rows / (rows.kept_bytes() - before + 1), 1,
                                          kRowsAtOnce);
    collected += step.rows;
    if (pouring.at_once && step.kind == executor::FanStep::kSuspended) {
      if (collected < kMostRows && rows.kept_bytes() < kMostBytes) continue;
      auto stopping = fan->stop();
      co_await std::move(stopping);
      co_return StatementEnd::refused(too_many_at_once());
    }
    auto text = pouring.statement_of(&rows, &to_client_);
    if (!text) co_return StatementEnd::refused(text.error());
    if (!text->empty()) {
      auto inserting = insert_poured(std::move(*text), &pouring);
      StatementEnd end = co_await std::move(inserting);
      if (end.failed) {
        if (step.kind == executor::FanStep::kSuspended) {
          auto stopping = fan->stop();
          co_await std::move(stopping);
        }
        co_return end;
      }
    }
    if (step.kind == executor::FanStep::kComplete) break;
  }
  co_return StatementEnd::complete("");
}

io::Task<StatementEnd> Session::insert_poured(std::string text, Pouring* pouring) {
  parser::Normaliser normal;
  const parser::Range whole{0, static_cast<std::uint32_t>(text.size())};
  KnownRef known = look_up(text, whole, normal, nullptr);
  if (known->kind != StatementKind::kPlanned) co_return StatementEnd::refused(not_worked_out());
  const Answering answering{.describe = false, .formats = pouring->formats, .rows_to = pouring->rows_to};
  auto running = run_planned(known, &text, whole, &normal, &answering);
  StatementEnd end = co_await std::move(running);
  plan_begins();
  if (!end.failed) pouring->inserted += rows_of(end.tag);
  co_return end;
}

// The rows that are there as one INSERT; empty when there are none. What else came with them goes to the
// client.
Result<std::string> Pouring::statement_of(executor::Outbox* rows, executor::Outbox* client) const {
  std::string text;
  std::string_view bytes = rows->compose();
  while (!bytes.empty()) {
    KG_TRY(const auto frame, wire::peek_frame(bytes, ~std::uint64_t{0} >> 1));
    if (!frame) break;
    bytes.remove_prefix(frame->bytes().size());
    if (frame->type != wire::server::kDataRow) {
      client->compose() += frame->bytes();
      continue;
    }
    KG_TRY(const auto values, wire::read_data_row(frame->body));
    text += text.empty() ? head + " VALUES (" : ", (";
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text += ", ";
      if (!values[i]) {
        text += "NULL";
        continue;
      }
      const std::optional<std::string> exact =
          i < oids.size() ? executor::exact_text(oids[i], *values[i]) : std::nullopt;
      text += quote_literal(exact ? *exact : std::string(*values[i])) + (i < types.size() ? types[i] : "");
    }
    text += ")";
  }
  rows->clear();
  if (!text.empty() && !tail.empty()) text += " " + tail;
  return text;
}

}  // namespace kintsugi::frontend
