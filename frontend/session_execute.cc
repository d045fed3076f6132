// Portals that the router runs itself, as far as an Execute asks for.
#include <utility>

#include "frontend/called_settings.h"
#include "frontend/made_types.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "wire/server_messages.h"

namespace kintsugi::frontend {
namespace {

namespace server = wire::server;

// What is left over of a portal whose rows cannot wait on the shards. More of them are refused.
constexpr std::size_t kMostLeftOver = 64ULL << 20;

Error too_many_left_over() {
  return {
      .sqlstate = "54000",
      .message = "the rows of this query cannot be fetched in portions: they are more than " +
                 std::to_string(kMostLeftOver >> 20) + " MB",
      .hint = "Fetch them all at once (no fetch size, no row limit of the driver), or say LIMIT in the query."};
}

Error cannot_be_run(std::string_view name) {
  return {.sqlstate = "55000", .message = "portal \"" + std::string(name) + "\" cannot be run"};
}

// The number at the end of a tag counts what this Execute has given.
std::string tag_for(const std::string& tag, std::uint64_t rows) {
  const std::size_t at = tag.find_last_not_of("0123456789");
  return at + 1 == tag.size() ? tag : tag.substr(0, at + 1) + std::to_string(rows);
}

}  // namespace

io::Task<> Session::execute_portal(std::string name, std::uint64_t max_rows) {
  Portal* portal = find_portal(name);
  StatementEnd end;
  if (portal == nullptr) {
    end = StatementEnd::refused({.sqlstate = "34000", .message = "portal \"" + name + "\" does not exist"});
  } else {
    const KnownRef known = portal->known;
    auto advancing = advance_portal(name, portal, max_rows);
    end = co_await std::move(advancing);
    auto ending = end_elsewhere(known, &end);
    co_await std::move(ending);
  }
  if (end.failed) {
    to_client_.compose() += end.error;
    if (txn_.open) txn_.failed = true;
    local_skip_ = true;
    co_return;
  }
  if (end.suspended) {
    wire::append_empty(to_client_.compose(), server::kPortalSuspended);
  } else if (!end.tag.empty()) {
    wire::append_command_complete(to_client_.compose(), end.tag);
  }
}

io::Task<StatementEnd> Session::advance_portal(std::string name, Portal* portal, std::uint64_t max_rows) {
  const KnownRef known = portal->known;
  if (known->kind == StatementKind::kTransaction) {
    if (std::exchange(portal->complete, true)) co_return StatementEnd::refused(cannot_be_run(name));
    auto running = run_transaction(known);
    StatementEnd end = co_await std::move(running);
    co_return end;
  }
  if (status_everywhere() == wire::TransactionStatus::kFailed) co_return StatementEnd::refused(aborted());
  switch (known->kind) {
    case StatementKind::kSession: {
      auto running = run_session_statement(portal->statement->text, known);
      StatementEnd end = co_await std::move(running);
      if (!end.failed) note_guard_reset(*known);
      co_return end;
    }
    case StatementKind::kCursor: {
      auto running = run_anywhere(portal->statement->text, known);
      StatementEnd end = co_await std::move(running);
      co_return end;
    }
    case StatementKind::kTenant: co_return run_tenant(*known, false);
    case StatementKind::kOwn: {
      if (txn_.open && known->tree->get<parser::ShowOwn>() == nullptr) {
        co_return StatementEnd::refused(
            {.sqlstate = "25001",
             .message = "a change of the shard map cannot run inside a transaction block"});
      }
      auto running = run_own(portal->statement->text, false, portal->bind.result_formats);
      StatementEnd end = co_await std::move(running);
      co_return end;
    }
    case StatementKind::kExplainRoute:
      co_return explain_route(*known, portal->statement->normal, portal->statement->range,
                              parameters_of(*portal->statement, portal->bind), false);
    case StatementKind::kNamed: {
      auto running = run_named(known, false, portal->bind.result_formats);
      StatementEnd end = co_await std::move(running);
      co_return end;
    }
    default: break;
  }
  if (portal->left_over) co_return give_left_over(portal, max_rows);
  if (portal->complete) {
    if (rows_described(*known, *portal->statement).empty())
      co_return StatementEnd::refused(cannot_be_run(name));
    co_return StatementEnd::complete("SELECT 0");
  }
  if (portal->fan == nullptr) {
    auto planning = plan_anew(portal);
    if (Status planned = co_await std::move(planning); !planned)
      co_return StatementEnd::refused(planned.error());
    if (std::holds_alternative<planner::WorkOut>(portal->plan)) {
      auto working = work_out_portal(portal);
      if (Status worked = co_await std::move(working); !worked) co_return StatementEnd::refused(worked.error());
    }
  }
  auto* fan_out = std::get_if<planner::FanOut>(&portal->plan);
  if (portal->fan == nullptr && (fan_out == nullptr || fan_out->writes || max_rows == 0)) {
    portal->complete = true;
    if (max_rows > 0 && !rows_described(*known, *portal->statement).empty())
      portal->left_over = std::make_unique<LeftOver>();
    auto running = run_portal(portal);
    StatementEnd end = co_await std::move(running);
    if (portal->left_over == nullptr) co_return end;
    if (end.failed || end.cut) {
      portal->left_over = nullptr;
      if (end.cut) end = StatementEnd::refused(too_many_left_over());
      co_return end;
    }
    portal->left_over->tag = end.tag;
    co_return give_left_over(portal, max_rows);
  }
  executor::FanStep step;
  if (portal->fan == nullptr) {
    portal->run = {.text = portal->statement->text,
                   .types = portal->statement->types,
                   .bind = portal->bind,
                   .suspendable = true,
                   .effects = known->effects};
    if (Status spelt =
            spell_made_types(&portal->plan, &portal->run, *worker_.routing().catalog, standard_strings());
        !spelt)
      co_return StatementEnd::refused(spelt.error());
    checks_ = careful();
    if (checks_ && !txn_.open)
      txn_ = {
          .open = true, .implicit = true, .begin = "BEGIN ISOLATION LEVEL REPEATABLE READ", .queried = true};
    plan_begins();
    auto beginning = begin_fan(*fan_out, &portal->run, max_rows, &portal->fan);
    auto begun = co_await std::move(beginning);
    if (!begun) co_return StatementEnd::refused(begun.error());
    step = std::move(*begun);
  } else {
    auto advancing = portal->fan->advance(max_rows);
    step = co_await std::move(advancing);
  }
  if (std::exchange(portal->began, true) == false) {
    // The snapshots of all its rows are taken.
    if (step.kind != executor::FanStep::kFailed && lease_has_run_out()) {
      auto asking = shards_moved_on(false);
      if (std::optional<Error> why = co_await std::move(asking)) {
        auto stopping = portal->fan->stop();
        co_await std::move(stopping);
        step = {.kind = executor::FanStep::kFailed};
        wire::append_error(step.error, "ERROR", *why);
      }
    }
    checks_ = false;
    plan_ends();
  }
  if (step.kind != executor::FanStep::kSuspended) {
    portal->fan.reset();
    portal->complete = true;
  }
  co_return end_of(step);
}

// So many of the rows that are kept.
StatementEnd Session::give_left_over(Portal* portal, std::uint64_t max_rows) {
  LeftOver& kept = *portal->left_over;
  const std::string_view all = kept.messages.compose();
  std::uint64_t rows = 0;
  while (kept.given < all.size() && (max_rows == 0 || rows < max_rows)) {
    const std::string_view rest = all.substr(kept.given);
    const std::size_t size = 1 + wire::load_u32(rest.data() + 1);
    to_client_.compose() += rest.substr(0, size);
    kept.given += size;
    if (rest.front() == server::kDataRow) ++rows;
  }
  if (max_rows > 0 && rows == max_rows) return {.suspended = true};
  return StatementEnd::complete(tag_for(kept.tag, rows));
}

// A portal's plan is made with its Bind, and another map may have come since.
io::Task<Status> Session::plan_anew(Portal* portal) {
  while (plan_is_old(portal->version)) {
    PreparedText& prepared = *portal->statement;
    portal->version = worker_.routing().version;
    const KnownStatement& known = known_of(prepared, nullptr);
    if (known.kind != StatementKind::kPlanned) co_return Status{};
    KG_CO_TRY(planner::Plan plan, plan_of_bind(prepared, known, {.tail = portal->bind_tail}));
    portal->known = prepared.known;
    if (const auto* held = std::get_if<planner::Hold>(&plan); held != nullptr) {
      auto holding = hold(held->shardlet, portal->version, hold_deadline());
      co_await std::move(holding);
      if (backend_error_) co_return fail(*std::exchange(backend_error_, std::nullopt));
      portal->version = 0;
      continue;
    }
    portal->plan = std::move(plan);
  }
  co_return Status{};
}

// All of its rows at once.
io::Task<StatementEnd> Session::run_portal(Portal* portal) {
  if (auto error = needs_block(*portal->known)) co_return StatementEnd::refused(*error);
  // What runs between two Syncs is one transaction, also what comes behind this.
  if (!txn_.open && batch_goes_on_ && planner::writes(portal->plan))
    txn_ = {.open = true, .implicit = true, .begin = "BEGIN", .queried = true};
  const Deadline until = hold_deadline();
  for (;;) {
    Run run{.plan = portal->plan,
            .text = portal->statement->text,
            .types = portal->statement->types,
            .bind = portal->bind,
            .effects = portal->known->effects,
            .on_map = portal->known->kind == StatementKind::kPlanned};
    if (portal->left_over) {
      portal->left_over->messages.clear();
      run.rows_to = &portal->left_over->messages;
      if (!planner::writes(portal->plan)) run.most_kept = kMostLeftOver;  // a write is not stopped in its midst
    }
    measure_plan(portal->known, run.plan);
    auto running = run_plan(std::move(run));
    StatementEnd end = co_await std::move(running);
    if (!end.failed && (portal->known->effects & kCallsSetConfig) != 0)
      note_called_settings(*portal->known, with_values(portal->statement->text,
                                                       parameters_of(*portal->statement, portal->bind)));
    auto waiting = wait_to_repeat(&end, portal->version, until);
    if (!co_await std::move(waiting)) co_return end;
    auto planning = plan_anew(portal);
    if (Status planned = co_await std::move(planning); !planned)
      co_return StatementEnd::refused(planned.error());
  }
}

io::Task<> Session::drop_portal(std::string name) {
  const auto at = portals_.find(name);
  if (at == portals_.end()) co_return;
  const std::unique_ptr<Portal> portal = std::move(at->second);
  portals_.erase(at);
  if (portal->fan == nullptr) co_return;
  auto stopping = portal->fan->stop();
  co_await std::move(stopping);
}

// Portals live as long as their transaction.
io::Task<> Session::drop_portals() {
  for (auto& [name, portal] : portals_) {
    if (portal->fan == nullptr) continue;
    auto stopping = portal->fan->stop();
    co_await std::move(stopping);
  }
  portals_.clear();
}

}  // namespace kintsugi::frontend
