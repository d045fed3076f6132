// SQL's PREPARE, EXECUTE and DEALLOCATE. A statement that concerns the home shard alone is prepared there and
// ties the client to its connection, as PostgreSQL keeps it. One that is routed is kept by the router, like a
// statement of the extended protocol: EXECUTE binds it.
#include <algorithm>

#include "base/sql_quote.h"
#include "executor/arguments.h"
#include "executor/describe.h"
#include "frontend/called_settings.h"
#include "frontend/made_types.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "frontend/statement_names.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 30s;

std::string_view text_of(const parser::Statement& statement, parser::Range range) {
  return statement.text().substr(range.begin, range.end - range.begin);
}

}  // namespace

// The place of a statement whose plan is the same for any parameters; nothing when it has to be routed.
std::optional<ShardId> Session::fixed_place(PreparedText& prepared) {
  const KnownStatement& known = known_of(prepared, nullptr);
  if (known.kind != StatementKind::kPlanned)
    return known.kind == StatementKind::kUnknown && !must_be_read() ? std::optional(home()) : std::nullopt;
  if (known.refusal || planner::depends_on_parameters(*known.analysis, prepared.normal)) return std::nullopt;
  auto plan = plan_of(known, prepared.normal, prepared.range.begin, {});
  if (!plan) return std::nullopt;
  const auto* route = std::get_if<planner::Route>(&*plan);
  if (route == nullptr || !route->text.empty()) return std::nullopt;
  return route->shard == 0 ? home() : route->shard;
}

PreparedTextRef Session::text_prepared_by(const parser::Statement& statement, const parser::Prepare& prepare) {
  auto prepared = std::make_shared<PreparedText>();
  prepared->text.assign(text_of(statement, prepare.body.range));
  prepared->range = {0, static_cast<std::uint32_t>(prepared->text.size())};
  return prepared;
}

// Whether PostgreSQL's own PREPARE and EXECUTE do, on the home shard.
bool Session::named_passes(const parser::Statement& statement) {
  if (const auto* prepare = statement.get<parser::Prepare>(); prepare != nullptr) {
    if (find_statement(prepare->name.text) != nullptr) return false;
    const PreparedTextRef prepared = text_prepared_by(statement, *prepare);
    // What set_config() is given comes with EXECUTE, and is for other shards as well.
    return fixed_place(*prepared) == home() && (prepared->known->effects & kCallsSetConfig) == 0;
  }
  std::string_view name;
  if (const auto* execute = statement.get<parser::Execute>(); execute != nullptr) name = execute->name.text;
  if (const auto* deallocate = statement.get<parser::Deallocate>(); deallocate != nullptr) {
    if (deallocate->all) return true;
    name = deallocate->name.text;
  }
  const ClientStatementRef handle = find_statement(name);
  if (handle == nullptr) return true;
  if (handle->by_router) return false;
  if (handle->prepared != nullptr && statement.get<parser::Execute>() != nullptr && careful()) return false;
  return handle->prepared == nullptr || fixed_place(*handle->prepared) == home();
}

// Its rows as a shard has described them; of EXECUTE those of what it executes. Empty: none.
const std::string& Session::rows_described(const KnownStatement& known, const PreparedText& prepared) {
  const auto* execute = known.kind == StatementKind::kNamed ? known.tree->get<parser::Execute>() : nullptr;
  if (execute == nullptr) return prepared.row_description;
  const ClientStatementRef handle = find_statement(execute->name.text);
  return handle == nullptr || handle->prepared == nullptr ? prepared.row_description
                                                          : handle->prepared->row_description;
}

io::Task<StatementEnd> Session::run_named(KnownRef known, bool describe, std::vector<std::int16_t> formats) {
  const parser::Statement& statement = *known->tree;
  if (const auto* deallocate = statement.get<parser::Deallocate>(); deallocate != nullptr) {
    statements_.erase(std::string(deallocate->name.text));
    co_return StatementEnd::complete("DEALLOCATE");
  }
  if (const auto* prepare = statement.get<parser::Prepare>(); prepare != nullptr) {
    if (find_statement(prepare->name.text) != nullptr) {
      co_return StatementEnd::refused(
          {.sqlstate = "42P05",
           .message = "prepared statement \"" + std::string(prepare->name.text) + "\" already exists"},
          "StorePreparedStatement");
    }
    auto preparing = prepare_here(known);
    StatementEnd end = co_await std::move(preparing);
    co_return end;
  }
  const parser::Execute& execute = *statement.get<parser::Execute>();
  const ClientStatementRef handle = find_statement(execute.name.text);
  if (handle == nullptr || handle->prepared == nullptr) {
    co_return StatementEnd::refused(unknown_name(execute.name.text));
  }
  auto executing = execute_here(known, handle->prepared, describe, std::move(formats));
  StatementEnd end = co_await std::move(executing);
  co_return end;
}

