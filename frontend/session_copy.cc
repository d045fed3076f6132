// COPY of tables that lie on several shards.
#include <algorithm>

#include "executor/copy_in.h"
#include "executor/copy_out.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

namespace client = wire::client;
using namespace std::chrono_literals;

constexpr auto kControlTimeout = 30s;
constexpr std::string_view kCanceled = "canceling statement due to user request";

Error gone() {
  return {.sqlstate = std::string(sqlstate::kConnectionFailure), .message = "the client has gone"};
}

}  // namespace

// COPY FROM STDIN: each row to its shard while it comes, all of them in one transaction.
io::Task<StatementEnd> Session::run_copy_in(planner::CopyIn plan, Run* run) {
  note_how_texts_are_read();
  if (const shardmap::Mapping* mapping = worker_.map()->mapping(plan.map); mapping != nullptr && !utf8_) {
    if (std::ranges::find(mapping->key_types(), shardmap::KeyType::kText) != mapping->key_types().end())
      co_return StatementEnd::refused(
          {.sqlstate = std::string(sqlstate::kNotSupported),
           .message = "COPY into a table with a text as its sharding key while client_encoding is not UTF8",
           .hint = "SET client_encoding = 'UTF8' and convert the data first (iconv -t UTF-8)."});
  }
  executor::CopyInRequest request;
  const std::string stage = std::move(plan.stage);
  const std::vector<std::string> fill = std::move(plan.fill);
  std::vector<ShardId> shards = plan.shards;
  std::ranges::sort(shards);
  for (const ShardId shard : shards) {
    auto joining = join(shard);
    auto joined = co_await std::move(joining);
    if (!joined) co_return StatementEnd::refused(joined.error());
    if ((*joined)->lease->broken) co_return StatementEnd::refused(lost_part(**joined));
    auto opened = open_at(*joined, true);
    if (Status done = co_await std::move(opened); !done) co_return StatementEnd::refused(done.error());
  }
  if (!stage.empty()) {
    executor::Backend* backend = (*place_at(shards.front()))->lease.get();
    backend->has_temporaries = true;
    auto making = executor::run_control_query(backend, stage, &waiter_, Deadline::in(kControlTimeout));
    if (auto made = co_await std::move(making); !made) co_return StatementEnd::refused(made.error());
  }
  for (const ShardId shard : plan.shards) request.backends.push_back((*place_at(shard))->lease.get());
  request.text = plan.text.empty() ? run->text : plan.text;
  request.plan = std::move(plan);
  request.map = worker_.map();
  request.waiter = &waiter_;
  request.max_message = static_cast<std::uint64_t>(worker_.shared().config.limits.max_message);
  executor::CopyInRun copy(std::move(request));
  auto starting = copy.start();
  executor::FanStep step = co_await std::move(starting);
  if (step.kind != executor::FanStep::kSuspended) co_return end_of(step);
  to_client_.compose() += copy.response();
  auto taking = take_copy_data(&copy);
  executor::FanStep last = co_await std::move(taking);
  StatementEnd end = end_of(last);
  if (end.failed || stage.empty()) co_return end;
  auto filling = fill_from_stage(fill, shards.front());
  end = co_await std::move(filling);
  co_return end;
}

// What one shard has completed goes to all.
io::Task<StatementEnd> Session::fill_from_stage(std::vector<std::string> fill, ShardId shard) {
  planner::Pour pour{.source = fill[1], .head = fill[0], .where = shard};
  Run run{.text = fill[0] + " " + fill[1]};
  auto pouring = run_pour(std::move(pour), &run);
  StatementEnd end = co_await std::move(pouring);
  if (end.failed) co_return end;
  if (const std::size_t blank = end.tag.rfind(' '); blank != std::string::npos)
    end.tag = "COPY" + end.tag.substr(blank);
  auto dropping = executor::run_control_query((*place_at(shard))->lease.get(), "DROP TABLE pg_temp.kg_copy",
                                              &waiter_, Deadline::in(kControlTimeout));
  if (auto dropped = co_await std::move(dropping); !dropped) co_return StatementEnd::refused(dropped.error());
  co_return end;
}

