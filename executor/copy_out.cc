#include "executor/copy_out.h"

#include <algorithm>

#include "executor/abandon.h"
#include "executor/branch.h"
#include "executor/copy_format.h"
#include "executor/fan_tag.h"

namespace kintsugi::executor {
namespace {

constexpr std::size_t kClientBudget = 64 * 1024;

class CopyOutRun {
 public:
  explicit CopyOutRun(CopyOutRequest request) : request_(std::move(request)), begun_(request_.branches.size()) {
    for (const FanBranch& each : request_.branches)
      branches_.push_back(std::make_unique<Branch>(each.backend, request_.max_message));
  }

  io::Task<FanStep> run();

 private:
  void start();
  bool move();
  bool begin_all();
  std::string_view payload(std::size_t branch, std::string_view body);
  void fail_with(const Error& error);
  void note_failures();
  [[nodiscard]] bool ended() const;

  CopyOutRequest request_;
  Branches branches_;
  std::vector<bool> begun_;  // its header is taken off
  bool response_sent_ = false, header_sent_ = false;
  bool failed_ = false;
  bool torn_ = false;  // the snapshots are not of one moment
  FanStep failure_;
};

void CopyOutRun::start() {
  const std::string tail(6, '\0');  // no parameters, no formats
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    branches_[i]->start({.text = request_.branches[i].text,
                         .before = &request_.branches[i].before,
                         .bind_tail = tail,
                         .copy_out = true});
    branches_[i]->backend().stream.set_target(request_.waiter);
    branches_[i]->flush();
  }
}

void CopyOutRun::fail_with(const Error& error) {
  if (std::exchange(failed_, true)) return;
  failure_.kind = FanStep::kFailed;
  failure_.sqlstate = error.sqlstate;
  wire::append_error(failure_.error, "ERROR", error);
}

void CopyOutRun::note_failures() {
  for (std::size_t i = 0; i < branches_.size() && !failed_; ++i) {
    if (!branches_[i]->failed()) continue;
    failed_ = true;
    failure_.kind = FanStep::kFailed;
    failure_.branch = i;
    failure_.sqlstate = branches_[i]->error_sqlstate();
    failure_.error = branches_[i]->error();
  }
}

// All say how many columns there are, and in which format, before the first byte of data goes out.
bool CopyOutRun::begin_all() {
  if (response_sent_) return true;
  for (const auto& branch : branches_) {
    if (branch->copy_response().empty()) return false;
  }
  for (const auto& branch : branches_) {
    if (branch->copy_response() == branches_[0]->copy_response()) continue;
    fail_with(Error{.sqlstate = "55000",
                    .message = "the schemas of the shards " + branches_[0]->shard() + " and " +
                               branch->shard() + " differ: they copy different columns",
                    .hint = "Bring the table on all shards to the same definition."});
    return false;
  }
  if (request_.look) {
    const std::optional<bool> one_moment = request_.look->one_moment();
    if (!one_moment) return false;
    torn_ = !*one_moment;
    if (torn_) return false;
  }
  response_sent_ = true;
  wire::FrameWriter(request_.client->compose(), wire::server::kCopyOut).bytes(branches_[0]->copy_response());
  return true;
}

// What of a message goes to the client: not the header of each, nor its end. PostgreSQL sends the binary header
// together with the first row, and the end as a message of its own unless there is no row; so does the router
// (psycopg takes each message for a row).
std::string_view CopyOutRun::payload(std::size_t branch, std::string_view body) {
  const bool first = !begun_[branch];
  begun_[branch] = true;
  if (!request_.binary) return first && request_.header && branch > 0 ? std::string_view() : body;
  if (first) body.remove_prefix(std::min(body.size(), kBinaryCopyHeader.size()));
  return body == kBinaryCopyTrailer ? std::string_view() : body;
}

// True when something has gone to the client.
bool CopyOutRun::move() {
  if (!begin_all()) return false;
  bool moved = false;
  const std::size_t most = request_.client_stream != nullptr ? kClientBudget : SIZE_MAX;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    // The header line is the first shard's, and comes first.
    if (i > 0 && request_.header && !begun_[0] && !branches_[0]->ended()) break;
    while (request_.client->kept_bytes() < most) {
      const auto row = branches_[i]->row();
      if (!row) break;
      const std::string_view data = payload(i, row->body);
      if (request_.binary && !data.empty() && !std::exchange(header_sent_, true)) {
        wire::append_copy_data(request_.client->compose(), std::string(kBinaryCopyHeader).append(data));
      } else if (data.size() == row->body.size()) {
        request_.client->compose() += row->bytes();
      } else if (!data.empty()) {
        wire::append_copy_data(request_.client->compose(), data);
      }
      branches_[i]->drop_row();
      moved = true;
    }
  }
  return moved;
}

