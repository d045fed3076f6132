// What each message of a client does. Every handler either consumes its message or leaves everything as it was
// and says what it waits for; then the same message comes again.
#include <algorithm>

#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {
namespace {

using executor::ClientStatement;
using executor::ClientStatementRef;
using executor::Expected;
namespace client = wire::client;
namespace server = wire::server;

constexpr std::size_t kMaxOutstanding = 2048;  // answers of a pipeline, before its messages wait
// Any text that PostgreSQL refuses to parse: it fails the transaction as the client's own statement should.
constexpr std::string_view kRefusedText = "kintsugi refuses the client's statement";

// The names under which the router keeps statements on the shards; no client has them.
bool is_ours(std::string_view name) {
  return name.starts_with("kg_");
}

Error unknown_name(std::string_view name) {
  return {.sqlstate = "26000", .message = "prepared statement \"" + std::string(name) + "\" does not exist"};
}

// What has no business between the beginning of a COPY FROM STDIN and its end.
bool breaks_copy(char type) {
  switch (type) {
    case client::kQuery:
    case client::kParse:
    case client::kBind:
    case client::kDescribe:
    case client::kExecute:
    case client::kClose:
    case client::kFunctionCall: return true;
    default: return false;
  }
}

std::string empty_message(char type) {
  std::string bytes;
  wire::append_empty(bytes, type);
  return bytes;
}

}  // namespace

bool Session::on_message(const wire::Frame& frame) {
  // After an error PostgreSQL ignores everything up to the next Sync.
  if (skipping() && frame.type != client::kSync && frame.type != client::kTerminate) return true;
  if (lease_ && relay_.idle() && lease_->cancels->under_way > 0 && frame.type != client::kTerminate) {
    // The cancel request was for what ran before: it must have arrived before anything else runs.
    blocked_ = Blocked::kOnAnswers;
    return false;
  }
  if (relay_.swallows_sync() && breaks_copy(frame.type)) {
    // PostgreSQL's words; waiting for the end of the COPY would wait for ever.
    static constexpr char kHex[] = "0123456789ABCDEF";
    const auto type = static_cast<unsigned char>(frame.type);
    wire::append_error(to_client_.compose(), "ERROR",
                       {.sqlstate = std::string(sqlstate::kProtocolViolation),
                        .message = std::string("unexpected message type 0x") + kHex[type >> 4] +
                                   kHex[type & 15] + " during COPY from stdin"});
    protocol_violation({.message = "terminating connection because protocol synchronization was lost"});
    return true;
  }
  if (relay_.outstanding() >= kMaxOutstanding) {
    block_until_drained();
    return false;
  }
  switch (frame.type) {
    case client::kQuery: return on_query(frame);
    case client::kParse: return on_parse(frame);
    case client::kBind: return on_bind(frame);
    case client::kDescribe: return on_describe(frame);
    case client::kExecute: return on_execute(frame);
    case client::kClose: return on_close(frame);
    case client::kSync:
    case client::kFlush:
      if (!frame.body.empty()) {
        protocol_violation({.message = "invalid message format"});
        return true;
      }
      return frame.type == client::kSync ? on_sync(frame) : on_flush(frame);
    case client::kTerminate: return on_terminate();
    case client::kFunctionCall: return on_function_call();
    default: return on_copy_end(frame);  // CopyDone, CopyFail
  }
}

// ---- simple query ----

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
  if (start_commands(*text)) return true;
  StatementEffects effects = effects_of(*text);
  if (Error error; refuse_sequence_state(effects.flags, &error)) {
    reject_query(error);
    return true;
  }
  if (const auto error = name_effects(effects)) {
    reject_query(*error);
    return true;
  }
  switch (ensure_backend()) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_query(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  if (!effects.named.empty() && lease_->status != wire::TransactionStatus::kFailed) {
    if (!prepare_named(effects, true)) return false;
    wire::append_query(lease_->out.compose(), with_server_names(*text, effects));
  } else {
    lease_->out.pass(frame.bytes());
  }
  note_custom_settings(effects);
  note_execution(effects.flags);
  unnamed_.valid = false;
  lease_->unnamed_owner = 0;
  unsynced_ = 0;  // its end is the end of what the extended protocol has begun as well
  expect({.kind = Expected::kQuery});
  return true;
}