// Reads the client's messages up to the end of the data, and past nothing else.
io::Task<executor::FanStep> Session::take_copy_data(executor::CopyInRun* copy) {
  const auto max_message = static_cast<std::uint64_t>(worker_.shared().config.limits.max_message);
  std::uint64_t left = 0;  // of the CopyData message that is being read
  for (;;) {
    std::size_t at = 0;
    std::optional<char> end;
    std::string reason;
    while (at < in_.size() && !copy->failed() && !end) {
      const std::string_view rest = std::string_view(in_).substr(at);
      if (left > 0) {
        const std::size_t piece = std::min<std::uint64_t>(left, rest.size());
        copy->feed(rest.substr(0, piece));
        left -= piece;
        at += piece;
        continue;
      }
      auto head = client::peek(rest, max_message);
      if (!head || (head->has_value() && (*head)->type == client::kPassword)) {
        end = 'x';
        break;
      }
      if (!head->has_value()) break;
      const char type = (*head)->type;
      if (type == client::kCopyData) {
        left = (*head)->body_size;
        at += wire::kHeaderBytes;
        continue;
      }
      if (rest.size() < (*head)->frame_size()) break;
      const std::string_view body = rest.substr(wire::kHeaderBytes, (*head)->body_size);
      if (type == client::kSync || type == client::kFlush) {
        at += (*head)->frame_size();  // read over, as PostgreSQL does
        continue;
      }
      if (type == client::kCopyFail) {
        auto said = wire::read_copy_fail(body);
        reason = said ? std::string(*said) : std::string();
      }
      if (type == client::kCopyDone || type == client::kCopyFail) at += (*head)->frame_size();
      end = type;
    }
    in_.erase(0, at);
    if (copy->failed()) {
      copy_left_ = left;
      copy_dropped_ = true;
      end = client::kCopyDone;
    }
    if (end == client::kCopyDone && canceled_ && !copy->failed()) {  // it came in time
      auto giving_up = copy->give_up(std::string(kCanceled));
      co_return co_await std::move(giving_up);
    }
    if (end == client::kCopyDone) {
      auto finishing = copy->finish();
      co_return co_await std::move(finishing);
    }
    if (end) {
      auto giving_up = copy->give_up(std::move(reason));
      executor::FanStep step = co_await std::move(giving_up);
      if (*end == client::kTerminate) {
        ended_ = true;
      } else if (*end != client::kCopyFail) {
        protocol_violation({.message = "unexpected message type during COPY from stdin"});
      }
      co_return step;
    }
    flush_client();
    if (copy->full()) {
      auto making = copy->make_room([this] { return ended_ || worker_.ending() ? fail(gone()) : Status{}; });
      co_await std::move(making);
      continue;
    }
    auto reading = read_for_copy();
    if (Status got = co_await std::move(reading); !got) {
      copy_left_ = left;  // of what the client has begun to send, and goes on with when it is told
      copy_dropped_ = true;
      auto giving_up = copy->give_up(got.error().message);
      executor::FanStep step = co_await std::move(giving_up);
      co_return step;
    }
  }
}

io::Task<Status> Session::read_for_copy() {
  for (;;) {
    // Also of a client that always has more to send.
    if (canceled_) co_return fail(sqlstate::kQueryCanceled, std::string(kCanceled));
    if (client_.readable()) {
      const io::IoResult got = client_.read(worker_.scratch(), Worker::kScratchBytes);
      if (got.kind == io::IoResult::kOk) {
        in_.append(worker_.scratch(), got.bytes);
        co_return Status{};
      }
      if (got.kind != io::IoResult::kWouldBlock) {
        client_eof_ = true;
        ended_ = true;
        co_return fail(gone());
      }
    }
    if (worker_.ending()) {
      ended_ = true;
      co_return fail(sqlstate::kAdminShutdown, "terminating connection due to administrator command");
    }
    client_.want(true, !to_client_.empty());
    (void)co_await waiter_.wait(Deadline::never());
    if (!to_client_.empty()) flush_client();
  }
}

// All but what is copied.
executor::CopyOutRequest Session::copy_out_request() {
  executor::CopyOutRequest request;
  request.client = &to_client_;
  request.client_stream = &client_;
  request.waiter = &waiter_;
  request.still_wanted = [this] { return still_wanted(); };
  request.cancel = [this](executor::Backend& backend) { cancel_at(backend); };
  request.max_message = static_cast<std::uint64_t>(worker_.shared().config.limits.max_message);
  return request;
}

// COPY ... TO STDOUT.
io::Task<StatementEnd> Session::run_copy_out(planner::CopyOut plan, Run* run) {
  std::vector<ShardId> shards;
  for (const planner::ShardTask& task : plan.tasks) {
    auto joining = join(task.shard);
    auto joined = co_await std::move(joining);
    if (!joined) co_return StatementEnd::refused(joined.error());
    if ((*joined)->lease->broken) co_return StatementEnd::refused(lost_part(**joined));
    shards.push_back(task.shard);
  }
  for (int attempt = 0;; ++attempt) {
    executor::CopyOutRequest request = copy_out_request();
    if (shards.size() > 1) {
      auto waiting = look(shards, attempt);
      auto looked = co_await std::move(waiting);
      if (!looked) co_return StatementEnd::refused(looked.error());
      request.look = std::move(*looked);
    }
    for (const planner::ShardTask& task : plan.tasks) {
      Place* place = *place_at(task.shard);
      request.branches.push_back({.backend = place->lease.get(),
                                  .text = task.text.empty() ? run->text : task.text,
                                  .before = opening(*place, false)});
    }
    request.header = plan.header;
    request.binary = plan.binary;
    auto copying = executor::copy_out(std::move(request));
    executor::FanStep step = co_await std::move(copying);
    if (!step.torn) co_return end_of(step);
    if (Status wanted = still_wanted(); !wanted) co_return StatementEnd::refused(wanted.error());
  }
}

}  // namespace kintsugi::frontend