bool CopyOutRun::ended() const {
  for (const auto& branch : branches_) {
    if (!branch->settled()) return false;
  }
  return true;
}

io::Task<FanStep> CopyOutRun::run() {
  start();
  for (;;) {
    bool moved = false;
    for (auto& branch : branches_) {
      branch->flush();
      if (branch->backend().stream.readable()) moved |= branch->read(kBranchBudget);
      const std::string asides = branch->take_asides();
      if (!asides.empty()) request_.client->compose() += asides;
    }
    note_failures();
    if (!failed_) moved |= move();
    if (request_.client_stream != nullptr && !request_.client->empty()) {
      const std::size_t before = request_.client->kept_bytes();
      const io::IoResult result = request_.client->flush(*request_.client_stream);
      moved |= request_.client->kept_bytes() < before;
      if (result.kind == io::IoResult::kClosed || result.kind == io::IoResult::kError) {
        fail_with(
            Error{.sqlstate = std::string(sqlstate::kConnectionFailure), .message = "the client has gone"});
      }
    }
    if (request_.still_wanted && !failed_) {
      if (Status wanted = request_.still_wanted(); !wanted) fail_with(wanted.error());
    }
    if (failed_ || torn_ || (response_sent_ && ended())) break;
    if (moved) continue;
    for (auto& branch : branches_)
      branch->backend().stream.want(branch->wants_to_read(kBranchBudget), branch->sending());
    if (request_.client_stream != nullptr)
      request_.client_stream->want(!request_.client_stream->readable(), !request_.client->empty());
    const bool in_time = co_await request_.waiter->wait(request_.deadline);
    if (!in_time) {
      fail_with(Error{.sqlstate = std::string(sqlstate::kQueryCanceled),
                      .message = "canceling statement due to statement timeout"});
    }
  }
  failure_.told = response_sent_;
  if (torn_ && !failed_) {
    // In a transaction a cancel request would be the end of it.
    const bool alone = std::ranges::all_of(request_.branches, [](const FanBranch& each) {
      return each.before.empty() && each.backend->status == wire::TransactionStatus::kIdle;
    });
    auto abandoning = abandon(&branches_, alone ? request_.cancel : nullptr, request_.waiter);
    co_await std::move(abandoning);
    co_return FanStep{.kind = FanStep::kFailed, .torn = true};
  }
  if (failed_) {
    auto abandoning = abandon(&branches_, request_.cancel, request_.waiter);
    co_await std::move(abandoning);
    co_return std::move(failure_);
  }
  FanStep step;
  std::vector<std::string> tags;
  for (auto& branch : branches_) {
    tags.push_back(branch->tag());
    branch->leave();
  }
  if (request_.binary) {
    const std::string header(header_sent_ ? std::string_view() : kBinaryCopyHeader);
    wire::append_copy_data(request_.client->compose(), header + std::string(kBinaryCopyTrailer));
  }
  wire::append_copy_done(request_.client->compose());
  step.tag = *merged_tag(planner::Merge::Kind::kConcat, tags, false, 0);
  step.told = true;
  co_return step;
}

}  // namespace

io::Task<FanStep> copy_out(CopyOutRequest request) {
  CopyOutRun run(std::move(request));
  auto running = run.run();
  co_return co_await std::move(running);
}

}  // namespace kintsugi::executor
