// What every message of a client meets first, and what all of its handlers need. Every handler either consumes
// its message or leaves everything as it was and says what it waits for; then the same message comes again.
#include <algorithm>

#include "frontend/own_forms.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {
namespace {

namespace client = wire::client;

constexpr std::size_t kMaxOutstanding = 2048;  // answers of a pipeline, before its messages wait

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
std::optional<Error> Session::refuse_sequence_state(std::uint32_t effects) {
  if ((effects & kReadsSequence) == 0) return std::nullopt;
  const bool first = !std::exchange(uses_sequence_state_, true);
  if (!first || lease_ || pins_ != 0 || (effects & kDrawsFirst) != 0) return std::nullopt;
  return Error{
      .sqlstate = std::string(sqlstate::kNotSupported),
      .message = "currval and lastval need the connection of the nextval before them",
      .detail = "Between transactions this client shares its connections (pool.mode is \"transaction\").",
      .hint =
          "Use INSERT ... RETURNING, or call it in the transaction of the INSERT. From now on this "
          "client keeps one connection, so the next INSERT and lastval() will work."};
}

// PostgreSQL takes any name with a dot: a misspelt one of ours would be taken and do nothing, and a setting of
// PostgreSQL's with the name of the guard's guards nothing.
std::optional<Error> Session::misuses_own_setting(const StatementEffects& effects) const {
  for (const auto* names : {&effects.custom_settings, &effects.local_custom_settings}) {
    for (const std::string& name : *names) {
      if (!name.starts_with("kintsugi.") || name == "kintsugi.shard_new_tables") continue;
      if (name != "kintsugi.tenant") return no_such_setting(name);
      if (!routes()) return not_routed();
      return Error{
          .sqlstate = std::string(sqlstate::kNotSupported),
          .message = "kintsugi.tenant is set with SET kintsugi.tenant = '...' in a statement of its own"};
    }
  }
  return std::nullopt;
}

void Session::protocol_violation(const Error& error) {
  const bool limit = error.sqlstate == sqlstate::kLimitReached;
  end_with(limit ? sqlstate::kLimitReached : sqlstate::kProtocolViolation, error.message, error.hint);
}

}  // namespace kintsugi::frontend
