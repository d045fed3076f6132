// The extended query protocol: Parse, Bind, Describe, Execute, Close, Sync.
#include <algorithm>

#include "frontend/called_settings.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "frontend/statement_names.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {
namespace {

using executor::Expected;
namespace client = wire::client;
namespace server = wire::server;

std::string empty_message(char type) {
  std::string bytes;
  wire::append_empty(bytes, type);
  return bytes;
}

}  // namespace

bool Session::on_parse(const wire::Frame& frame) {
  auto message = wire::read_parse(frame.body);
  if (!message) {
    protocol_violation(message.error());
    return true;
  }
  give_up_unit();
  if (!lease_ && !routes() && adopt_known(*message)) return true;
  PreparedTextRef text;
  ShardId where = 0;
  if (routes()) {
    switch (route_parse(*message, &text, &where)) {
      case Handled::kBlocked: return false;
      case Handled::kRejected:
        if (message->statement.empty()) unnamed_.valid = false;
        return true;
      case Handled::kDone: return parse_by_router(*message, std::move(text));
      case Handled::kPass: break;
    }
  }
  switch (ensure_backend(where)) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_extended(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  StatementEffects effects = effects_of_parse(*message);
  if (const auto error = name_effects(effects)) {
    reject_extended(*error);
    return true;
  }
  if (auto error = misuses_own_setting(effects)) {
    reject_extended(*error);
    return true;
  }
  if (!effects.named.empty()) {
    if (!prepare_named(effects, false)) return false;
    note_custom_settings(effects);
    std::string bytes;
    wire::append_parse(bytes, message->statement, with_server_names(message->text, effects),
                       message->type_oids);
    const wire::Frame edited{frame.type, std::string_view(bytes).substr(wire::kHeaderBytes)};
    parse_unnamed(edited, *wire::read_parse(edited.body), effects.flags);
    lease_->out.compose();  // the edited bytes are ours and end here
    return true;
  }
  note_custom_settings(effects);
  if (message->statement.empty()) {
    parse_unnamed(frame, *message, effects.flags);
    unnamed_.plain = effects.none();
    unnamed_.prepared = std::move(text);
    return true;
  }
  return parse_named(*message, effects.flags, std::move(text));
}

// Most clients of the unnamed statement send one text again and again.
StatementEffects Session::effects_of_parse(const wire::ParseMessage& message) const {
  if (unnamed_.plain && unnamed_.text == message.text) return {};
  return effects_of(message.text);
}

// No shard hears of it: what it is has been understood here.
bool Session::parse_by_router(const wire::ParseMessage& message, PreparedTextRef text) {
  if (!relay_.idle()) {
    // An error before it would make PostgreSQL skip it.
    block_until_drained();
    return false;
  }
  if (message.statement.empty()) {
    note_unnamed(message, 0, std::move(text));
    unnamed_.by_router = true;
  } else {
    if (find_statement(message.statement) != nullptr) {
      reject_extended(
          {.sqlstate = "42P05",
           .message = "prepared statement \"" + std::string(message.statement) + "\" already exists"},
          "StorePreparedStatement");
      return true;
    }
    auto handle = std::make_shared<ClientStatement>();
    handle->statement = executor::intern_prepared(message.text, message.type_oids, search_path());
    handle->answered = true;
    handle->prepared = std::move(text);
    handle->by_router = true;
    statements_[std::string(message.statement)] = std::move(handle);
  }
  answer(empty_message(server::kParseComplete));
  return true;
}

// Outside a transaction, a statement that a shard has accepted and no DDL has touched since needs no connection
// to be accepted again. Besides the time: a client whose thread waits for this answer may be what holds the
// connections.
bool Session::adopt_known(const wire::ParseMessage& message) {
  if (message.statement.empty() || find_statement(message.statement) != nullptr) return false;
  const executor::PreparedRef statement =
      executor::find_prepared(message.text, message.type_oids, search_path());
  if (statement == nullptr) return false;
  executor::Accepted accepted = executor::last_accepted(*statement);
  if (accepted.generation != executor::schema_generation()) return false;
  const StatementEffects effects = effects_of(message.text);
  if (!effects.named.empty()) return false;
  note_custom_settings(effects);
  auto handle = std::make_shared<ClientStatement>();
  handle->statement = statement;
  handle->effects = effects.flags;
  handle->shape = accepted.shape;
  handle->types = std::move(accepted.types);
  handle->answered = true;
  statements_[std::string(message.statement)] = std::move(handle);
  wire::append_empty(to_client_.compose(), server::kParseComplete);
  return true;
}

void Session::parse_unnamed(const wire::Frame& frame, const wire::ParseMessage& message,
                            std::uint32_t effects) {
  note_unnamed(message, effects, nullptr);
  lease_->unnamed_owner = unnamed_.version;
  lease_->out.pass(frame.bytes());
  ++unsynced_;
  expect({.kind = Expected::kParse, .unnamed = unnamed_.version});
}

void Session::note_unnamed(const wire::ParseMessage& message, std::uint32_t effects, PreparedTextRef text) {
  unnamed_.valid = true;
  unnamed_.text.assign(message.text);
  unnamed_.type_oids.assign(message.type_oids);
  unnamed_.effects = effects;
  unnamed_.plain = false;
  unnamed_.version = ++worker_.last_unnamed_version;
  unnamed_.batch = batch_;
  unnamed_.prepared = std::move(text);
  unnamed_.by_router = false;
}

bool Session::parse_named(const wire::ParseMessage& message, std::uint32_t effects, PreparedTextRef text) {
  if (find_statement(message.statement) != nullptr) {
    if (!relay_.idle()) {
      // The Parse that took the name may be refused yet.
      block_until_drained();
      return false;
    }
    reject_extended({.sqlstate = "42P05",
                     .message = "prepared statement \"" + std::string(message.statement) + "\" already exists"},
                    "StorePreparedStatement");
    return true;
  }
  auto handle = std::make_shared<ClientStatement>();
  handle->statement = executor::intern_prepared(message.text, message.type_oids, search_path());
  handle->effects = effects;
  handle->batch = batch_;
  handle->prepared = std::move(text);
  const executor::PreparedStatement& statement = *handle->statement;
  auto* known = lease_->prepared.find(statement.id);
  if (known != nullptr && !known->confirmed && !relay_.idle()) {
    // It is under way in a pipeline that may have failed before it.
    block_until_drained();
    return false;
  }
  statements_[std::string(message.statement)] = handle;
  ++unsynced_;
  if (known != nullptr && known->generation == executor::schema_generation()) {
    handle->shape = known->shape;
    handle->types = known->types;
    expect({.kind = Expected::kParse,
            .from = Expected::kRouter,
            .handle = handle,
            .answer = empty_message(server::kParseComplete)});
    return true;
  }
  std::string& out = lease_->out.compose();
  wire::append_close(out, 'S', statement.server_name);
  expect({.kind = Expected::kClose, .from = Expected::kHidden});
  wire::append_parse(out, statement.server_name, statement.text, statement.type_oids);
  expect({.kind = Expected::kParse, .handle = handle});
  wire::append_describe(out, 'S', statement.server_name);
  expect({.kind = Expected::kDescribe, .from = Expected::kHidden, .handle = handle});
  lease_->prepared.add(handle->statement);
  const auto limit = static_cast<std::size_t>(std::max(worker_.pools().config().prepared_statements, 1));
  if (const auto oldest = lease_->prepared.oldest_beyond(limit + 1)) {
    wire::append_close(out, 'S', oldest->server_name);
    lease_->prepared.erase(oldest->id);
    expect({.kind = Expected::kClose, .from = Expected::kHidden});
  }
  return true;
}

// A pipeline before this one parses the unnamed statement, and whether it comes to that is not known yet.
// A Parse before an earlier Sync is still unanswered: whether its name exists is not known yet.
bool Session::is_uncertain(const ClientStatementRef& handle) const {
  return handle != nullptr && !handle->answered && !relay_.idle() && handle->batch != batch_;
}

bool Session::unnamed_is_uncertain() const {
  return !relay_.idle() && unnamed_.batch != batch_;
}

// The unnamed statement may have been made on another connection, and another client's may be here.
void Session::ensure_unnamed() {
  if (unnamed_.valid && lease_->unnamed_owner == unnamed_.version) return;
  if (unnamed_.valid) {
    wire::append_parse(lease_->out.compose(), "", unnamed_.text, unnamed_.type_oids);
    expect({.kind = Expected::kParse, .from = Expected::kHidden});
    lease_->unnamed_owner = unnamed_.version;
  } else if (lease_->unnamed_owner != 0) {
    wire::append_close(lease_->out.compose(), 'S', "");
    expect({.kind = Expected::kClose, .from = Expected::kHidden});
    lease_->unnamed_owner = 0;
  }
}

bool Session::on_bind(const wire::Frame& frame) {
  auto message = wire::read_bind(frame.body);
  if (!message) {
    protocol_violation(message.error());
    return true;
  }
  const ClientStatementRef handle = message->statement.empty() ? nullptr : find_statement(message->statement);
  const std::uint32_t effects = handle != nullptr            ? handle->effects
                                : message->statement.empty() ? unnamed_.effects
                                                             : 0;
  if (handle == nullptr && is_ours(message->statement)) {
    reject_extended(unknown_name(message->statement));
    return true;
  }
  if (message->statement.empty() ? unnamed_is_uncertain() : is_uncertain(handle)) {
    block_until_drained();
    return false;
  }
  if (const auto error = refuse_sequence_state(effects)) {
    reject_extended(*error);
    return true;
  }
  ShardId where = 0;
  bool writes = true, again = false;
  PreparedTextRef text;
  if (routes()) {
    text = handle != nullptr                              ? handle->prepared
           : message->statement.empty() && unnamed_.valid ? unnamed_.prepared
                                                          : nullptr;
    switch (route_bind(*message, text, &where, &writes, &again)) {
      case Handled::kBlocked: return false;
      case Handled::kRejected:
      case Handled::kDone: return true;
      case Handled::kPass: break;
    }
  }
  switch (ensure_backend(where)) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_extended(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  if (handle != nullptr) {
    if (!prepare_on_backend(handle, false)) return false;
    const auto* there = lease_->prepared.find(handle->statement->id);
    if (handle->shape == 0) handle->shape = there->shape;
    if (handle->types == nullptr) handle->types = there->types;
    if (handle->shape != there->shape && there->shape != 0) {
      // It was prepared here after the table had changed: PostgreSQL would have refused the client's older one.
      reject_extended({.sqlstate = std::string(sqlstate::kNotSupported),
                       .message = "cached plan must not change result type"},
                      "RevalidateCachedQuery");  // JDBC prepares again when it reads this name
      return true;
    }
    if (again) begin_unit(writes);
    wire::append_bind(lease_->out.compose(), message->portal, handle->statement->server_name, message->tail);
  } else {
    if (message->statement.empty()) ensure_unnamed();
    if (again) begin_unit(writes);
    lease_->out.pass(frame.bytes());
  }
  note_execution(text != nullptr ? effects | text->known->effects : effects);
  if (text != nullptr && text->known->kind == StatementKind::kSession) note_prelude(*text->known, text->text);
  if (text != nullptr && text->known->kind == StatementKind::kPlanned &&
      (text->known->effects & kCallsSetConfig) != 0) {
    const auto values = wire::read_bind_values(*message);
    note_called_settings(*text->known,
                         values ? with_values(text->text, parameters_of(*text, *values)) : text->text);
  }
  wrote_ |= writes;
  bound_read_ = again && text->known->tree->get<parser::Query>() != nullptr;
  bound_harmless_ = !writes;
  bound_portal_.assign(message->portal);
  if (!routes()) measured_.text.assign(handle != nullptr ? handle->statement->text : unnamed_.text);
  plan_begins();
  ++unsynced_;
  expect({.kind = Expected::kBind});
  return true;
}

bool Session::on_describe(const wire::Frame& frame) {
  auto message = wire::read_describe(frame.body);
  if (!message) {
    protocol_violation(message.error());
    return true;
  }
  if (message->kind == 'S' && is_ours(message->name) && find_statement(message->name) == nullptr) {
    reject_extended(unknown_name(message->name));
    return true;
  }
  if (message->kind == 'S' &&
      (message->name.empty() ? unnamed_is_uncertain() : is_uncertain(find_statement(message->name)))) {
    block_until_drained();
    return false;
  }
  ClientStatementRef handle;
  if (message->kind == 'S' && !message->name.empty()) handle = find_statement(message->name);
  if (message->kind == 'P') {
    if (Portal* portal = find_portal(message->name); portal != nullptr) {
      describe_portal(*portal);
      return true;
    }
  } else if (handle != nullptr ? handle->by_router
                               : message->name.empty() && unnamed_.valid && unnamed_.by_router) {
    describe_prepared(handle != nullptr ? *handle->prepared : *unnamed_.prepared);
    return true;
  }
  ShardId where = 0;
  if (routes() && message->kind == 'S') {
    const PreparedTextRef text = handle != nullptr ? handle->prepared : unnamed_.prepared;
    if (text != nullptr && (handle != nullptr || unnamed_.valid)) where = knows_it(*text);
  }
  switch (ensure_backend(where)) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_extended(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  if (handle != nullptr) {
    if (!prepare_on_backend(handle, false)) return false;
    wire::append_describe(lease_->out.compose(), 'S', handle->statement->server_name);
  } else {
    if (message->kind == 'S' && message->name.empty()) ensure_unnamed();
    lease_->out.pass(frame.bytes());
  }
  ++unsynced_;
  expect({.kind = Expected::kDescribe, .handle = handle});
  return true;
}

bool Session::on_execute(const wire::Frame& frame) {
  auto message = wire::read_execute(frame.body);
  if (!message) {
    protocol_violation(message.error());
    return true;
  }
  if (find_portal(message->portal) != nullptr) {
    if (lease_ && !leave_place()) return false;
    const auto max_rows = message->max_rows > 0 ? static_cast<std::uint64_t>(message->max_rows) : 0;
    const auto next = wire::client::peek(behind_, 1 << 20);
    batch_goes_on_ = !next || !next->has_value() || (*next)->type != client::kSync;
    return start_errand({.kind = Errand::kExecute, .text = std::string(message->portal), .max_rows = max_rows});
  }
  switch (ensure_backend(0)) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_extended(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  lease_->out.pass(frame.bytes());
  ++unsynced_;
  executed_ = true;
  untouched_ = false;
  const bool last = message->portal == bound_portal_;
  expect({.kind = Expected::kExecute, .reads = last && bound_read_, .harmless = last && bound_harmless_});
  return true;
}

bool Session::on_close(const wire::Frame& frame) {
  auto message = wire::read_close(frame.body);
  if (!message) {
    protocol_violation(message.error());
    return true;
  }
  const bool statement = message->kind == 'S';
  if (Portal* portal = statement ? nullptr : find_portal(message->name); portal != nullptr) {
    if (portal->fan != nullptr) {
      if (lease_ && !leave_place()) return false;
      return start_errand({.kind = Errand::kClosePortal, .text = std::string(message->name)});
    }
    if (!relay_.idle()) {
      block_until_drained();
      return false;
    }
    portals_.erase(std::string(message->name));
    answer(empty_message(server::kCloseComplete));
    return true;
  }
  const bool known = statement && !message->name.empty() && find_statement(message->name) != nullptr;
  if (statement && !relay_.idle() && (known || message->name.empty())) {
    // An error before it would make PostgreSQL skip it.
    block_until_drained();
    return false;
  }
  if (known) statements_.erase(std::string(message->name));
  if (statement && message->name.empty()) unnamed_.valid = false;
  if (known || !lease_ || (statement && is_ours(message->name))) {
    // Shared statements stay prepared for the others; without a connection there is nothing else to close.
    expect(
        {.kind = Expected::kClose, .from = Expected::kRouter, .answer = empty_message(server::kCloseComplete)});
    return true;
  }
  if (statement && message->name.empty()) lease_->unnamed_owner = 0;
  lease_->out.pass(frame.bytes());
  ++unsynced_;
  expect({.kind = Expected::kClose});
  return true;
}

bool Session::on_sync(const wire::Frame& frame) {
  if (lease_ && relay_.swallows_sync()) {
    relay_.sync_swallowed();
    lease_->out.pass(frame.bytes());
    return true;
  }
  if (routes() && !settle_batch()) return false;
  ++batch_;
  local_skip_ = false;
  unsynced_ = 0;
  executed_ = false;
  if (!lease_) {
    wire::append_ready_for_query(to_client_.compose(), status());
    return true;
  }
  relay_.sync_sent();
  lease_->out.pass(frame.bytes());
  expect({.kind = Expected::kSync});
  return true;
}

// What the router has begun since the last Sync ends with this one.
bool Session::settle_batch() {
  const bool ends_here = !txn_.open || txn_.implicit;
  const bool fans = ends_here && std::ranges::any_of(portals_, [](const auto& portal) {
                      return portal.second->fan != nullptr;
                    });
  if (txn_.implicit || fans || (txn_.failed && lease_)) {
    if (txn_.implicit && local_skip_) txn_.failed = true;
    if (lease_ && !leave_place()) return false;
    if (txn_.implicit || fans) {
      start_errand({.kind = Errand::kEndImplicit});
      return false;
    }
  }
  if (ends_here) portals_.clear();
  return true;
}

bool Session::on_flush(const wire::Frame& frame) {
  if (!executed_) give_up_unit();  // the client waits for what comes before the first Execute
  return pass_if_leased(frame);
}

bool Session::on_copy_end(const wire::Frame& frame) {
  give_up_unit();
  if (lease_ && !relay_.idle()) relay_.copy_end_sent();
  return pass_if_leased(frame);
}

bool Session::pass_if_leased(const wire::Frame& frame) {
  if (lease_ && !relay_.idle()) lease_->out.pass(frame.bytes());
  return true;
}

bool Session::on_terminate() {
  if (!relay_.idle()) {
    if (relay_.in_copy() || !relay_.will_end()) {
      ended_ = true;
      return true;
    }
    block_until_drained();
    return false;
  }
  ended_ = true;
  return true;
}

void Session::reject_extended(const Error& error, std::string_view routine) {
  worker_.load().refused();
  if (!lease_) {
    wire::append_error(to_client_.compose(), "ERROR", error);
    if (txn_.open) txn_.failed = true;
    local_skip_ = true;
    return;
  }
  // In its turn, after the answers that are still to come, and with the transaction failing in PostgreSQL too.
  Expected poison{.kind = Expected::kParse, .from = Expected::kPoison};
  wire::append_error(poison.answer, "ERROR", error, routine);
  wire::append_parse(lease_->out.compose(), "", kRefusedText, {});
  lease_->unnamed_owner = executor::Backend::kUnknownOwner;
  ++unsynced_;
  expect(std::move(poison));
}

}  // namespace kintsugi::frontend
