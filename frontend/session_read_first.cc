// Writes of which parts are read first (planner/plan.h, ReadFirst): each part is run as a statement of its own,
// its rows come here, and go on as array parameters of the write, which is planned then. All in one
// transaction.
#include <algorithm>
#include <deque>

#include "base/sql_quote.h"
#include "executor/array_parameters.h"
#include "executor/describe.h"
#include "executor/exact_text.h"
#include "executor/moved.h"
#include "frontend/array_nulls.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;
using Form = planner::ReadFirst::Read::Form;

constexpr auto kControlTimeout = 30s;
constexpr std::size_t kMostParameters = 65'535;
// They are held up to three times here, and once for each shard that is written to.
constexpr std::uint64_t kMostBytes = 16 << 20;
constexpr int kMostRounds = 20;
constexpr std::uint32_t kText = 25;

Error too_many(std::uint64_t most) {
  return {
      .sqlstate = std::string(sqlstate::kLimitReached),
      .message = "a part of the statement that is read first has more than " + std::to_string(most) + " bytes",
      .hint =
          "Write fewer rows at a time, with a WHERE that takes a part of them, or read the rows into a table "
          "that is sharded as the one that is written to."};
}

std::string type_bytes(const std::vector<std::uint32_t>& types) {
  std::string raw(types.size() * 4, '\0');
  for (std::size_t i = 0; i < types.size(); ++i) wire::store_u32(raw.data() + 4 * i, types[i]);
  return raw;
}

// READ COMMITTED has one snapshot for each statement: so has this, which is several.
constexpr std::string_view kOneSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ";

std::optional<wire::ErrorReport> report_of(const StatementEnd& end) {
  if (!end.failed || end.error.size() < wire::kHeaderBytes) return std::nullopt;
  auto report = wire::read_error(std::string_view(end.error).substr(wire::kHeaderBytes));
  return report ? std::optional(std::move(*report)) : std::nullopt;
}

Error two_moments() {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message =
              "a write over several shards of which a part is read first, in a READ COMMITTED "
              "transaction block",
          .detail = "Each of its statements has a snapshot of its own, and this one would have two.",
          .hint =
              "Send it outside a block, or after BEGIN ISOLATION LEVEL REPEATABLE READ, or read the values "
              "with a statement of their own."};
}

using Row = std::vector<std::optional<std::string>>;

Result<std::vector<Row>> rows_in(std::string_view messages, std::size_t most) {
  std::vector<Row> rows;
  while (!messages.empty() && rows.size() < most) {
    KG_TRY(const auto frame, wire::peek_frame(messages, ~std::uint64_t{0} >> 1));
    if (!frame) break;
    messages.remove_prefix(frame->bytes().size());
    if (frame->type != wire::server::kDataRow) continue;
    KG_TRY(const auto values, wire::read_data_row(frame->body));
    Row& row = rows.emplace_back();
    for (const auto& value : values)
      row.push_back(value ? std::optional<std::string>(std::string(*value)) : std::nullopt);
  }
  return rows;
}

}  // namespace

// A statement of the router's own making, planned as the client's would be.
io::Task<Result<Run>> Session::plan_of_part(std::string text, const Run* run) {
  PreparedTextRef prepared = with_text({}, std::move(text));
  std::vector<planner::Parameter> parameters;
  for (std::size_t i = 0; i < run->bind.values.size(); ++i) {
    const auto& value = run->bind.values[i];
    parameters.push_back({.type = i < run->types.size() ? run->types[i] : 0,
                          .binary = value.binary,
                          .null = value.is_null,
                          .bytes = value.bytes});
  }
  for (;;) {
    const KnownStatement& known = known_of(*prepared, nullptr);
    if (known.kind != StatementKind::kPlanned) co_return fail(not_worked_out());
    auto plan = plan_of(known, prepared->normal, 0, parameters);
    if (!plan) co_return fail(std::move(plan).error());
    // Either may come after the other: a map that was waited for, values that are then wanted.
    if (std::holds_alternative<planner::WorkOut>(*plan)) {
      auto working = work_out(std::get<planner::WorkOut>(*plan));
      auto worked = co_await std::move(working);
      if (!worked) co_return fail(std::move(worked).error());
      prepared = with_text({}, std::move(*worked));
    } else if (std::holds_alternative<planner::Hold>(*plan)) {
      auto holding = hold(std::get<planner::Hold>(*plan).shardlet, worker_.routing().version, hold_deadline());
      co_await std::move(holding);
      if (backend_error_) co_return fail(*std::exchange(backend_error_, std::nullopt));
    } else {
      co_return Run{.plan = std::move(*plan),
                    .text = prepared->text,
                    .types = run->types,
                    .bind = run->bind,
                    .effects = prepared->known->effects,
                    .on_map = true};
    }
  }
}

