#include "executor/branch.h"

#include "base/invariant.h"

namespace kintsugi::executor {
namespace {

namespace server = wire::server;

constexpr std::size_t kReadBytes = 64 * 1024;

}  // namespace

void Branch::start(const BranchStatement& statement) {
  rows_a_chunk_ = statement.rows_a_chunk;
  portal_ = statement.portal;
  if (statement.copy_out) row_type_ = server::kCopyData;
  in_.append(std::exchange(backend_->carry, {}));
  backend_->unnamed_owner = Backend::kUnknownOwner;
  std::string& out = backend_->out.compose();
  if (statement.before != nullptr) {
    for (const std::string& text : *statement.before) {
      ++befores_;
      wire::append_parse(out, "", text, {});
      wire::append_bind(out, "", "", wire::BindValues{});
      wire::append_execute(out, "", 0);
    }
  }
  wire::append_parse(out, "", statement.text, statement.type_oids);
  wire::append_bind(out, portal_, "", statement.bind_tail);
  wire::append_describe(out, 'P', portal_);
  started_ = true;
  held_ = statement.held;
  if (held_) {
    wire::append_flush(out);
  } else {
    execute();
  }
}

void Branch::execute() {
  std::string& out = backend_->out.compose();
  wire::append_execute(out, portal_, static_cast<std::int32_t>(rows_a_chunk_));
  executing_ = true;
  if (rows_a_chunk_ == 0) {
    sync();
  } else {
    wire::append_flush(out);
  }
}

void Branch::go() {
  if (!std::exchange(held_, false) || failed()) return;
  execute();
}

void Branch::execute_more() {
  if (lost_ || complete_ || executing_) return;
  in_.append(std::exchange(backend_->carry, {}));
  std::string& out = backend_->out.compose();
  wire::append_execute(out, portal_, static_cast<std::int32_t>(rows_a_chunk_));
  wire::append_flush(out);
  executing_ = true;
  ready_ = false;
}

void Branch::finish() {
  if (lost_ || (rows_a_chunk_ == 0 && !held_) || std::exchange(portal_closed_, true)) return;
  in_.append(std::exchange(backend_->carry, {}));
  wire::append_close(backend_->out.compose(), 'P', portal_);
  sync();
}

void Branch::sync() {
  if (lost_) return;
  wire::append_sync(backend_->out.compose());
  ++syncs_;
  ready_ = false;
}

void Branch::flush() {
  if (!sending()) return;
  const io::IoResult result = backend_->out.flush(backend_->stream);
  if (result.kind == io::IoResult::kOk || result.kind == io::IoResult::kWouldBlock) return;
  // It may have said why before it went: reading finds that.
  backend_->out.clear();
  if (!read(SIZE_MAX) && !lost_) lose("could not send");
}

bool Branch::read(std::size_t budget) {
  if (!wants_to_read(budget)) return false;
  in_.make_room(std::max(kReadBytes, needed_ > in_.size() ? needed_ - in_.size() : 0));
  const io::IoResult got = backend_->stream.read(in_.room(), in_.room_bytes());
  if (got.kind == io::IoResult::kWouldBlock) return false;
  if (got.kind != io::IoResult::kOk) {
    lose("the server closed the connection");
    return true;
  }
  in_.filled(got.bytes);
  bytes_read_ += got.bytes;
  digest();
  return true;
}

void Branch::digest() {
  while (!lost_ && !row_ready_) {
    const std::string_view bytes = in_.unread();
    needed_ = 0;
    auto head = wire::peek_head(bytes, max_message_);
    if (!head) {
      if (bytes.size() >= wire::kHeaderBytes && wire::load_u32(bytes.data() + 1) >= 4) {
        lose_with({.sqlstate = std::string(sqlstate::kProgramLimitExceeded),
                   .message = "shard " + backend_->shard + " sent a message of " +
                              std::to_string(wire::load_u32(bytes.data() + 1)) +
                              " bytes that has to be read whole",
                   .hint = "Raise limits.max_message."});
      } else {
        lose(head.error().message);
      }
      return;
    }
    if (!head->has_value()) return;
    const std::size_t size = (*head)->frame_size();
    if (bytes.size() < size) {
      needed_ = size;
      return;
    }
    const wire::Frame frame{(*head)->type, bytes.substr(wire::kHeaderBytes, (*head)->body_size)};
    if (frame.type == row_type_ && befores_ == 0 && !discarding_) {
      if (!aside_on_) {
        row_ready_ = true;
        return;
      }
      aside_.append(frame.bytes());
      in_.drop(size);
      continue;
    }
    if (!on_frame(frame)) return;
    in_.drop(size);
    if (ready_) return;
  }
}

bool Branch::on_frame(const wire::Frame& frame) {
  switch (frame.type) {
    case server::kParseComplete:
    case server::kBindComplete:
    case server::kCloseComplete:
    case server::kDataRow: return true;
    case server::kCopyOut:
      if (row_type_ != server::kCopyData) break;
      copy_response_ = frame.body;
      return true;
    case server::kCopyData:
    case server::kCopyDone:
      if (row_type_ != server::kCopyData) break;
      return true;
    case server::kRowDescription:
      description_ = frame.body;
      described_ = true;
      return true;
    case server::kNoData: described_ = true; return true;
    case server::kCommandComplete: {
      auto tag = wire::read_command_complete(frame.body);
      if (!tag) break;
      if (befores_ > 0) {
        --befores_;
        return true;
      }
      tag_ = *tag;
      complete_ = true;
      executing_ = false;
      return true;
    }
    case server::kEmptyQuery:
      complete_ = empty_query_ = true;
      executing_ = false;
      return true;
    case server::kPortalSuspended: executing_ = false; return true;
    case server::kReadyForQuery: {
      auto status = wire::read_ready_for_query(frame.body);
      if (!status || syncs_ == 0) break;
      backend_->note_status(*status);
      ready_ = --syncs_ == 0;
      executing_ = executing_ && !ready_;
      return true;
    }
    case server::kError: on_error(frame); return !lost_;
    case server::kParameterStatus: {
      auto parameter = wire::read_parameter_status(frame.body);
      if (!parameter) break;
      backend_->note_parameter(parameter->name, parameter->value);
      return true;
    }
    case server::kNotice:
    case server::kNotification: asides_.append(frame.bytes()); return true;
    default: break;
  }
  lose(std::string("it sent a message that was not to be expected, of type \"") + frame.type + "\"");
  return false;
}

void Branch::on_error(const wire::Frame& frame) {
  auto report = wire::read_error(frame.body);
  if (!report) {
    lose(report.error().message);
    return;
  }
  if (report->severity != "ERROR") {
    lose(report->message);
    return;
  }
  if (error_.empty()) {
    wire::append_error_with_context(error_, frame, "shard " + backend_->shard);
    error_sqlstate_ = report->sqlstate;
  }
  befores_ = 0;
  executing_ = false;
  if (syncs_ == 0) sync();
}

void Branch::lose(const std::string& how) {
  lose_with({.sqlstate = std::string(sqlstate::kShardUnreachable),
             .message = "lost the connection to shard " + backend_->shard + ": " + how,
             .detail = "The statement may or may not have been executed.",
             .hint = "Look before you repeat it."});
}

void Branch::lose_with(const Error& error) {
  if (lost_) return;
  lost_ = true;
  executing_ = row_ready_ = false;
  backend_->broken = true;
  backend_->out.clear();
  if (!error_.empty()) return;
  error_sqlstate_ = error.sqlstate;
  wire::append_error(error_, "ERROR", error);
}

std::optional<wire::Frame> Branch::row() {
  if (!row_ready_ && aside_.size() == 0) return std::nullopt;
  const std::string_view bytes = rows().unread();
  const std::size_t body = wire::load_u32(bytes.data() + 1) - 4;
  return wire::Frame{bytes[0], bytes.substr(wire::kHeaderBytes, body)};
}

void Branch::drop_row() {
  const auto frame = row();
  INVARIANT(frame, "only a row that is there is dropped");
  drop(frame->size());
}

std::string_view Branch::run_of_rows(std::uint64_t& rows_wanted, char type) {
  const std::uint64_t most = std::exchange(rows_wanted, 0);
  if (!row()) return {};
  const std::string_view bytes = rows().unread();
  std::size_t at = 0;
  for (; rows_wanted < most && bytes.size() - at >= wire::kHeaderBytes; ++rows_wanted) {
    if (bytes[at] != row_type_) break;
    const std::size_t size = std::size_t{1} + wire::load_u32(bytes.data() + at + 1);
    // Digesting finds out what is wrong with it when its turn has come.
    if (size < wire::kHeaderBytes || bytes.size() - at < size) break;
    rows().begin()[at] = type;
    at += size;
  }
  return bytes.substr(0, at);
}

void Branch::drop(std::size_t bytes) {
  if (aside_.size() > 0) {
    aside_.drop(bytes);
    return;
  }
  in_.drop(bytes);
  row_ready_ = false;
  digest();
}

void Branch::discard() {
  discarding_ = true;
  row_ready_ = false;
  aside_.drop(aside_.size());
  digest();
}

void Branch::set_aside(bool on) {
  aside_on_ = on;
  if (!on) return;
  row_ready_ = false;
  digest();
}

void Branch::leave() {
  if (lost_) return;
  backend_->carry.insert(0, in_.unread());
  in_.drop(in_.size());
}

}  // namespace kintsugi::executor
