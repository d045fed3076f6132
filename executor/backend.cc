#include "executor/backend.h"

#include "wire/client_messages.h"

namespace kintsugi::executor {
namespace {

constexpr std::uint64_t kMaxControlMessage = 64u << 20;

Error to_error(const wire::ErrorReport& report) {
  return Error{
      .sqlstate = report.sqlstate, .message = report.message, .detail = report.detail, .hint = report.hint};
}

tl::unexpected<Error> lost(Backend& backend, const std::string& message) {
  backend.broken = true;
  return fail(sqlstate::kShardUnreachable, "lost the connection to shard " + backend.shard + ": " + message);
}

}  // namespace

io::IoResult Backend::read_more_to_carry(std::size_t most) {
  const std::size_t begun = carry.size();
  if (carry.capacity() - begun < most) carry.reserve(std::max(2 * begun, begun + most));
  carry.resize(begun + most);
  const io::IoResult got = stream.read(carry.data() + begun, most);
  carry.resize(begun + (got.kind == io::IoResult::kOk ? got.bytes : 0));
  return got;
}

bool Backend::carries_a_whole_message() const {
  auto next = wire::peek_frame(carry, UINT32_MAX);
  return !next || next->has_value();
}

std::string Backend::take_carry() {
  return std::exchange(carry, {});
}

void Backend::note_parameter(std::string_view name, std::string_view value) {
  const std::string* known = reported->find(name);
  if (known == nullptr || *known != value) reported = reported->with(name, value);
}

io::Task<Result<Rows>> run_control_query(Backend* backend, std::string sql, io::Waiter* waiter,
                                         Deadline deadline, std::string* notifications) {
  std::string request;
  wire::append_query(request, sql);
  auto sending = backend->stream.write_all(std::move(request), waiter, deadline);
  if (Status sent = co_await std::move(sending); !sent) co_return lost(*backend, sent.error().message);
  auto reading = read_control_answer(backend, waiter, deadline, {.notifications = notifications});
  co_return co_await std::move(reading);
}

io::Task<Result<Rows>> read_control_answer(Backend* backend, io::Waiter* waiter, Deadline deadline,
                                           ControlExtras extras) {
  Rows rows;
  std::optional<Error> error;
  backend->unnamed_owner = 0;  // a simple query ends the unnamed statement
  for (;;) {
    std::size_t used = 0;
    for (;;) {
      auto next = wire::peek_frame(std::string_view(backend->carry).substr(used), kMaxControlMessage);
      if (!next) co_return lost(*backend, next.error().message);
      if (!next->has_value()) break;
      const wire::Frame frame = **next;
      used += frame.size();
      if (frame.type == wire::server::kDataRow) {
        auto row = wire::read_data_row(frame.body);
        if (!row) co_return lost(*backend, row.error().message);
        auto& copy = rows.emplace_back();
        for (const auto& value : *row)
          copy.push_back(value ? std::optional<std::string>(*value) : std::nullopt);
      } else if (frame.type == wire::server::kError) {
        auto report = wire::read_error(frame.body);
        if (!report) co_return lost(*backend, report.error().message);
        if (report->severity != "ERROR") co_return lost(*backend, report->message);
        if (!error && extras.error_frame != nullptr) extras.error_frame->assign(frame.bytes());
        if (!error) error = to_error(*report);
      } else if (frame.type == wire::server::kCommandComplete && extras.tag != nullptr) {
        if (auto tag = wire::read_command_complete(frame.body)) *extras.tag = *tag;
      } else if (frame.type == wire::server::kParameterStatus) {
        auto parameter = wire::read_parameter_status(frame.body);
        if (!parameter) co_return lost(*backend, parameter.error().message);
        backend->note_parameter(parameter->name, parameter->value);
      } else if (frame.type == wire::server::kNotification && extras.notifications != nullptr) {
        extras.notifications->append(frame.bytes());
      } else if (extras.notices != nullptr &&
                 (frame.type == wire::server::kNotice || frame.type == wire::server::kNotification)) {
        extras.notices->append(frame.bytes());
      } else if (frame.type == wire::server::kReadyForQuery) {
        auto status = wire::read_ready_for_query(frame.body);
        if (!status) co_return lost(*backend, status.error().message);
        backend->note_status(*status);
        backend->carry.erase(0, used);
        if (error) co_return fail(std::move(*error));
        co_return rows;
      }
    }
    backend->carry.erase(0, used);
    auto reading = backend->stream.read_some(&backend->carry, waiter, deadline);
    if (Status got = co_await std::move(reading); !got) co_return lost(*backend, got.error().message);
  }
}

}  // namespace kintsugi::executor