// The types are PostgreSQL's to name, and so is what is wrong with the statement.
io::Task<StatementEnd> Session::prepare_here(KnownRef known) {
  const parser::Prepare& prepare = *known->tree->get<parser::Prepare>();
  PreparedTextRef prepared = text_prepared_by(*known->tree, prepare);
  const KnownStatement& inner = known_of(*prepared, nullptr);
  if (inner.refusal) co_return StatementEnd::refused(*inner.refusal);
  auto joining = prepare.types.empty() ? join_any() : join(home());  // whose numbers the catalogue knows
  auto place = co_await std::move(joining);
  if (!place) co_return StatementEnd::refused(place.error());
  auto opened = open_at(*place, false);
  if (Status done = co_await std::move(opened); !done) co_return StatementEnd::refused(done.error());
  executor::Backend* backend = (*place)->lease.get();
  if (!prepare.types.empty()) {
    std::string sql = "SELECT ";
    for (const parser::TypeName* type : prepare.types) {
      if (sql.size() > 7) sql += ", ";
      sql += quote_literal(text_of(*known->tree, type->range)) + "::pg_catalog.regtype::pg_catalog.oid";
    }
    auto asking = executor::run_control_query(backend, sql, &waiter_, Deadline::in(kControlTimeout));
    auto rows = co_await std::move(asking);
    if (!rows) co_return StatementEnd::refused(rows.error());
    for (const auto& oid : rows->front()) {
      const auto value = static_cast<std::uint32_t>(std::stoul(oid.value_or("0")));
      for (int shift = 24; shift >= 0; shift -= 8)
        prepared->type_oids += static_cast<char>(value >> shift & 0xff);
    }
  }
  auto describing = describe_statement(prepared);
  co_await std::move(describing);
  if (backend_error_) co_return StatementEnd::refused(*std::exchange(backend_error_, std::nullopt));
  auto handle = std::make_shared<ClientStatement>();
  handle->statement = executor::intern_prepared(prepared->text, prepared->type_oids, search_path());
  handle->answered = true;
  handle->by_router = true;
  handle->prepared = std::move(prepared);
  statements_[std::string(prepare.name.text)] = std::move(handle);
  co_return StatementEnd::complete("PREPARE");
}

namespace {

// Literals that are the parameter's text as they stand, whatever becomes of them there.
std::optional<executor::Rows> plain_arguments(const parser::Execute& execute,
                                              std::span<const std::uint32_t> types) {
  constexpr std::uint32_t kBigint = 20, kInteger = 23, kText = 25, kVarchar = 1043, kUuid = 2950;
  constexpr std::size_t kDigits = 9;  // fit into both
  executor::Rows rows(1);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto* literal = parser::as<parser::Literal>(execute.args[i]);
    if (literal == nullptr) return std::nullopt;
    const bool whole = literal->literal == parser::LiteralKind::kInteger && literal->value.size() <= kDigits &&
                       (types[i] == kInteger || types[i] == kBigint);
    const bool text = literal->literal == parser::LiteralKind::kString &&
                      (types[i] == kText || types[i] == kVarchar || types[i] == kUuid);
    if (literal->literal == parser::LiteralKind::kNull)
      rows.front().emplace_back();
    else if (whole || text)
      rows.front().emplace_back(literal->value);
    else
      return std::nullopt;
  }
  return rows;
}

}  // namespace

