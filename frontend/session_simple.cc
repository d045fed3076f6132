// The simple query protocol: one message, one answer up to ReadyForQuery.
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "frontend/statement_names.h"
#include "parser/split_statements.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {

using executor::Expected;
using planner::Plan;
namespace server = wire::server;

bool Session::on_query(const wire::Frame& frame) {
  auto text = wire::read_query(frame.body);
  if (!text) {
    protocol_violation(text.error());
    return true;
  }
  if (!relay_.idle()) {
    block_until_drained();
    return false;
  }
  if (std::exchange(preparation_failed_, false)) return true;  // the client has had the error and the end
  if (routes()) return route_query(frame, *text);
  StatementEffects effects = effects_of(*text);
  if (effects.may_be_own && start_commands(*text)) return true;
  return pass_query(frame, *text, 0, Passed(), std::move(effects));
}

// One statement whose place is known goes by as bytes. Everything else is an errand.
bool Session::route_query(const wire::Frame& frame, std::string_view text) {
  if (backend_error_) {
    reject_query(*std::exchange(backend_error_, std::nullopt));
    return true;
  }
  if (unsynced_ > 0 && lease_) {  // ends what the extended protocol has begun
    if (guarded_ == nullptr) return pass_query(frame, text, 0);
    end_with(sqlstate::kTenantForbidden,
             "a simple query in the middle of an extended one, in a guarded session");
    return true;
  }
  if (txn_.implicit) return start_errand({.kind = Errand::kEndImplicit});
  if (guarded_ != nullptr) {
    if (auto error = guard_misreads()) {
      reject_query(*error);
      return true;
    }
  } else if (status() == wire::TransactionStatus::kFailed && lease_ && !ends_failure(text)) {
    return pass_query(frame, text, 0);  // PostgreSQL has the words for it
  }
  parser::StatementSplitter splitter(text, standard_strings());
  parser::Range statement, another;
  if (!splitter.next(statement)) {
    unnamed_.valid = false;
    wire::append_empty(to_client_.compose(), server::kEmptyQuery);
    wire::append_ready_for_query(to_client_.compose(), status());
    return true;
  }
  if (!names_are_known(text)) return start_errand({.kind = Errand::kAskNames});
  if (splitter.next(another)) return route_script(frame, text);

  bool unknown_names = false;
  parser::Normaliser& normal = worker_.book().scratch;
  const KnownRef known = look_up(text, statement, normal, &unknown_names);
  if (must_read_catalog(*known, unknown_names)) return start_errand({.kind = Errand::kRefreshCatalog});
  if (auto error = guard_refuses(*known)) {
    reject_query(*error);
    return true;
  }
  if (ends_elsewhere(*known)) return start_errand({.kind = Errand::kScript, .text = std::string(text)});
  switch (known->kind) {
    case StatementKind::kUnknown:
      if (!must_be_read()) return pass_query(frame, text, 0, {.known = known.get()});
      break;
    case StatementKind::kTransaction:
      if (transaction_passes(*known->tree)) {
        if (!pass_query(frame, text, txn_.open ? here_ : home(), {.known = known.get()})) return false;
        measured_.known = known;
        return true;
      }
      break;
    case StatementKind::kSession:
      if (!txn_.failed && begun_places() <= (begun_ ? 1 : 0)) {
        if (!pass_query(frame, text, 0)) return false;
        note_guard_reset(*known);
        note_prelude(*known, text);
        return true;
      }
      break;
    case StatementKind::kCursor:
      if (!txn_.failed) return pass_query(frame, text, cursor_place(*known->tree));
      break;
    case StatementKind::kNamed:
      if (!txn_.failed && named_passes(*known->tree)) return pass_query(frame, text, home());
      break;
    case StatementKind::kTenant:
    case StatementKind::kOwn:
    case StatementKind::kExplainRoute: break;
    case StatementKind::kPlanned: {
      if (txn_.failed || careful()) break;
      auto plan = plan_of(*known, normal, statement.begin, {});
      if (!plan) {
        reject_query(plan.error());
        return true;
      }
      if (const auto* route = std::get_if<planner::Route>(&*plan); route != nullptr && route->text.empty()) {
        const bool again = known->tree->get<parser::Copy>() == nullptr;
        const bool reads = known->tree->get<parser::Query>() != nullptr;
        if (!pass_query(frame, text, place_of(*route, known->effects),
                        {.known = known.get(), .again = again, .writes = route->writes, .reads = reads}))
          return false;
        measure_route(known, *route);
        note_called_settings(*known, text);
        wrote_ |= route->writes;
        note_cursor(*known->tree, here_);
        return true;
      }
      if (const auto* hold = std::get_if<planner::Hold>(&*plan)) {
        return start_errand({.kind = Errand::kHold, .text = hold->shardlet});
      }
      break;
    }
  }
  return start_errand({.kind = Errand::kScript, .text = std::string(text)});
}

