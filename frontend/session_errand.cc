// Errands: what a session does for a statement that is more than one shard's bytes. Nothing is under way on any
// connection when one begins, and when it ends.
#include <algorithm>

#include "base/log.h"
#include "executor/describe.h"
#include "frontend/array_nulls.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "parser/split_statements.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 10s;
constexpr int kNamesAskedMax = 3;  // of connections that had died
constexpr std::size_t kWorkedOutInOneQuery = 500;

}  // namespace

StatementEnd StatementEnd::refused(const Error& error, std::string_view routine) {
  StatementEnd end{.failed = true};
  wire::append_error(end.error, "ERROR", error, routine);
  return end;
}

// True, so that a handler may say `return start_errand(...)` of a message that is consumed; errands whose
// message comes again have to return false.
bool Session::start_errand(Errand errand) {
  const bool again = errand.kind == Errand::kAskNames || errand.kind == Errand::kRefreshCatalog ||
                     errand.kind == Errand::kHold || errand.kind == Errand::kEndImplicit ||
                     errand.kind == Errand::kDescribe || errand.kind == Errand::kRepeat;
  errand_ = std::move(errand);
  blocked_ = Blocked::kOnErrand;
  return !again;
}

io::Task<> Session::run_errand() {
  Errand errand = std::exchange(errand_, {});
  canceled_ = deadlocked_ = false;
  client_.want(false, false);
  put_away();
  switch (errand.kind) {
    case Errand::kNone:
    case Errand::kLetGo: break;
    case Errand::kScript: {
      auto running = run_script(std::move(errand.text));
      co_await std::move(running);
      break;
    }
    case Errand::kEndImplicit: {
      auto dropping = drop_portals();
      co_await std::move(dropping);
      if (!txn_.implicit) break;
      auto ending = end_implicit();
      const StatementEnd ended = co_await std::move(ending);
      if (ended.failed) to_client_.compose() += ended.error;
      break;
    }
    case Errand::kAskNames: {
      auto asking = ask_names();
      co_await std::move(asking);
      names_asked_ = true;
      break;
    }
    case Errand::kRefreshCatalog: {
      auto refreshing = refresh_catalog();
      co_await std::move(refreshing);
      break;
    }
    case Errand::kHold: {
      auto holding = hold(std::move(errand.text), worker_.routing().version, hold_deadline());
      co_await std::move(holding);
      break;
    }
    case Errand::kRepeat: {
      auto repeating = repeat_unit();
      co_await std::move(repeating);
      break;
    }
    case Errand::kDescribe: {
      auto describing = describe_statement(describing_);
      co_await std::move(describing);
      break;
    }
    case Errand::kExecute: {
      auto executing = execute_portal(std::move(errand.text), errand.max_rows);
      co_await std::move(executing);
      break;
    }
    case Errand::kClosePortal: {
      auto closing = drop_portal(std::move(errand.text));
      co_await std::move(closing);
      wire::append_empty(to_client_.compose(), wire::server::kCloseComplete);
      break;
    }
    case Errand::kDropPortal: {
      auto dropping = drop_portal(std::move(errand.text));
      co_await std::move(dropping);
      break;
    }
  }
  plan_ends();
  checks_ = false;
  if (has_to_let_go()) {
    auto letting_go = let_go();
    co_await std::move(letting_go);
  }
  if (!txn_.open) {
    auto looking = look_at_ended();
    co_await std::move(looking);
    release_places();
  }
  if (look_effects_ != 0) {
    // The statement may have left something in its session there. What was set elsewhere since comes first, or
    // the look would take it to be gone.
    if (auto place = place_at(look_at_); place && *place != nullptr) {
      auto catching_up = catch_up(*place);
      if (const Status caught = co_await std::move(catching_up); !caught) (*place)->lease->broken = true;
    }
    if (take_up(look_at_)) note_execution(look_effects_);
    look_effects_ = 0;
  }
  if (blocked_ == Blocked::kOnErrand) blocked_ = Blocked::kNo;
  unfed_ = !in_.empty();
}

// ---- connections of an errand ----

Result<Place*> Session::place_at(ShardId shard) {
  for (Place& place : away_) {
    if (place.shard == shard) return &place;
  }
  return nullptr;
}