// One row of text from a query with the statement's parameters; it names tables of this place.
io::Task<Result<std::vector<std::optional<std::string>>>> Session::ask_of_part(ShardId where, std::string text,
                                                                               const Run* run) {
  executor::Outbox kept;
  Run asking{.text = std::move(text), .types = run->types, .bind = run->bind, .rows_to = &kept};
  asking.bind.result_formats.clear();
  auto running = run_route({.shard = where, .text = asking.text, .writes = false}, &asking);
  StatementEnd end = co_await std::move(running);
  std::vector<std::optional<std::string>> row;
  if (end.failed) {
    KG_CO_TRY(const auto report, wire::read_error(std::string_view(end.error).substr(wire::kHeaderBytes)));
    co_return fail(Error{.sqlstate = std::string(report.sqlstate), .message = std::string(report.message)});
  }
  KG_CO_TRY(auto rows, rows_in(kept.compose(), 1));
  if (!rows.empty()) row = std::move(rows.front());
  co_return row;
}

io::Task<Result<PartColumns>> Session::columns_of_part(const planner::ReadFirst::Read* read, ShardId where,
                                                       const Run* run) {
  KG_CO_TRY(Place * place, place_at(where));
  const Deadline deadline = Deadline::in(kControlTimeout);
  auto describing =
      executor::describe_on(place->lease.get(), read->query, type_bytes(run->types), &waiter_, deadline);
  auto described = co_await std::move(describing);
  if (!described) co_return fail(std::move(described).error());
  PartColumns made;
  if (described->row_description.empty()) co_return made;
  made.description = std::move(described->row_description);
  KG_CO_TRY(made.columns, wire::read_row_description(made.description));
  if (made.columns.empty()) co_return made;
  // Which types they are, and which have a collation.
  std::string types;
  for (const wire::Column& column : made.columns) {
    const std::string oid = std::to_string(column.type_oid);
    types += std::string(types.empty() ? "SELECT " : ", ") + "pg_catalog.format_type(" + oid + ", " +
             std::to_string(column.type_modifier) +
             "), (SELECT typcollation <> 0 FROM pg_catalog.pg_type WHERE oid = " + oid + ")";
  }
  auto asking = executor::run_control_query(place->lease.get(), types, &waiter_, deadline);
  auto rows = co_await std::move(asking);
  if (!rows) co_return fail(std::move(rows).error());
  bool collated = false;
  for (std::size_t i = 0; i < made.columns.size(); ++i) {
    made.casts.push_back("::" + rows->at(0).at(2 * i).value_or("text"));
    collated |= rows->at(0).at(2 * i + 1).value_or("f") == "t";
  }
  if (!collated) co_return made;
  std::string collations, names;
  for (std::size_t i = 0; i < made.columns.size(); ++i) {
    const std::string name = "c" + std::to_string(i + 1);
    const bool has = rows->at(0).at(2 * i + 1).value_or("f") == "t";
    collations += std::string(i > 0 ? ", " : "SELECT ") +
                  (has ? "pg_catalog.pg_collation_for(s." + name + ")" : std::string("NULL"));
    names += (i > 0 ? ", " : "") + name;
  }
  if (read->writes) {
    // Columns of the table itself have its collations; more cannot be asked.
    collations = "";
    for (std::size_t i = 0; i < made.columns.size(); ++i)
      collations += std::string(i > 0 ? ", " : "SELECT ") +
                    "(SELECT pg_catalog.quote_ident(l.collname) FROM pg_catalog.pg_attribute a JOIN "
                    "pg_catalog.pg_collation l ON l.oid = a.attcollation WHERE a.attrelid = " +
                    std::to_string(made.columns[i].table_oid) +
                    " AND a.attnum = " + std::to_string(made.columns[i].table_column) + ")";
  } else {
    collations += " FROM (SELECT 1) AS one LEFT JOIN (" + read->query + ") AS s (" + names + ") ON false";
  }
  auto looking = ask_of_part(where, collations, run);
  auto said = co_await std::move(looking);
  if (!said) co_return fail(std::move(said).error());
  for (std::size_t i = 0; i < made.columns.size() && i < said->size(); ++i) {
    const bool has = rows->at(0).at(2 * i + 1).value_or("f") == "t";
    const auto& name = (*said)[i];
    if (has && read->writes && !name)
      co_return fail(sqlstate::kNotSupported,
                     "a WITH that writes, over several shards, with the expression \"" +
                         std::string(made.columns[i].name) + "\" in RETURNING, whose collation is not known",
                     "Return the column itself.");
    if (name && *name != "\"default\"" && *name != "default") made.casts[i] += " COLLATE " + *name;
  }
  co_return made;
}

