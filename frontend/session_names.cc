// The client's names of prepared statements, and the statements that the shards have for them.
#include <algorithm>

#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "frontend/statement_names.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {

using executor::Expected;

ClientStatementRef Session::find_statement(std::string_view name) {
  auto at = statements_.find(std::string(name));
  if (at == statements_.end()) return nullptr;
  if (at->second->failed) {
    statements_.erase(at);
    return nullptr;
  }
  return at->second;
}

// What names in a statement mean. Of statements of different meaning only the text is the same. Where a
// transaction has changed the meaning, what is prepared in it is this client's alone.
std::string Session::search_path() const {
  // A client that came before there was a shard, and has prepared statements of ours only: a meaning of its
  // own.
  if (pool_ == nullptr) return std::string("no shard yet\0", 13) + user_.user;
  std::string meaning = pool_->slots()->login()->role;
  for (const char* name : {"options", "search_path"}) {
    const std::string* value = pool_->startup()->find(name);
    meaning.append(1, '\0').append(value != nullptr ? *value : "");
  }
  for (const char* name : {"search_path", "role", "session_authorization"}) {
    const std::string* value = settings_->find(name);
    meaning.append(1, '\0').append(value != nullptr ? *value : "");
  }
  const bool inside = lease_ && (lease_->status != wire::TransactionStatus::kIdle || unsynced_ > 0);
  if (inside && (effects_ & kMayRename) != 0) {
    meaning.append(1, '\0').append(std::to_string(++worker_.last_unnamed_version));
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

// Whether the connection has the client's statement as the client knows it. Since the one or the other was
// prepared a definition may have given it other columns, which PostgreSQL refuses, or other types of its
// parameters, which PostgreSQL keeps as they were.
bool Session::is_prepared_here(const ClientStatementRef& handle) {
  const auto* there = lease_->prepared.find(handle->statement->id);
  if (there == nullptr) return false;
  const bool other_rows = there->shape != 0 && handle->shape != 0 && there->shape != handle->shape;
  const bool other_types =
      there->types != nullptr && handle->types != nullptr && *there->types != *handle->types;
  if (!other_rows && !other_types) return true;
  if (there->generation != executor::schema_generation()) return false;
  if (!other_types) return true;  // who binds it finds out
  const executor::PreparedStatement& meant = *handle->statement;
  handle->statement = executor::intern_prepared(meant.text, *handle->types, meant.search_path);
  return lease_->prepared.find(handle->statement->id) != nullptr;
}

// Gives the connection a statement that the client prepared elsewhere. True when it is there already.
bool Session::prepare_on_backend(const ClientStatementRef& handle, bool with_sync) {
  if (is_prepared_here(handle)) return true;
  const executor::PreparedRef& statement = handle->statement;
  preparing_ = relay_.idle() && unsynced_ == 0 && lease_->status == wire::TransactionStatus::kIdle;
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

}  // namespace kintsugi::frontend