// The session's connection to a shard, taken from its pool when there is none yet.
io::Task<Result<Place*>> Session::join(ShardId shard) {
  KG_CO_TRY(Place * held, place_at(shard));
  if (held != nullptr) {
    auto catching_up = catch_up(held);
    KG_CO_CHECK(co_await std::move(catching_up));
    co_return held;
  }
  if (txn_.whole) co_return fail(joins_too_late(shard));
  if (txn_.sets_here) co_return fail(lacks_settings(shard));
  KG_CO_TRY(executor::BackendPool * pool, pool_of(shard));
  auto acquiring = acquire(pool, {});
  auto acquired = co_await std::move(acquiring);
  if (!acquired) co_return fail(std::move(acquired).error());
  away_.push_back({shard, pool, std::move(*acquired), pins_ & executor::kPinMode, false, false});
  co_return &away_.back();
}

// Any connection: of the transaction, when there is one.
io::Task<Result<Place*>> Session::join_any() {
  for (const Place& place : away_) {
    if (!place.begun && txn_.open) continue;
    auto joining = join(place.shard);
    co_return co_await std::move(joining);
  }
  auto joining = join(home());
  auto joined = co_await std::move(joining);
  co_return joined;
}

// What has to run on a shard before the transaction's next statement does.
std::vector<std::string> Session::opening(Place& place, bool writes) {
  std::vector<std::string> before;
  if (!txn_.open) return before;
  if (!place.begun) {
    before.push_back(txn_.begin);
    before.insert(before.end(), txn_.prelude.begin(), txn_.prelude.end());
    if (checks_) before.push_back(check_statement());
    place.begun = true;
  }
  place.wrote |= writes;
  return before;
}

void Session::cancel_at(executor::Backend& backend) {
  for (Place& place : away_) {
    if (place.lease.get() == &backend) worker_.send_cancel(*place.pool, backend, key_);
  }
}

// ---- simple queries ----

io::Task<> Session::run_script(std::string text) {
  const std::vector<parser::Range> statements = parser::split_statements(text, standard_strings());
  const bool several = statements.size() > 1;
  bool failed = false;
  unnamed_.valid = false;
  for (const parser::Range statement : statements) {
    auto running = run_of_script(&text, statement, several);
    StatementEnd end = co_await std::move(running);
    if (ended_) co_return;
    if (end.failed) {
      to_client_.compose() += end.error;
      failed = true;
      if (txn_.open) txn_.failed = true;
      break;
    }
    if (!end.tag.empty()) wire::append_command_complete(to_client_.compose(), end.tag);
  }
  if (txn_.implicit) {
    if (failed) txn_.failed = true;
    auto ending = end_implicit();
    const StatementEnd ended = co_await std::move(ending);
    if (ended.failed) to_client_.compose() += ended.error;
  }
  wire::append_ready_for_query(to_client_.compose(), status());
}

io::Task<StatementEnd> Session::run_of_script(const std::string* text, parser::Range statement, bool several) {
  // Names mean what the statements before have made of them.
  const std::string own(text->substr(statement.begin, statement.end - statement.begin));
  if (!names_are_known(own)) {
    auto asking = ask_names();
    co_await std::move(asking);
  }
  parser::Normaliser normal;
  bool unknown_names = false;
  refreshed_ = false;
  KnownRef known = look_up(*text, statement, normal, &unknown_names);
  if (must_read_catalog(*known, unknown_names)) {
    auto refreshing = refresh_catalog();
    co_await std::move(refreshing);
    known = look_up(*text, statement, normal, nullptr);
  }
  if (auto error = guard_refuses(*known)) co_return StatementEnd::refused(*error);
  if (known->kind == StatementKind::kTransaction) {
    auto running = run_transaction(known);
    StatementEnd end = co_await std::move(running);
    co_return end;
  }
  if (txn_.failed) co_return StatementEnd::refused(aborted());
  if (several && !txn_.open && known->kind != StatementKind::kOwn && known->kind != StatementKind::kTenant) {
    txn_ = {.open = true, .implicit = true, .begin = "BEGIN"};
    seen_ = {};
  }
  auto running = run_by_kind(known, text, statement, &normal);
  StatementEnd end = co_await std::move(running);
  auto ending = end_elsewhere(known, &end);
  co_await std::move(ending);
  co_return end;
}