// Their values as text. They are PostgreSQL's to evaluate.
io::Task<Result<executor::Rows>> Session::arguments_of(KnownRef known, PreparedTextRef prepared) {
  const parser::Execute& execute = *known->tree->get<parser::Execute>();
  if (auto plain = plain_arguments(execute, prepared->types)) co_return std::move(*plain);
  const bool built_in = std::ranges::all_of(prepared->types, is_built_in);
  auto joining = built_in ? join_any() : join(home());  // whose numbers of types these are
  KG_CO_TRY(Place * place, co_await std::move(joining));
  auto opened = open_at(place, false);
  KG_CO_CHECK(co_await std::move(opened));
  std::string arguments;
  for (const parser::Expr* argument : execute.args) {
    if (!arguments.empty()) arguments += ", ";
    arguments.append("(").append(text_of(*known->tree, argument->range)).append("\n)");
  }
  auto asking = executor::cast_arguments(place->lease.get(), std::move(arguments), prepared->types, &waiter_,
                                         Deadline::in(kControlTimeout));
  auto rows = co_await std::move(asking);
  if (!rows) {
    Error error = std::move(rows).error();
    error.position = 0;  // of another text
    co_return fail(std::move(error));
  }
  co_return rows;
}

// The values of the arguments, as text, are the parameters.
io::Task<StatementEnd> Session::execute_here(KnownRef known, PreparedTextRef prepared, bool describe,
                                             std::vector<std::int16_t> formats) {
  const parser::Execute& execute = *known->tree->get<parser::Execute>();
  if (!prepared->described || prepared->described_as_of != described_now()) {
    auto describing = describe_statement(prepared);
    co_await std::move(describing);
    if (backend_error_) co_return StatementEnd::refused(*std::exchange(backend_error_, std::nullopt));
  }
  if (prepared->changed) co_return StatementEnd::refused(other_columns(), "RevalidateCachedQuery");
  const bool takes_any = !prepared->types.empty();  // PostgreSQL does not look at arguments for nothing
  if (takes_any && execute.args.size() != prepared->types.size()) {
    co_return StatementEnd::refused(
        {.sqlstate = "42601",
         .message =
             "wrong number of parameters for prepared statement \"" + std::string(execute.name.text) + "\"",
         .detail = "Expected " + std::to_string(prepared->types.size()) + " parameters but got " +
                   std::to_string(execute.args.size()) + "."});
  }
  executor::Rows rows;
  if (takes_any) {
    auto asking = arguments_of(known, prepared);
    auto answered = co_await std::move(asking);
    if (!answered) co_return StatementEnd::refused(answered.error());
    rows = std::move(*answered);
  }
  Run run{.text = prepared->text, .types = prepared->types, .describe = describe};
  run.bind.result_formats = std::move(formats);
  std::vector<planner::Parameter> parameters;
  for (std::size_t i = 0; i < prepared->types.size(); ++i) {
    const auto& value = rows.front()[i];
    run.bind.values.push_back(
        {.is_null = !value, .bytes = value ? std::string_view(*value) : std::string_view()});
    parameters.push_back({.type = prepared->types[i],
                          .null = !value,
                          .bytes = value ? std::string_view(*value) : std::string_view()});
  }
  std::optional<Deadline> until;
  int rounds = 0;
  for (;;) {
    const std::uint64_t version = worker_.routing().version;
    const KnownStatement& inner = known_of(*prepared, nullptr);
    if (inner.kind != StatementKind::kPlanned) co_return StatementEnd::refused(not_worked_out());
    auto plan = plan_of(inner, prepared->normal, prepared->range.begin, parameters);
    if (!plan) co_return StatementEnd::refused(plan.error());
    if (const auto* held = std::get_if<planner::Hold>(&*plan); held != nullptr) {
      auto holding = hold(held->shardlet, version, hold_deadline());
      co_await std::move(holding);
      if (backend_error_) co_return StatementEnd::refused(*std::exchange(backend_error_, std::nullopt));
      continue;
    }
    if (const auto* work = std::get_if<planner::WorkOut>(&*plan); work != nullptr) {
      if (++rounds > kWorkOutRounds) co_return StatementEnd::refused(not_worked_out());
      auto working = work_out(*work);
      auto done = co_await std::move(working);
      if (!done) co_return StatementEnd::refused(done.error());
      prepared = with_text(*prepared, std::move(*done));
      run.text = prepared->text;
      continue;
    }
    run.plan = std::move(*plan);
    run.effects = inner.effects;
    run.on_map = true;
    measure_plan(prepared->known, run.plan);
    auto running = run_plan(run);
    StatementEnd end = co_await std::move(running);
    if (!end.failed && (prepared->known->effects & kCallsSetConfig) != 0)
      note_called_settings(*prepared->known, with_values(prepared->text, parameters));
    if (!until) until = hold_deadline();
    auto waiting = wait_to_repeat(&end, version, *until);
    if (!co_await std::move(waiting)) co_return end;
  }
}

}  // namespace kintsugi::frontend
