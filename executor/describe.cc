#include "executor/describe.h"

#include "wire/client_messages.h"

namespace kintsugi::executor {
namespace {

constexpr std::uint64_t kMaxMessage = 64u << 20;

Error to_error(const wire::ErrorReport& report) {
  return Error{.sqlstate = report.sqlstate,
               .message = report.message,
               .detail = report.detail,
               .hint = report.hint,
               .position = report.position};
}

}  // namespace

io::Task<Result<StatementDescription>> describe_on(Backend* backend, std::string text, std::string type_oids,
                                                   io::Waiter* waiter, Deadline deadline) {
  std::string request;
  wire::append_parse(request, "", text, type_oids);
  wire::append_describe(request, 'S', "");
  wire::append_sync(request);
  backend->unnamed_owner = Backend::kUnknownOwner;
  auto exchanging = exchange_extended(backend, std::move(request), waiter, deadline);
  co_return co_await std::move(exchanging);
}

io::Task<Result<StatementDescription>> exchange_extended(Backend* backend, std::string request,
                                                         io::Waiter* waiter, Deadline deadline) {
  const auto lost = [backend](const std::string& message) {
    backend->broken = true;
    return fail(sqlstate::kShardUnreachable, "lost the connection to shard " + backend->shard + ": " + message);
  };
  auto sending = backend->stream.write_all(std::move(request), waiter, deadline);
  if (Status sent = co_await std::move(sending); !sent) co_return lost(sent.error().message);
  StatementDescription description;
  std::optional<Error> error;
  for (;;) {
    std::size_t used = 0;
    for (;;) {
      auto next = wire::peek_frame(std::string_view(backend->carry).substr(used), kMaxMessage);
      if (!next) co_return lost(next.error().message);
      if (!next->has_value()) break;
      const wire::Frame frame = **next;
      used += frame.size();
      switch (frame.type) {
        case wire::server::kParameterDescription: {
          auto types = wire::read_parameter_description(frame.body);
          if (!types) co_return lost(types.error().message);
          description.parameter_types = std::move(*types);
          break;
        }
        case wire::server::kRowDescription: description.row_description.assign(frame.body); break;
        case wire::server::kError: {
          auto report = wire::read_error(frame.body);
          if (!report) co_return lost(report.error().message);
          if (report->severity != "ERROR") co_return lost(report->message);
          if (!error) error = to_error(*report);
          break;
        }
        case wire::server::kParameterStatus: {
          auto parameter = wire::read_parameter_status(frame.body);
          if (!parameter) co_return lost(parameter.error().message);
          backend->note_parameter(parameter->name, parameter->value);
          break;
        }
        case wire::server::kReadyForQuery: {
          auto status = wire::read_ready_for_query(frame.body);
          if (!status) co_return lost(status.error().message);
          backend->note_status(*status);
          backend->carry.erase(0, used);
          if (error) co_return fail(std::move(*error));
          co_return description;
        }
        default: break;
      }
    }
    backend->carry.erase(0, used);
    auto reading = backend->stream.read_some(&backend->carry, waiter, deadline);
    if (Status got = co_await std::move(reading); !got) co_return lost(got.error().message);
  }
}

}  // namespace kintsugi::executor