io::Task<StatementEnd> Session::run_by_kind(KnownRef known, const std::string* text, parser::Range statement,
                                            parser::Normaliser* normal) {
  const std::string own(text->substr(statement.begin, statement.end - statement.begin));
  switch (known->kind) {
    case StatementKind::kUnknown:
      if (must_be_read()) {
        auto refusing = refuse_unread(own);
        StatementEnd end = co_await std::move(refusing);
        co_return end;
      }
      [[fallthrough]];
    case StatementKind::kCursor:
    case StatementKind::kTransaction: {
      auto running = run_anywhere(own, known);
      StatementEnd end = co_await std::move(running);
      co_return end;
    }
    case StatementKind::kTenant: co_return run_tenant(*known, true);
    case StatementKind::kSession: {
      auto running = run_session_statement(own, known);
      StatementEnd end = co_await std::move(running);
      if (!end.failed) note_guard_reset(*known);
      co_return end;
    }
    case StatementKind::kNamed: {
      if (named_passes(*known->tree)) {
        auto running = run_anywhere(own, known);
        StatementEnd end = co_await std::move(running);
        co_return end;
      }
      std::vector<std::int16_t> text_only;
      auto running = run_named(known, true, std::move(text_only));
      StatementEnd end = co_await std::move(running);
      co_return end;
    }
    case StatementKind::kOwn: {
      if (txn_.open && known->tree->get<parser::ShowOwn>() == nullptr) {
        co_return StatementEnd::refused(
            {.sqlstate = "25001",
             .message = "a change of the shard map cannot run inside a transaction block"});
      }
      auto running = run_own(own, true, {});
      StatementEnd end = co_await std::move(running);
      co_return end;
    }
    case StatementKind::kExplainRoute: co_return explain_route(*known, *normal, statement, {}, true);
    case StatementKind::kPlanned: break;
  }
  auto running = run_planned(known, text, statement, normal);
  StatementEnd end = co_await std::move(running);
  co_return end;
}

namespace {

void take_answering(const Answering& answering, Run* run) {
  run->bind.result_formats = answering.formats;
  run->rows_to = answering.rows_to;
}

}  // namespace

io::Task<StatementEnd> Session::run_planned(KnownRef known, const std::string* text, parser::Range statement,
                                            parser::Normaliser* normal, const Answering* answering) {
  std::optional<Deadline> until;
  std::string worked;
  int rounds = 0;
  for (;;) {
    const std::uint64_t version = worker_.routing().version;
    auto plan = plan_of(*known, *normal, statement.begin, {});
    if (!plan) {
      worker_.load().refused();
      co_return StatementEnd::refused(plan.error());
    }
    if (const auto* work = std::get_if<planner::WorkOut>(&*plan)) {
      if (++rounds > kWorkOutRounds) co_return StatementEnd::refused(not_worked_out());
      auto working = work_out(*work);
      auto done = co_await std::move(working);
      if (!done) co_return StatementEnd::refused(done.error());
      worked = std::move(*done);
      text = &worked;
      statement = {0, static_cast<std::uint32_t>(worked.size())};
      known = look_up(*text, statement, *normal, nullptr);
      if (known->kind != StatementKind::kPlanned) co_return StatementEnd::refused(not_worked_out());
      continue;
    }
    if (auto error = needs_block(*known)) co_return StatementEnd::refused(*error);
    const auto* held = std::get_if<planner::Hold>(&*plan);
    if (held == nullptr) {
      if (const auto* route = std::get_if<planner::Route>(&*plan)) note_cursor(*known->tree, route->shard);
      Run run{.plan = std::move(*plan),
              .text = text->substr(statement.begin, statement.end - statement.begin),
              .describe = answering == nullptr || answering->describe,
              .effects = known->effects,
              .on_map = true};
      if (answering != nullptr)
        take_answering(*answering, &run);
      else
        measure_plan(known, run.plan);
      auto running = run_plan(std::move(run));
      StatementEnd end = co_await std::move(running);
      if (!end.failed)
        note_called_settings(*known, text->substr(statement.begin, statement.end - statement.begin));
      defined_ |= !end.failed && executor::is_ddl(end.tag);
      if (!until) until = hold_deadline();
      auto waiting = wait_to_repeat(&end, version, *until);
      if (!co_await std::move(waiting)) co_return end;
    } else {
      auto holding = hold(held->shardlet, version, hold_deadline());
      co_await std::move(holding);
      if (backend_error_) co_return StatementEnd::refused(*std::exchange(backend_error_, std::nullopt));
    }
    known = look_up(*text, statement, *normal, nullptr);
  }
}