void Session::reject_query(const Error& error) {
  if (lease_ && lease_->status != wire::TransactionStatus::kIdle) {
    // The transaction has to fail as well, and only PostgreSQL can make it fail.
    Expected poison{.kind = Expected::kQuery, .from = Expected::kPoison};
    wire::append_error(poison.answer, "ERROR", error);
    wire::append_query(lease_->out.compose(), kRefusedText);
    expect(std::move(poison));
    return;
  }
  wire::append_error(to_client_.compose(), "ERROR", error);
  wire::append_ready_for_query(to_client_.compose(), wire::TransactionStatus::kIdle);
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

// ---- names ----

ClientStatementRef Session::find_statement(std::string_view name) {
  auto at = statements_.find(std::string(name));
  if (at == statements_.end()) return nullptr;
  if (at->second->failed) {
    statements_.erase(at);
    return nullptr;
  }
  return at->second;
}

// What names in a statement mean: as far as it is known outside a transaction. Of statements of different
// meaning only the text is the same.
std::string Session::search_path() const {
  std::string meaning = pool_->slots()->login()->role;
  for (const char* name : {"options", "search_path"}) {
    const std::string* value = pool_->startup()->find(name);
    meaning.append(1, '\0').append(value != nullptr ? *value : "");
  }
  for (const char* name : {"search_path", "role", "session_authorization"}) {
    const std::string* value = settings_->find(name);
    meaning.append(1, '\0').append(value != nullptr ? *value : "");
  }
  return meaning;
}

// EXECUTE does what the statement does that the client has prepared in the protocol.
std::optional<Error> Session::name_effects(StatementEffects& effects) {
  for (const auto& named : effects.named) {
    const ClientStatementRef handle = find_statement(named.name);
    if (handle != nullptr && !named.deallocate) effects.flags |= handle->effects;
    if (handle == nullptr && is_ours(named.name)) return unknown_name(named.name);
  }
  return std::nullopt;
}

// Gives the connection a statement that the client prepared elsewhere. True when it is there already.
bool Session::prepare_on_backend(const ClientStatementRef& handle, bool with_sync) {
  const executor::PreparedRef& statement = handle->statement;
  if (lease_->prepared.find(statement->id) != nullptr) return true;
  std::string& out = lease_->out.compose();
  const auto limit = static_cast<std::size_t>(std::max(worker_.pools().config().prepared_statements, 1));
  if (const auto oldest = lease_->prepared.oldest_beyond(limit)) {
    wire::append_close(out, 'S', oldest->server_name);
    lease_->prepared.erase(oldest->id);
    expect({.kind = Expected::kClose, .from = Expected::kHidden});
  }
  // Closing what does not exist is no error: whatever an aborted attempt has left, the name is free.
  wire::append_close(out, 'S', statement->server_name);
  expect({.kind = Expected::kClose, .from = Expected::kHidden});
  wire::append_parse(out, statement->server_name, statement->text, statement->type_oids);
  expect({.kind = Expected::kParse, .from = Expected::kHidden, .handle = handle});
  wire::append_describe(out, 'S', statement->server_name);
  expect({.kind = Expected::kDescribe, .from = Expected::kHidden, .handle = handle});
  lease_->prepared.add(statement);
  if (with_sync) {
    wire::append_sync(out);
    expect({.kind = Expected::kSync, .from = Expected::kHidden});
  } else {
    ++unsynced_;
  }
  block_until_drained();
  return false;
}

// EXECUTE and DEALLOCATE with a name that the client gave in the protocol.
bool Session::prepare_named(const StatementEffects& effects, bool with_sync) {
  for (const auto& named : effects.named) {
    const ClientStatementRef handle = find_statement(named.name);
    if (handle != nullptr && !prepare_on_backend(handle, with_sync)) return false;
  }
  return true;
}

std::string Session::with_server_names(std::string_view text, const StatementEffects& effects) {
  std::string edited;
  std::size_t at = 0;
  for (const auto& named : effects.named) {
    if (named.deallocate) deallocating_.push_back(named.name);
    const ClientStatementRef handle = find_statement(named.name);
    if (handle == nullptr) continue;
    edited.append(text.substr(at, named.range.begin - at)).append(handle->statement->server_name);
    at = named.range.end;
  }
  return edited.append(text.substr(at));
}

// ---- extended query ----

bool Session::on_parse(const wire::Frame& frame) {
  auto message = wire::read_parse(frame.body);
  if (!message) {
    protocol_violation(message.error());
    return true;
  }
  if (!lease_ && adopt_known(*message)) return true;
  switch (ensure_backend()) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_extended(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  StatementEffects effects = effects_of(message->text);
  if (const auto error = name_effects(effects)) {
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
    return true;
  }
  return parse_named(*message, effects.flags);
}

// Outside a transaction, a statement that a shard has accepted and no DDL has touched since needs no connection
// to be accepted again. Besides the time: a client whose thread waits for this answer may be what holds the
// connections.
bool Session::adopt_known(const wire::ParseMessage& message) {
  if (message.statement.empty() || find_statement(message.statement) != nullptr) return false;
  const executor::PreparedRef statement =
      executor::find_prepared(message.text, message.type_oids, search_path());
  if (statement == nullptr || statement->accepted_generation != executor::schema_generation()) return false;
  const StatementEffects effects = effects_of(message.text);
  if (!effects.named.empty()) return false;
  note_custom_settings(effects);
  auto handle = std::make_shared<ClientStatement>();
  handle->statement = statement;
  handle->effects = effects.flags;
  handle->shape = statement->accepted_shape;
  handle->answered = true;
  statements_[std::string(message.statement)] = std::move(handle);
  wire::append_empty(to_client_.compose(), server::kParseComplete);
  return true;
}

void Session::parse_unnamed(const wire::Frame& frame, const wire::ParseMessage& message,
                            std::uint32_t effects) {
  unnamed_.valid = true;
  unnamed_.text.assign(message.text);
  unnamed_.type_oids.assign(message.type_oids);
  unnamed_.effects = effects;
  unnamed_.version = ++worker_.last_unnamed_version;
  unnamed_.batch = batch_;
  lease_->unnamed_owner = unnamed_.version;
  lease_->out.pass(frame.bytes());
  ++unsynced_;
  expect({.kind = Expected::kParse, .unnamed = unnamed_.version});
}

bool Session::parse_named(const wire::ParseMessage& message, std::uint32_t effects) {
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
  if (Error error; refuse_sequence_state(effects, &error)) {
    reject_extended(error);
    return true;
  }
  switch (ensure_backend()) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_extended(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  if (handle != nullptr) {
    if (!prepare_on_backend(handle, false)) return false;
    const auto* there = lease_->prepared.find(handle->statement->id);
    if (handle->shape == 0) handle->shape = there->shape;
    if (handle->shape != there->shape && there->shape != 0) {
      // It was prepared here after the table had changed: PostgreSQL would have refused the client's older one.
      reject_extended({.sqlstate = std::string(sqlstate::kNotSupported),
                       .message = "cached plan must not change result type"},
                      "RevalidateCachedQuery");  // JDBC prepares again when it reads this name
      return true;
    }
    wire::append_bind(lease_->out.compose(), message->portal, handle->statement->server_name, message->tail);
  } else {
    if (message->statement.empty()) ensure_unnamed();
    lease_->out.pass(frame.bytes());
  }
  note_execution(effects);
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
  switch (ensure_backend()) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_extended(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  ClientStatementRef handle;
  if (message->kind == 'S' && !message->name.empty()) handle = find_statement(message->name);
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
  if (auto message = wire::read_execute(frame.body); !message) {
    protocol_violation(message.error());
    return true;
  }
  switch (ensure_backend()) {
    case Ready::kBlocked: return false;
    case Ready::kRejected: reject_extended(*std::exchange(backend_error_, std::nullopt)); return true;
    case Ready::kYes: break;
  }
  lease_->out.pass(frame.bytes());
  ++unsynced_;
  expect({.kind = Expected::kExecute});
  return true;
}

bool Session::on_close(const wire::Frame& frame) {
  auto message = wire::read_close(frame.body);
  if (!message) {
    protocol_violation(message.error());
    return true;
  }
  const bool statement = message->kind == 'S';
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
  ++batch_;
  local_skip_ = false;
  unsynced_ = 0;
  if (!lease_) {
    wire::append_ready_for_query(to_client_.compose(), wire::TransactionStatus::kIdle);
    return true;
  }
  relay_.sync_sent();
  lease_->out.pass(frame.bytes());
  expect({.kind = Expected::kSync});
  return true;
}

bool Session::on_flush(const wire::Frame& frame) {
  return pass_if_leased(frame);
}

bool Session::on_copy_end(const wire::Frame& frame) {
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
  if (!lease_) {
    wire::append_error(to_client_.compose(), "ERROR", error);
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

// ---- what all of them need ----

void Session::block_until_drained() {
  blocked_ = Blocked::kOnAnswers;
  // Without a Sync the shard may keep its answers to itself.
  if (lease_ && !relay_.will_end()) wire::append_flush(lease_->out.compose());
}

void Session::note_execution(std::uint32_t effects) {
  if (effects == 0 && pins_ == 0) return;
  effects_ |= effects;
  if ((effects & kPinsForGood) != 0 || uses_sequence_state_) pins_ |= executor::kPinOther;
  if ((pins_ & executor::kPinUnknown) != 0) effects_ |= kMayUnpin;
}

void Session::note_custom_settings(const StatementEffects& effects) {
  for (const std::string& name : effects.local_custom_settings) {
    // From then on PostgreSQL knows the name in this session, and so it has to be known wherever the client
    // goes on.
    if (settings_->find(name) == nullptr) {
      settings_ = settings_->with(name, "");
      if (lease_) lease_->applied = lease_->applied->with(name, "");
    }
  }
  for (const std::string& name : effects.custom_settings) {
    if (std::find(custom_settings_.begin(), custom_settings_.end(), name) == custom_settings_.end()) {
      custom_settings_.push_back(name);
    }
  }
}

// currval and lastval mean the last nextval of this very session. On a shared connection that may have been
// another client's, so the first one outside a transaction is refused, and from then on the client keeps its
// connection.
bool Session::refuse_sequence_state(std::uint32_t effects, Error* error) {
  if ((effects & kReadsSequence) == 0) return false;
  const bool first = !std::exchange(uses_sequence_state_, true);
  if (!first || lease_ || pins_ != 0) return false;
  *error =
      Error{.sqlstate = std::string(sqlstate::kNotSupported),
            .message = "currval and lastval need the connection of the nextval before them",
            .detail = "Between transactions this client shares its connections (pool.mode is \"transaction\").",
            .hint =
                "Use INSERT ... RETURNING, or call it in the transaction of the INSERT. From now on this "
                "client keeps one connection, so the next INSERT and lastval() will work."};
  return true;
}

void Session::protocol_violation(const Error& error) {
  end_with(sqlstate::kProtocolViolation, error.message, error.hint);
}

}  // namespace kintsugi::frontend
