#include "executor/copy_in.h"

#include <algorithm>

#include "executor/control_round.h"
#include "wire/client_messages.h"

namespace kintsugi::executor {
namespace {

constexpr std::size_t kShardBudget = 256 * 1024;  // bytes for one shard that its socket has not taken
constexpr std::chrono::seconds kEndTime{10};      // for an end after an error

bool is_there(std::string_view carry, char type) {
  for (;;) {
    const auto next = wire::peek_frame(carry, UINT32_MAX);
    if (!next || !next->has_value()) return false;
    if ((*next)->type == type) return true;
    carry.remove_prefix((*next)->size());
  }
}

}  // namespace

void CopyInRun::fail_with(const Error& error) {
  if (std::exchange(failed_, true)) return;
  failure_.kind = FanStep::kFailed;
  failure_.sqlstate = error.sqlstate;
  wire::append_error(failure_.error, "ERROR", error);
}

io::Task<FanStep> CopyInRun::start() {
  auto splitter = CopySplitter::make(request_.plan, request_.map, request_.max_message);
  if (!splitter) {
    fail_with(splitter.error());
    co_return std::move(failure_);
  }
  splitter_ = std::make_unique<CopySplitter>(std::move(*splitter));
  for (Backend* backend : request_.backends) {
    backend->stream.set_target(request_.waiter);
    wire::append_query(backend->out.compose(), request_.text);
    auto flushing = flush_out(backend, request_.waiter, request_.deadline);
    (void)co_await std::move(flushing);
  }
  bool all = true;
  for (Backend* backend : request_.backends) {
    while (!backend->broken && !is_there(backend->carry, wire::server::kCopyIn)) {
      if (holds_an_error(backend->carry)) break;
      auto reading = backend->stream.read_some(&backend->carry, request_.waiter, request_.deadline);
      const Status got = co_await std::move(reading);
      if (!got) backend->broken = true;
    }
    all = all && !backend->broken && !holds_an_error(backend->carry);
  }
  if (!all) {
    auto ending = end(false, "another shard has refused the COPY");
    co_return co_await std::move(ending);
  }
  std::string_view carry = request_.backends.front()->carry;
  while (response_.empty()) {
    const wire::Frame frame = **wire::peek_frame(carry, UINT32_MAX);
    if (frame.type == wire::server::kCopyIn) response_ = frame.bytes();
    carry.remove_prefix(frame.size());
  }
  for (Backend* backend : request_.backends) backend->stream.want(true, false);
  co_return FanStep{.kind = FanStep::kSuspended};
}

void CopyInRun::send_outputs() {
  auto& outputs = splitter_->outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Backend& backend = *request_.backends[i];
    if (!outputs[i].empty() && !backend.broken) wire::append_copy_data(backend.out.compose(), outputs[i]);
    outputs[i].clear();
    if (backend.broken || backend.out.empty()) continue;
    const io::IoResult result = backend.out.flush(backend.stream);
    if (result.kind == io::IoResult::kOk || result.kind == io::IoResult::kWouldBlock) continue;
    failed_ = true;  // the end finds out what it had to say
  }
}

// While it takes data a shard has nothing to say but that it takes no more.
void CopyInRun::look_for_errors() {
  for (Backend* backend : request_.backends) {
    if (backend->broken || !backend->stream.readable()) continue;
    const io::IoResult got = backend->read_more_to_carry(4096);
    const bool lost = got.kind == io::IoResult::kClosed || got.kind == io::IoResult::kError;
    if (lost || holds_an_error(backend->carry)) failed_ = true;
  }
}

void CopyInRun::feed(std::string_view piece) {
  if (failed_) return;
  look_for_errors();
  if (failed_) return;
  if (Status taken = splitter_->take(piece); !taken) {
    fail_with(taken.error());
    return;
  }
  send_outputs();
}

bool CopyInRun::full() const {
  return !failed_ &&
         std::any_of(request_.backends.begin(), request_.backends.end(),
                     [](const Backend* backend) { return backend->out.kept_bytes() >= kShardBudget; });
}

io::Task<void> CopyInRun::make_room(std::function<Status()> gone) {
  while (full()) {
    if (gone) {
      if (Status still = gone(); !still) fail_with(still.error());
    }
    look_for_errors();
    if (failed_) break;
    for (Backend* backend : request_.backends) backend->stream.want(true, !backend->out.empty());
    const bool in_time = co_await request_.waiter->wait(request_.deadline);
    if (!in_time) {
      fail_with(Error{.sqlstate = std::string(sqlstate::kQueryCanceled),
                      .message = "canceling statement due to statement timeout"});
    }
    send_outputs();
  }
}

io::Task<FanStep> CopyInRun::finish() {
  if (!failed_) {
    if (Status finished = splitter_->finish(); !finished) {
      fail_with(finished.error());
    } else {
      send_outputs();
    }
  }
  auto ending = end(!failed_, "the COPY has failed");
  co_return co_await std::move(ending);
}

io::Task<FanStep> CopyInRun::give_up(std::string why) {
  auto ending = end(false, std::move(why));
  co_return co_await std::move(ending);
}

// CopyDone or CopyFail to all, and what they answer. The first of them that has an error of its own has the
// word; that a COPY was failed by us is none.
io::Task<FanStep> CopyInRun::end(bool good, std::string why) {
  const Deadline deadline = good ? request_.deadline : Deadline::in(kEndTime);
  for (Backend* backend : request_.backends) {
    if (backend->broken) continue;
    if (good) {
      wire::append_copy_done(backend->out.compose());
    } else {
      wire::append_copy_fail(backend->out.compose(), why);
    }
    auto flushing = flush_out(backend, request_.waiter, deadline);
    (void)co_await std::move(flushing);
  }
  FanStep step;
  std::uint64_t rows = 0;
  std::string consequence, consequence_state;
  for (std::size_t i = 0; i < request_.backends.size(); ++i) {
    Backend* backend = request_.backends[i];
    std::string frame, tag;
    auto reading =
        read_control_answer(backend, request_.waiter, deadline, {.tag = &tag, .error_frame = &frame});
    const auto answer = co_await std::move(reading);
    if (answer) {
      if (tag.starts_with("COPY ")) rows += std::stoull(tag.substr(5));
      continue;
    }
    std::string error;
    if (frame.empty()) {
      wire::append_error(error, "ERROR", answer.error());
    } else {
      wire::append_error_with_context(error, {frame[0], std::string_view(frame).substr(wire::kHeaderBytes)},
                                      "shard " + backend->shard);
    }
    if (!good && answer.error().sqlstate == sqlstate::kQueryCanceled) {
      if (consequence.empty()) consequence = std::move(error);
      consequence_state = answer.error().sqlstate;
    } else if (failure_.error.empty()) {
      failed_ = true;
      failure_.kind = FanStep::kFailed;
      failure_.branch = i;
      failure_.sqlstate = answer.error().sqlstate;
      failure_.error = std::move(error);
    }
  }
  if (!good && failure_.error.empty()) {
    failed_ = true;
    failure_.kind = FanStep::kFailed;
    failure_.error = std::move(consequence);
    failure_.sqlstate = std::move(consequence_state);
  }
  if (failed_) co_return std::move(failure_);
  step.rows = request_.plan.map.empty() && !request_.backends.empty() ? rows / request_.backends.size() : rows;
  step.tag = "COPY " + std::to_string(step.rows);
  co_return step;
}

}  // namespace kintsugi::executor