// Several statements in one message are one transaction. When one shard has all of them it may have the text.
bool Session::route_script(const wire::Frame& frame, std::string_view text) {
  ShardId where = 0;
  bool passes = guarded_ == nullptr && !txn_.failed && !careful() && begun_places() <= (begun_ ? 1 : 0);
  bool wrote = false, sets = false, reads = false;
  std::uint32_t effects = 0;
  for (const parser::Range statement : parser::split_statements(text, standard_strings())) {
    if (!passes) break;
    parser::Normaliser& normal = worker_.book().scratch;
    const KnownRef known = look_up(text, statement, normal, nullptr);
    if (known->kind == StatementKind::kUnknown) {  // PostgreSQL parses all before it runs any
      passes = passes && !must_be_read();
      break;
    }
    if (known->kind == StatementKind::kSession && !txn_.open) {
      if (changes_names(*known)) {  // what the statements behind it name is not known before it has run
        passes = false;
        break;
      }
      sets = true;
      continue;
    }
    passes = false;
    if (known->kind != StatementKind::kPlanned || known->refusal) break;
    auto plan = plan_of(*known, normal, statement.begin, {});
    if (!plan) break;
    const auto* route = std::get_if<planner::Route>(&*plan);
    if (route == nullptr || !route->text.empty()) break;
    const ShardId place = place_of(*route, known->effects);
    effects |= known->effects;
    if (place != 0 && where != 0 && place != where) break;
    if (place != 0) where = place;
    wrote |= route->writes;
    reads |= known->tree->get<parser::Query>() != nullptr;
    passes = true;
  }
  if (!passes) return start_errand({.kind = Errand::kScript, .text = std::string(text)});
  if (!pass_query(frame, text, where, {.effects = effects, .again = !sets, .writes = wrote, .reads = reads}))
    return false;
  if (sets) names_known_ = false;
  wrote_ |= wrote;
  return true;
}

// Each word is looked at once for all statements of a form, not once for each that is sent.
bool Session::pass_query(const wire::Frame& frame, std::string_view text, ShardId where, Passed passed) {
  StatementEffects effects;
  if (passed.known == nullptr || passed.known->rescan) effects = effects_of(text);
  effects.flags |= passed.known != nullptr ? passed.known->effects : passed.effects;
  return pass_query(frame, text, where, passed, std::move(effects));
}

// The client's bytes go to that shard and its answer comes back.
bool Session::pass_query(const wire::Frame& frame, std::string_view text, ShardId where, const Passed& passed,
                         StatementEffects effects) {
  if (const auto error = refuse_sequence_state(effects.flags)) {
    reject_query(*error);
    return true;
  }
  if (const auto error = name_effects(effects)) {
    reject_query(*error);
    return true;
  }
  if (auto error = misuses_own_setting(effects)) {
    reject_query(*error);
    return true;
  }
  switch (ensure_backend(where)) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_query(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  if (passed.again && effects.named.empty() && unsynced_ == 0) begin_unit(passed.writes);
  untouched_ = false;
  if (!effects.named.empty() && lease_->status != wire::TransactionStatus::kFailed) {
    if (!prepare_named(effects, true)) return false;
    wire::append_query(lease_->out.compose(), with_server_names(text, effects));
  } else {
    lease_->out.pass(frame.bytes());
  }
  note_custom_settings(effects);
  note_execution(effects.flags);
  if (!routes()) measured_.text.assign(text);
  plan_begins();
  unnamed_.valid = false;
  lease_->unnamed_owner = 0;
  unsynced_ = 0;  // its end is the end of what the extended protocol has begun as well
  executed_ = false;
  expect({.kind = Expected::kQuery, .reads = passed.reads, .harmless = !passed.writes});
  return true;
}

void Session::reject_query(const Error& error) {
  worker_.load().refused();
  if (lease_ && lease_->status != wire::TransactionStatus::kIdle) {
    // The transaction has to fail as well, and only PostgreSQL can make it fail.
    Expected poison{.kind = Expected::kQuery, .from = Expected::kPoison};
    wire::append_error(poison.answer, "ERROR", error);
    wire::append_query(lease_->out.compose(), kRefusedText);
    expect(std::move(poison));
    return;
  }
  wire::append_error(to_client_.compose(), "ERROR", error);
  if (txn_.open) txn_.failed = true;
  wire::append_ready_for_query(to_client_.compose(), status());
}

bool Session::on_function_call() {
  if (!relay_.idle()) {
    block_until_drained();
    return false;
  }
  reject_query({.sqlstate = std::string(sqlstate::kNotSupported),
                .message = "the function call protocol is not supported",
                .hint = "Call the function with SELECT."});
  return true;
}

}  // namespace kintsugi::frontend