// Runs a part, and puts what it gives in the place of it: text, and array parameters behind those of `last`.
io::Task<StatementEnd> Session::read_part(const planner::ReadFirst::Read* read, ShardId where, const Run* run,
                                          std::deque<std::string>* arrays, std::string* text, Run* last) {
  auto looking = columns_of_part(read, where, run);
  auto looked = co_await std::move(looking);
  if (!looked) co_return StatementEnd::refused(looked.error());
  const PartColumns& part = *looked;
  auto planning = plan_of_part(read->query, run);
  auto planned = co_await std::move(planning);
  if (!planned) co_return StatementEnd::refused(planned.error());
  const std::uint64_t most =
      std::min(kMostBytes, static_cast<std::uint64_t>(worker_.shared().config.limits.gather_bytes));
  executor::Outbox kept;
  std::vector<executor::ArrayColumn> columns;
  planned->rows_to = &kept;
  planned->most_kept = most;
  planned->bind.result_formats.clear();
  for (const wire::Column& each : part.columns) {
    executor::ArrayColumn column{.type = each.type_oid};
    column.binary = executor::is_portable(each.type_oid);
    if (column.binary) column.array = executor::array_column(each).array;
    column.exact = !column.binary && executor::needs_exact_text(each.type_oid);
    planned->bind.result_formats.push_back(column.binary || column.exact);
    columns.push_back(column);
  }
  auto running = run_plan(std::move(*planned));
  StatementEnd end = co_await std::move(running);
  if (end.cut || kept.kept_bytes() >= most) co_return StatementEnd::refused(too_many(most));
  if (end.failed) co_return end;
  if (last->types.size() + columns.size() > kMostParameters)
    co_return StatementEnd::refused({.sqlstate = "54023", .message = "the statement has too many parameters"});
  const std::string_view bytes = kept.compose();
  std::string others;
  auto made = executor::arrays_of(bytes, columns, others);
  if (!made) co_return StatementEnd::refused(made.error());
  to_client_.compose() += others;
  if (!std::ranges::all_of(columns, &executor::ArrayColumn::binary) && may_have_null_elements(bytes)) {
    auto asking = array_nulls_on((*place_at(where))->lease.get(), &waiter_);
    if (Status on = co_await std::move(asking); !on) co_return StatementEnd::refused(on.error());
  }
  if (read->form == Form::kValue) {
    auto rows = rows_in(bytes, 2);
    if (!rows) co_return StatementEnd::refused(rows.error());
    for (std::size_t i = 0; rows->size() < 2 && i < columns.size(); ++i) {
      wire::BindValues::Value value{.is_null = true};
      if (!rows->empty() && rows->front().at(i)) {
        std::string only = *std::move(rows->front()[i]);
        if (columns[i].exact) only = executor::exact_text(columns[i].type, only).value_or("");
        value = {.binary = columns[i].binary, .bytes = arrays->emplace_back(std::move(only))};
      }
      last->types.push_back(columns[i].binary ? columns[i].type : kText);
      last->bind.values.push_back(value);
      *text +=
          (i > 0 ? ", $" : "$") + std::to_string(last->types.size()) + (columns[i].binary ? "" : part.casts[i]);
    }
    if (rows->size() < 2) co_return end;
  }
  std::string targets, sources, names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    last->types.push_back(executor::parameter_type(columns[i]));
    last->bind.values.push_back({.binary = true, .bytes = arrays->emplace_back(std::move((*made)[i]))});
    const std::string separator = i > 0 ? ", " : "", name = "c" + std::to_string(i + 1);
    targets += separator + "v." + name + part.casts[i] + " AS " + quote_identifier(part.columns[i].name);
    sources += separator + "pg_catalog.unnest($" + std::to_string(last->types.size()) + ")";
    names += separator + name;
  }
  const std::string first = "$" + std::to_string(last->types.size());
  *text += read->before;
  if (read->form == Form::kArray && columns.size() == 1 && columns[0].binary &&
      part.casts[0].find(" COLLATE ") == std::string::npos)
    *text += " = ANY (" + first + ")";
  else if (read->form == Form::kArray)
    *text += " IN (SELECT " + targets + " FROM ROWS FROM (" + sources + ") AS v (" + names + "))";
  else if (columns.empty())
    *text += "SELECT";
  else if (read->form == Form::kValue)
    *text += "(SELECT " + targets + " FROM ROWS FROM (" + sources + ") AS v (" + names + "))";
  else
    *text += "SELECT " + targets + " FROM ROWS FROM (" + sources + ") AS v (" + names + ")";
  *text += read->after;
  co_return end;
}

