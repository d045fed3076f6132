#include "executor/control_round.h"

#include "wire/client_messages.h"

namespace kintsugi::executor {

io::Task<std::vector<ControlAnswer>> run_on_all(std::vector<ControlOrder> orders, io::Waiter* waiter,
                                                Deadline deadline) {
  std::vector<ControlAnswer> answers(orders.size());
  for (std::size_t i = 0; i < orders.size(); ++i) {
    Backend& backend = *orders[i].backend;
    backend.stream.set_target(waiter);
    std::string request;
    wire::append_query(request, orders[i].sql);
    auto sending = backend.stream.write_all(std::move(request), waiter, deadline);
    if (Status sent = co_await std::move(sending); !sent) {
      backend.broken = true;
      answers[i].rows = fail(sqlstate::kShardUnreachable,
                             "lost the connection to shard " + backend.shard + ": " + sent.error().message);
    }
  }
  for (std::size_t i = 0; i < orders.size(); ++i) {
    ControlAnswer& answer = answers[i];
    Backend* backend = orders[i].backend;
    std::string frame;
    if (answer.rows) {
      auto reading = read_control_answer(
          backend, waiter, deadline, {.notices = &answer.asides, .tag = &answer.tag, .error_frame = &frame});
      answer.rows = co_await std::move(reading);
    }
    if (answer.rows) continue;
    if (frame.empty()) {
      wire::append_error(answer.error, "ERROR", answer.rows.error());
      continue;
    }
    const wire::Frame whole{frame[0], std::string_view(frame).substr(wire::kHeaderBytes)};
    wire::append_error_with_context(answer.error, whole, "shard " + backend->shard);
  }
  co_return answers;
}

io::Task<bool> flush_out(Backend* backend, io::Waiter* waiter, Deadline deadline) {
  for (;;) {
    const io::IoResult result = backend->out.flush(backend->stream);
    if (result.kind == io::IoResult::kOk) co_return true;
    if (result.kind != io::IoResult::kWouldBlock) break;
    // A shard that cannot get rid of its notices takes nothing either.
    if (backend->stream.readable()) {
      const io::IoResult got = backend->read_more_to_carry(16 * 1024);
      if (got.kind == io::IoResult::kOk) continue;
    }
    backend->stream.want(true, true);
    const bool in_time = co_await waiter->wait(deadline);
    if (!in_time) break;
  }
  backend->out.clear();
  backend->broken = true;
  co_return false;
}

bool holds_an_error(std::string_view bytes) {
  for (;;) {
    const auto next = wire::peek_frame(bytes, UINT32_MAX);
    if (!next) return true;
    if (!next->has_value()) return false;
    if ((*next)->type == wire::server::kError) return true;
    bytes.remove_prefix((*next)->size());
  }
}

}  // namespace kintsugi::executor