// The statement with what a PostgreSQL has worked out of it.
io::Task<Result<std::string>> Session::work_out(const planner::WorkOut& work) {
  // Lazily chosen: `co_await` within ?: is more than g++ 12 gets right.
  std::optional<io::Task<Result<Place*>>> joining;
  if (work.shard == 0)
    joining.emplace(join_any());
  else
    joining.emplace(join(work.shard));
  auto place = co_await std::move(*joining);
  if (!place) co_return fail(std::move(place).error());
  const auto before = opening(**place, false);
  std::string sql;
  for (const std::string& statement : before) sql.append(statement).append(";\n");
  // Queries of some of them each, because PostgreSQL reads a long UNION by recursion; in one string, which is
  // one transaction, so that all have the same now().
  for (std::size_t at = 0; at < work.expressions.size(); at += kWorkedOutInOneQuery) {
    const std::size_t end = std::min(at + kWorkedOutInOneQuery, work.expressions.size());
    planner::WorkOut part;
    part.expressions.assign(work.expressions.begin() + static_cast<std::ptrdiff_t>(at),
                            work.expressions.begin() + static_cast<std::ptrdiff_t>(end));
    sql.append(planner::query_of(part)).append(";\n");
  }
  const auto queries = static_cast<int>(work.expressions.size() / kWorkedOutInOneQuery) + 1;
  auto asking = executor::run_control_query((*place)->lease.get(), std::move(sql), &waiter_,
                                            Deadline::in(kControlTimeout * queries));
  auto rows = co_await std::move(asking);
  if (!rows) co_return fail(std::move(rows).error());
  if (rows->size() < work.expressions.size()) co_return fail(not_worked_out());
  rows->erase(rows->begin(), rows->end() - static_cast<std::ptrdiff_t>(work.expressions.size()));
  std::string text = planner::text_with(work, *rows);
  const auto is_array_with_null = [](const auto& row) {
    return may_have_null_elements(row.at(1).value_or(""));
  };
  if (std::ranges::any_of(*rows, is_array_with_null)) {
    auto looking = array_nulls_on((*place)->lease.get(), &waiter_);
    if (Status on = co_await std::move(looking); !on) co_return fail(std::move(on).error());
  }
  co_return text;
}

// The router's own transaction around what goes to several shards is none to the client.
std::optional<Error> Session::needs_block(const KnownStatement& known) const {
  if ((txn_.open && !txn_.implicit) || known.tree == nullptr || known.tree->get<parser::LockTable>() == nullptr)
    return std::nullopt;
  return Error{.sqlstate = "25P01", .message = "LOCK TABLE can only be used in transaction blocks"};
}

Error Session::not_worked_out() {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = "a value in this statement cannot be worked out before it is known which shards get it",
          .hint = "Give the value itself, as a literal or a parameter."};
}

// The statement with another text, of the same parameters.
PreparedTextRef Session::with_text(const PreparedText& prepared, std::string text) {
  auto made = std::make_shared<PreparedText>(prepared);
  made->text = std::move(text);
  made->range = {0, static_cast<std::uint32_t>(made->text.size())};
  made->known = nullptr;
  return made;
}

// A portal whose plan wants values worked out gets the statement that has them.
io::Task<Status> Session::work_out_portal(Portal* portal) {
  for (int round = 0; round < kWorkOutRounds && std::holds_alternative<planner::WorkOut>(portal->plan);
       ++round) {
    auto working = work_out(std::get<planner::WorkOut>(portal->plan));
    auto done = co_await std::move(working);
    if (!done) co_return fail(std::move(done).error());
    portal->statement = with_text(*portal->statement, std::move(*done));
    portal->version = 0;
    auto planning = plan_anew(portal);
    if (Status planned = co_await std::move(planning); !planned) co_return planned;
  }
  if (std::holds_alternative<planner::WorkOut>(portal->plan)) co_return fail(not_worked_out());
  co_return Status{};
}