// All shards have their snapshots before anything is read, and of one moment; or it does not matter. The shard
// that says what the parts are.
io::Task<Result<ShardId>> Session::open_to_read_first(const planner::ReadFirst* first) {
  // Lazily chosen: `co_await` within ?: is more than g++ 12 gets right.
  std::optional<io::Task<Result<Place*>>> joining;
  if (first->where == 0)
    joining.emplace(join_any());
  else
    joining.emplace(join(first->where));
  auto place = co_await std::move(*joining);
  if (!place) co_return fail(std::move(place).error());
  const ShardId where = (*place)->shard;
  executor::Backend* backend = (*place)->lease.get();
  const Deadline deadline = Deadline::in(kControlTimeout);
  if (txn_.implicit && begun_places() == 0) {
    // Nothing else is in it.
    auto asking =
        executor::run_control_query(backend, "SHOW default_transaction_isolation", &waiter_, deadline);
    auto level = co_await std::move(asking);
    if (!level) co_return fail(std::move(level).error());
    if (level->at(0).at(0) != "serializable") txn_.begin = kOneSnapshot;
  }
  auto opening_it = open_at(*place, false);
  KG_CO_CHECK(co_await std::move(opening_it));
  if (txn_.begin != kOneSnapshot) {
    // Which takes none itself.
    auto asking = executor::run_control_query(backend, "SHOW transaction_isolation", &waiter_, deadline);
    auto level = co_await std::move(asking);
    if (!level) co_return fail(std::move(level).error());
    txn_.isolation = isolation_named(level->at(0).at(0).value_or(""));
    if (txn_.isolation == Isolation::kEachItsOwn) {
      if (!first->alone) co_return fail(two_moments());
      // What the catalogue does not know may be a temporary view, of tables that others change.
      auto looking = executor::run_control_query(backend,
                                                 "SELECT FROM pg_catalog.pg_class WHERE relkind = 'v' AND "
                                                 "relnamespace = pg_catalog.pg_my_temp_schema() LIMIT 1",
                                                 &waiter_, deadline);
      auto views = co_await std::move(looking);
      if (!views) co_return fail(std::move(views).error());
      if (!views->empty()) co_return fail(two_moments());
      co_return where;
    }
  }
  std::vector<ShardId> all;
  for (const shardmap::Shard* shard : worker_.map()->shards()) {
    if (shard->state == shardmap::ShardState::kPreparing) continue;
    auto joining_it = join(shard->id);
    auto joined = co_await std::move(joining_it);
    if (!joined) co_return fail(std::move(joined).error());
    if ((*joined)->lease->broken) co_return fail(lost_part(**joined));
    all.push_back(shard->id);
  }
  auto opening_all = open_at_one_moment(all);
  KG_CO_CHECK(co_await std::move(opening_all));
  co_return where;
}

