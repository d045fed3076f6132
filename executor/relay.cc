#include "executor/relay.h"

#include <algorithm>

#include "base/invariant.h"
#include "executor/moved.h"

namespace kintsugi::executor {
namespace {

using wire::Frame;
namespace server = wire::server;

constexpr std::size_t kMostHeld = 16 * 1024;

// What a statement may say before it is known whether it was done.
bool is_short_answer(char type) {
  switch (type) {
    case server::kParseComplete:
    case server::kBindComplete:
    case server::kCloseComplete:
    case server::kParameterDescription:
    case server::kRowDescription:
    case server::kNoData:
    case server::kNotice: return true;
    default: return false;
  }
}

bool is_stale_plan(const wire::ErrorReport& report) {
  return report.sqlstate == "0A000" && report.message.starts_with("cached plan must not change result type");
}

}  // namespace

bool is_ddl(std::string_view tag) {
  switch (tag.empty() ? '\0' : tag.front()) {
    case 'A': return tag.starts_with("ALTER ");
    case 'C': return tag.starts_with("CREATE ");
    case 'D': return tag.starts_with("DROP ") || tag.starts_with("DO");
    case 'I': return tag.starts_with("IMPORT ");
    default: return false;
  }
}

void Relay::end() {
  INVARIANT(idle(), "a relay ends with nothing outstanding");
  backend_ = nullptr;
  INVARIANT(held_.empty(), "nothing is kept back from a client when its statement is over");
  skipping_ = copy_in_ = copy_end_sent_ = doubtful_end_ = false;
  last_words_.reset();
}

void Relay::expect(Expected&& expected, Outbox& client) {
  const bool first = expected_.empty();
  const bool of_unit = expected.of_unit && untold_;
  expected_.push_back(std::move(expected));
  expected_.back().of_unit = of_unit;
  if (first) give_own_answers(client);
}

void Relay::give_own_answers(Outbox& client) {
  while (!expected_.empty() && expected_.front().from == Expected::kRouter) {
    if (in_unit() && hold_short_) {
      held_ += expected_.front().answer;
    } else {
      if (in_unit() || !held_.empty()) tell(client);
      client.compose() += expected_.front().answer;
    }
    if (expected_.front().handle != nullptr) expected_.front().handle->answered = true;
    expected_.pop_front();
  }
}

void Relay::finish_head(Outbox& client) {
  expected_.pop_front();
  head_told_ = false;
  give_own_answers(client);
}

bool Relay::awaits_read() const {
  bool begun = head_told_;
  for (const Expected& expected : expected_) {
    if (expected.reads && expected.from == Expected::kShard && !begun) return true;
    begun = false;
  }
  return false;
}

bool Relay::awaits_reads_alone() const {
  return std::none_of(expected_.begin(), expected_.end(), [](const Expected& expected) {
    const bool runs = expected.kind == Expected::kQuery || expected.kind == Expected::kExecute;
    return runs && !expected.harmless && expected.from == Expected::kShard;
  });
}

void Relay::drop_answers() {
  held_.clear();
  untold_ = false;
  std::erase_if(expected_, [](const Expected& expected) {
    return expected.of_unit && expected.from == Expected::kRouter;
  });
  for (Expected& expected : expected_) {
    if (!expected.of_unit) continue;
    expected.from = Expected::kDropped;
    expected.of_unit = expected.reads = expected.harmless = false;
  }
}

Status Relay::on_chunk(std::string_view chunk, Outbox& client) {
  std::size_t at = 0;
  while (at < chunk.size()) {
    if (pass_left_ > 0) {
      const std::size_t piece = std::min<std::uint64_t>(pass_left_, chunk.size() - at);
      if (!pass_hidden_) client.pass(chunk.substr(at, piece));
      at += piece;
      pass_left_ -= piece;
      continue;
    }
    const std::string_view rest = chunk.substr(at);
    if (rest.size() < wire::kHeaderBytes) break;
    KG_TRY(auto head, wire::peek_head(rest, UINT32_MAX));
    const std::size_t size = head->frame_size();
    if (head->type == server::kDataRow || head->type == server::kCopyData) {
      const std::size_t piece = std::min(size, rest.size());
      pass_hidden_ = head_hidden();
      if (!pass_hidden_) {
        if (in_unit() || !held_.empty()) tell(client);
        head_told_ = true;
      }
      if (!pass_hidden_) client.pass(rest.substr(0, piece));
      pass_left_ = size - piece;
      at += piece;
      continue;
    }
    if (size > max_message_) {
      return fail(sqlstate::kProgramLimitExceeded,
                  "shard " + backend_->shard + " sent a message of " + std::to_string(size) +
                      " bytes that has to be read whole",
                  "Raise limits.max_message.");
    }
    if (rest.size() < size) break;
    KG_CHECK(on_frame(Frame{head->type, rest.substr(wire::kHeaderBytes, head->body_size)}, client));
    at += size;
  }
  if (at == chunk.size()) {
    backend_->carry.clear();
    return {};
  }
  // The chunk may itself stand on the carry's bytes.
  std::string left(chunk.substr(at));
  backend_->carry.swap(left);
  return {};
}

void Relay::forward(const Frame& frame, Outbox& client) {
  if (head_hidden()) return;
  if (in_unit() && hold_short_ && is_short_answer(frame.type) && held_.size() < kMostHeld) {
    held_.append(frame.bytes());
    return;
  }
  if (in_unit() || !held_.empty()) tell(client);
  if (frame.type != server::kNotice) head_told_ = true;
  client.pass(frame.bytes());
}

void Relay::tell(Outbox& client) {
  if (!held_.empty()) client.compose() += held_;
  held_.clear();
  untold_ = false;
  for (Expected& expected : expected_) expected.of_unit = false;
}

// Nothing of the unit has been told, and the shard has done nothing of it: what is still to come is not for the
// client.
bool Relay::swallow_moved(const wire::ErrorReport& report) {
  if (!in_unit() || !is_moved(report.sqlstate, report.message)) return false;
  held_.clear();
  untold_ = false;
  note().moved = true;
  if (expected_.front().kind != Expected::kQuery) {
    backend_->unnamed_owner = Backend::kUnknownOwner;
    while (!expected_.empty() && expected_.front().kind != Expected::kSync) {
      drop_failed(expected_.front());
      expected_.pop_front();
    }
    if (expected_.empty()) skipping_ = true;
  }
  for (Expected& expected : expected_) {
    expected.from = Expected::kHidden;
    expected.of_unit = false;
  }
  return true;
}

Status Relay::on_frame(const Frame& frame, Outbox& client) {
  switch (frame.type) {
    case server::kReadyForQuery: return on_ready(frame, client);
    case server::kCommandComplete: return on_command_complete(frame, client);
    case server::kError: return on_error(frame, client);
    case server::kParseComplete: on_parse_complete(frame, client); return {};
    case server::kRowDescription:
    case server::kNoData: on_description(frame, client); return {};
    case server::kBindComplete:
    case server::kCloseComplete: {
      if (expected_.empty()) break;
      forward(frame, client);
      finish_head(client);
      return {};
    }
    case server::kPortalSuspended:
    case server::kEmptyQuery: {
      if (expected_.empty()) break;
      forward(frame, client);
      if (expected_.front().kind == Expected::kExecute) finish_head(client);
      return {};
    }
    case server::kCopyIn:
    case server::kCopyBoth:
      forward(frame, client);
      on_copy_in();
      return {};
    case server::kCopyOut:
    case server::kCopyDone: forward(frame, client); return {};
    case server::kParameterDescription:
      on_parameters(frame);
      forward(frame, client);
      return {};
    case server::kParameterStatus: return on_parameter_status(frame, client);
    case server::kNotice: forward(frame, client); return {};
    case server::kNotification: client.pass(frame.bytes()); return {};
    default: break;
  }
  return fail(sqlstate::kProtocolViolation,
              "shard " + backend_->shard + " sent an unexpected message of type \"" + frame.type + "\"");
}

Status Relay::on_parameter_status(const Frame& frame, Outbox& client) {
  KG_TRY(auto parameter, wire::read_parameter_status(frame.body));
  if (parameter.name == "application_name" && parameter.value.empty() && !application_name_.empty()) {
    const std::string* before = backend_->reported->find("application_name");
    if (before == nullptr || *before != application_name_) {
      wire::append_parameter_status(client.compose(), "application_name", application_name_);
    }
  } else {
    client.pass(frame.bytes());
  }
  backend_->note_parameter(parameter.name, parameter.value);
  return {};
}

void Relay::on_parse_complete(const Frame& frame, Outbox& client) {
  if (expected_.empty()) return;
  const Expected& head = expected_.front();
  if (head.handle != nullptr) {
    head.handle->answered = true;
    if (auto* entry = backend_->prepared.find(head.handle->statement->id)) entry->confirmed = true;
  }
  forward(frame, client);
  finish_head(client);
}

void Relay::on_parameters(const Frame& frame) {
  if (expected_.empty() || expected_.front().kind != Expected::kDescribe) return;
  const Expected& head = expected_.front();
  if (head.handle == nullptr || frame.body.size() < 2) return;
  const std::string_view types = frame.body.substr(2);  // behind their number
  auto* entry = backend_->prepared.find(head.handle->statement->id);
  if (entry == nullptr) return;
  if (entry->types == nullptr || *entry->types != types) entry->types = std::make_shared<std::string>(types);
  if (head.handle->types == nullptr || head.from == Expected::kShard) head.handle->types = entry->types;
}

void Relay::on_description(const Frame& frame, Outbox& client) {
  forward(frame, client);
  if (expected_.empty() || expected_.front().kind != Expected::kDescribe) return;  // a simple query's columns
  const Expected& head = expected_.front();
  if (head.handle != nullptr) {
    const Shape shape = frame.type == server::kNoData ? kNoRows : shape_of_row_description(frame.body);
    const PreparedStatement& statement = *head.handle->statement;
    if (auto* entry = backend_->prepared.find(statement.id)) {
      entry->shape = shape;
      note_accepted(statement, {.generation = entry->generation, .shape = shape, .types = entry->types});
    }
    // What the client is told counts; what only the router learns is noted while nothing is known.
    if (head.handle->shape == 0 || head.from == Expected::kShard) head.handle->shape = shape;
  }
  finish_head(client);
}

void Relay::copy_end_sent() {
  copy_end_sent_ = true;
  for (Expected& expected : expected_) expected.before_copy_end = true;
}

// PostgreSQL reads over every Sync that stands between a COPY FROM STDIN and its CopyDone: libpq, for one,
// sends one with the Execute and another behind CopyDone, and only the last is answered.
void Relay::on_copy_in() {
  copy_in_ = true;
  for (auto at = expected_.begin(); at != expected_.end();) {
    if (at->kind == Expected::kSync && (at->before_copy_end || !copy_end_sent_)) {
      at = expected_.erase(at);
      swallowed_ = true;
      if (expected_.front().kind == Expected::kExecute) note().sync_swallowed = true;
    } else {
      ++at;
    }
  }
}

void Relay::end_copy() {
  copy_in_ = copy_end_sent_ = swallowed_ = false;
}

Status Relay::on_command_complete(const Frame& frame, Outbox& client) {
  KG_TRY(auto tag, wire::read_command_complete(frame.body));
  end_copy();
  if (!tag.empty()) {
    if (is_ddl(tag)) {
      note().ddl = true;
      bump_schema_generation();
    } else if (tag == "DISCARD ALL") {
      note().discard_all = true;
      backend_->prepared.clear();
      backend_->unnamed_owner = Backend::kUnknownOwner;
    } else if (tag == "DEALLOCATE ALL") {
      note().deallocate_all = true;
      backend_->prepared.clear();
    } else if (tag == "DEALLOCATE") {
      ++note().deallocates;
    }
  }
  forward(frame, client);
  if (!expected_.empty() && expected_.front().kind == Expected::kExecute) finish_head(client);
  return {};
}

Status Relay::on_ready(const Frame& frame, Outbox& client) {
  KG_TRY(const wire::TransactionStatus status, wire::read_ready_for_query(frame.body));
  backend_->note_status(status);
  end_copy();
  if (expected_.empty() && std::exchange(doubtful_end_, false)) {
    skipping_ = false;
    client.pass(frame.bytes());
    return {};
  }
  if (expected_.empty() ||
      (expected_.front().kind != Expected::kQuery && expected_.front().kind != Expected::kSync)) {
    return fail(sqlstate::kProtocolViolation, "shard " + backend_->shard + " was ready out of turn");
  }
  forward(frame, client);
  finish_head(client);
  return {};
}

void Relay::drop_failed(const Expected& expected) {
  // A statement whose Parse was never answered is not prepared there, and a client's own Parse has made no
  // name.
  if (expected.unnamed != 0) note().unnamed_failed = expected.unnamed;
  if (expected.kind != Expected::kParse || expected.handle == nullptr) return;
  if (expected.from != Expected::kHidden) expected.handle->failed = true;
  if (auto* entry = backend_->prepared.find(expected.handle->statement->id);
      entry != nullptr && !entry->confirmed) {
    backend_->prepared.erase(expected.handle->statement->id);
  }
}

Status Relay::on_error(const Frame& frame, Outbox& client) {
  KG_TRY(auto report, wire::read_error(frame.body));
  if (std::exchange(swallowed_, false)) {
    // Whether COPY came to read the Sync before it failed cannot be told from here: there may be one more
    // ReadyForQuery than is waited for, and nobody else may have this connection.
    doubtful_end_ = backend_->broken = true;
  }
  end_copy();
  if (is_stale_plan(report)) bump_schema_generation();
  if (report.severity == "FATAL" || report.severity == "PANIC") {
    last_words_ = Error{
        .sqlstate = report.sqlstate, .message = report.message, .detail = report.detail, .hint = report.hint};
    backend_->broken = true;
    return {};
  }
  if (!expected_.empty() && expected_.front().kind == Expected::kQuery &&
      expected_.front().from == Expected::kHidden) {
    note().hidden_query_failed = Error{
        .sqlstate = report.sqlstate, .message = report.message, .detail = report.detail, .hint = report.hint};
    return {};
  }
  const bool dropped = !expected_.empty() && expected_.front().from == Expected::kDropped;
  if (!dropped && swallow_moved(report)) return {};
  const bool poisoned = !expected_.empty() && expected_.front().from == Expected::kPoison;
  if (!poisoned && !dropped) ++note().errors;
  if (dropped) {
    if (expected_.front().kind == Expected::kQuery) return {};
  } else if (poisoned) {
    if (in_unit() || !held_.empty()) tell(client);
    client.compose() += expected_.front().answer;
    expected_.front().from = Expected::kShard;  // a query's ReadyForQuery is the client's again
  } else {
    if (in_unit() || !held_.empty()) tell(client);
    const bool explained = instead_of_canceled_ && report.sqlstate == sqlstate::kQueryCanceled;
    if (explained)
      wire::append_error(client.compose(), "ERROR", *std::exchange(instead_of_canceled_, std::nullopt));
    else
      wire::append_error_with_context(client.compose(), frame, "shard " + backend_->shard);
  }
  if (expected_.empty() || expected_.front().kind == Expected::kQuery) return {};
  // A Parse or Close of the unnamed statement may be among what is ignored now.
  backend_->unnamed_owner = Backend::kUnknownOwner;
  // The shard ignores what comes before the next Sync, and so its answers are not to be waited for.
  while (!expected_.empty() && expected_.front().kind != Expected::kSync) {
    drop_failed(expected_.front());
    expected_.pop_front();
  }
  head_told_ = false;
  if (expected_.empty()) {
    skipping_ = true;
  } else if (expected_.front().from == Expected::kDropped) {
    if (dropped) return {};
    // What has failed stands before the unit, which is not run then: not now and not again.
    if (expected_.front().barrier)
      note().barrier_failed = true;
    else
      expected_.front().from = Expected::kShard;
  } else if (expected_.front().barrier) {
    note().barrier_failed = true;
  } else if (expected_.front().from == Expected::kHidden) {
    // The router's own preparation for a simple query has failed: the client gets this end instead of the
    // query's.
    expected_.front().from = Expected::kShard;
    note().preparation_failed = true;
  }
  return {};
}

bool Relay::abandon(const Error& error, Outbox& client, wire::TransactionStatus status) {
  tell(client);
  bool told = skipping_;
  while (!expected_.empty()) {
    const Expected::Kind kind = expected_.front().kind;
    if (!std::exchange(told, true)) wire::append_error(client.compose(), "ERROR", error);
    if (kind == Expected::kQuery || kind == Expected::kSync) {
      wire::append_ready_for_query(client.compose(), status);
      told = false;
    }
    expected_.pop_front();
  }
  pass_left_ = 0;
  skipping_ = head_told_ = false;
  return told;
}

}  // namespace kintsugi::executor