// One statement, on one connection of the transaction or on the home shard.
io::Task<StatementEnd> Session::run_anywhere(std::string own, KnownRef known) {
  Run run{.plan = planner::Route{.shard = 0, .writes = true},
          .text = std::move(own),
          .describe = true,
          .effects = known->effects};
  if (known->tree != nullptr) std::get<planner::Route>(run.plan).shard = cursor_place(*known->tree);
  if (known->kind == StatementKind::kNamed) std::get<planner::Route>(run.plan).shard = home();
  auto running = run_plan(std::move(run));
  StatementEnd end = co_await std::move(running);
  co_return end;
}

Error Session::unread() {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = "the router cannot read this statement, and so cannot tell which shards it is for",
          .hint = "PostgreSQL can. Write it in another way, and report it."};
}

// Why it cannot be read PostgreSQL says, as a rule. It may not run what it can read all the same: where there
// are several shards, one would answer for all.
io::Task<StatementEnd> Session::refuse_unread(std::string own) {
  auto joining = join_any();
  auto place = co_await std::move(joining);
  if (!place) co_return StatementEnd::refused(place.error());
  auto opening_it = open_at(*place, false);
  if (Status opened = co_await std::move(opening_it); !opened) co_return StatementEnd::refused(opened.error());
  auto describing =
      executor::describe_on((*place)->lease.get(), std::move(own), {}, &waiter_, Deadline::in(kControlTimeout));
  auto described = co_await std::move(describing);
  co_return StatementEnd::refused(described ? unread() : described.error());
}

// SET and RESET on every part of the transaction; its own answer comes from one of them.
io::Task<StatementEnd> Session::run_session_statement(std::string own, KnownRef known) {
  std::vector<ShardId> parts;
  for (const Place& place : away_) {
    if (place.begun) parts.push_back(place.shard);
  }
  note_prelude(*known, own);
  const bool shows = known->tree->get<parser::Show>() != nullptr;
  Run run{.text = own, .describe = true, .effects = known->effects};
  if (parts.size() > 1 && !shows) {
    planner::FanOut all;
    all.merge.kind = planner::Merge::Kind::kOne;
    for (const ShardId shard : parts) all.tasks.push_back({shard, ""});
    run.plan = std::move(all);
  } else {
    run.plan = planner::Route{.shard = parts.empty() ? 0 : parts.front(), .writes = false};
  }
  if (txn_.open && !shows) txn_.prelude.pop_back();  // it runs now; who joins later gets it
  auto running = run_plan(std::move(run));
  StatementEnd end = co_await std::move(running);
  if (txn_.open && !shows && !end.failed) txn_.prelude.push_back(std::move(own));
  co_return end;
}

// ---- waiting ----

// What the names of the next statement mean. When no shard can say it, the statement is refused for that: with
// names that mean nothing, a sharded table would be taken for one of the home shard.
io::Task<> Session::ask_names() {
  names_missing_.reset();
  if (txn_.open && !txn_.queried && worker_.map()->shards().size() > 1) {
    // The question is a query, too.
    auto taking = take_one_snapshot();
    co_await std::move(taking);
    if (backend_error_) {
      names_missing_ = std::exchange(backend_error_, std::nullopt);
      co_return;
    }
  }
  for (int attempt = 0;; ++attempt) {
    auto joining = join_any();
    auto place = co_await std::move(joining);
    if (!place) {
      names_missing_ = std::move(place).error();
      co_return;
    }
    const auto before = opening(**place, false);
    std::string sql;
    for (const std::string& statement : before) sql.append(statement).append(";\n");
    sql +=
        "SELECT pg_catalog.current_setting('search_path'), current_user, "
        "pg_catalog.current_setting('kintsugi.shard_new_tables', true)";
    executor::Backend* const backend = (*place)->lease.get();
    auto asking = executor::run_control_query(backend, sql, &waiter_, Deadline::in(kControlTimeout));
    auto rows = co_await std::move(asking);
    if (!rows && backend->broken && !txn_.open && pins_ == 0 && attempt < kNamesAskedMax) {
      release_places();  // it had died in the pool
      continue;
    }
    if (!rows) {
      names_missing_ = std::move(rows).error();
      co_return;
    }
    names_known_ = true;
    search_path_now_ = rows->back()[0].value_or("");
    user_now_ = rows->back()[1].value_or("");
    names_ =
        names_with_changes(worker_.book().names(search_path_now_, user_now_, rows->back()[2].value_or("")));
    names_settings_ = settings_.get();
    co_return;
  }
}

}  // namespace kintsugi::frontend