io::Task<StatementEnd> Session::read_first_once(planner::ReadFirst first, Run* run) {
  std::deque<std::string> arrays;  // what the parameters point into
  Run now = *run;
  for (int round = 0; round < kMostRounds; ++round) {
    auto opening_it = open_to_read_first(&first);
    auto where = co_await std::move(opening_it);
    if (!where) co_return StatementEnd::refused(where.error());
    auto place = place_at(*where);
    // Its mistakes, in PostgreSQL's words and where it would find them.
    auto describing = executor::describe_on((*place)->lease.get(), now.text, type_bytes(now.types), &waiter_,
                                            Deadline::in(kControlTimeout));
    if (auto described = co_await std::move(describing); !described)
      co_return StatementEnd::refused(described.error());
    std::string text = first.parts.front();
    Run next = now;
    for (std::size_t i = 0; i < first.reads.size(); ++i) {
      auto reading = read_part(&first.reads[i], *where, &now, &arrays, &text, &next);
      StatementEnd end = co_await std::move(reading);
      if (end.failed) co_return end;
      text += first.parts[i + 1];
    }
    next.text = std::move(text);
    auto planning = plan_of_part(next.text, &next);
    auto planned = co_await std::move(planning);
    if (!planned) co_return StatementEnd::refused(planned.error());
    if (auto* more = std::get_if<planner::ReadFirst>(&planned->plan)) {
      first = std::move(*more);
      next.text = std::move(planned->text);
      now = std::move(next);
      continue;
    }
    planned->describe = run->describe;
    planned->bind.result_formats = run->bind.result_formats;
    planned->rows_to = run->rows_to;
    planned->most_kept = run->most_kept;
    auto running = run_plan(std::move(*planned));
    StatementEnd end = co_await std::move(running);
    co_return end;
  }
  co_return StatementEnd::refused(not_worked_out());
}

// A conflict that READ COMMITTED would not have had, and the fence of a move, are no errors where the
// transaction has nothing else: the statement has never been, and comes a moment later.
io::Task<StatementEnd> Session::run_read_first(planner::ReadFirst first, Run* run) {
  const bool first_of_all = txn_.implicit && begun_places() == 0;
  for (const Deadline until = hold_deadline();;) {
    auto running = read_first_once(first, run);
    StatementEnd end = co_await std::move(running);
    const auto report = first_of_all && !end.told ? report_of(end) : std::nullopt;
    if (!report || report->sqlstate != executor::kMovedState) co_return end;
    if (executor::is_moved(report->sqlstate, report->message)) {
      end.moved = true;
      co_return end;
    }
    if (txn_.begin != kOneSnapshot || until.passed()) co_return end;
    if (Status wanted = still_wanted(); !wanted) co_return StatementEnd::refused(wanted.error());
    auto taking_back = take_back([](const Place& place) { return place.begun; });
    co_await std::move(taking_back);
  }
}

}  // namespace kintsugi::frontend
