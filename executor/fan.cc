#include "executor/fan.h"

#include <algorithm>

#include "base/invariant.h"
#include "executor/abandon.h"
#include "executor/branch.h"
#include "executor/fan_tag.h"
#include "executor/row_merge.h"

namespace kintsugi::executor {
namespace {

using planner::Merge;

constexpr std::size_t kClientBudget = 64 * 1024;  // bytes in the outbox before nothing is merged any more
constexpr std::uint64_t kFewRows = 10'000;        // under a limit: the shards stop by themselves soon enough
constexpr std::uint32_t kRowsAChunk = 5'000;      // of a large limit
constexpr std::uint64_t kMostSuspendable = 1'000;
constexpr std::uint64_t kFewBytes = 1 << 20;  // read to the end rather than cancelled

std::string tail_of(const wire::BindValues& bind) {
  std::string message;
  wire::append_bind(message, "", "", bind);
  return message.substr(wire::kHeaderBytes + 2);
}

// Hidden columns are sort keys, and they come in binary: those forms depend on no setting of the session.
std::vector<std::int16_t> formats_for_shards(const std::vector<std::int16_t>& asked, const Merge& merge) {
  if (merge.hidden_columns == 0) return asked;
  std::vector<std::int16_t> formats = asked;
  if (asked.size() <= 1) {
    int columns = 0;
    for (const planner::SortKey& key : merge.keys) columns = std::max(columns, key.column + 1);
    const int visible = std::max(0, columns - merge.hidden_columns);
    formats.assign(static_cast<std::size_t>(visible), asked.empty() ? std::int16_t{0} : asked[0]);
  }
  formats.insert(formats.end(), static_cast<std::size_t>(merge.hidden_columns), 1);
  return formats;
}

std::string raw_oids(const std::vector<std::uint32_t>& types) {
  std::string raw(4 * types.size(), '\0');
  for (std::size_t i = 0; i < types.size(); ++i) wire::store_u32(raw.data() + 4 * i, types[i]);
  return raw;
}

std::string next_portal() {
  static thread_local std::uint64_t last = 0;
  return "kg_fan_" + std::to_string(++last);
}

}  // namespace

struct Fan::State {
  explicit State(FanRequest r)
      : request(std::move(r)),
        formats(formats_for_shards(request.bind.result_formats, request.merge)),
        merge(request.merge, formats),
        type_oids(raw_oids(request.parameter_types)) {
    INVARIANT(!request.branches.empty(), "a fan has branches");
    wire::BindValues bind = request.bind;
    bind.result_formats = formats;
    bind_tail = tail_of(bind);
    request.bind = {};
    for (const FanBranch& each : request.branches) {
      branches.push_back(std::make_unique<Branch>(each.backend, request.max_message));
    }
  }

  void start(std::uint64_t max_rows);
  void pump();
  void look();
  bool make_rows();
  void begin_rows();
  bool at_one_moment();
  bool flush_client();
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] bool something_readable() const;
  FanStep result();
  void fail_with(const Error& error, std::size_t branch = SIZE_MAX);
  void fail_with_branch(std::size_t at);
  bool note_failures();
  void sleep_on();
  io::Task<> settle();
  io::Task<> put_aside();
  void resume();
  void cancel_rests();

  FanRequest request;
  std::vector<std::int16_t> formats;
  RowMerge merge;
  std::string type_oids, bind_tail;
  Branches branches;
  std::vector<bool> canceled;
  std::string visible;  // the description that the client gets

  bool started = false, rows_begun = false, told = false, over = false;
  bool chunks = false, in_transaction = false, stopping = false, cut = false;
  bool torn = false;  // the snapshots are not of one moment
  RowMerge::State state = RowMerge::State::kHungry;
  std::uint64_t most_rows = UINT64_MAX, rows_before = 0;
  bool failed = false;
  std::optional<Error> unwanted;  // why the step is given up, when no shard says it better
  FanStep failure;
  Deadline::Clock::time_point client_moved{};
};

Fan::Fan(FanRequest request) : state_(std::make_unique<State>(std::move(request))) {}

Fan::~Fan() {
  INVARIANT(!state_->started || state_->over, "a fan that was begun is ended or stopped");
}

const std::string& Fan::description() const {
  return state_->visible;
}

void Fan::State::start(std::uint64_t max_rows) {
  started = true;
  client_moved = request.waiter->loop().now();
  canceled.resize(branches.size());
  in_transaction = request.branches[0].backend->status != wire::TransactionStatus::kIdle;
  for (const FanBranch& each : request.branches) in_transaction = in_transaction || !each.before.empty();
  BranchStatement statement{.type_oids = type_oids, .bind_tail = bind_tail};
  const auto& m = request.merge;
  if (request.suspendable && max_rows > 0) {
    statement.rows_a_chunk = static_cast<std::uint32_t>(std::min(max_rows, kMostSuspendable));
  } else if (m.limit && *m.limit + m.offset > kFewRows) {
    statement.rows_a_chunk = kRowsAChunk;
  }
  chunks = statement.rows_a_chunk > 0;
  if (chunks) statement.portal = next_portal();
  if (chunks) request.lead.reset();
  for (std::size_t i = 0; i < branches.size(); ++i) {
    statement.held = (request.look && request.look->in_steps) || (request.lead && i != *request.lead);
    statement.text = request.branches[i].text;
    statement.before = &request.branches[i].before;
    branches[i]->start(statement);
  }
  for (auto& branch : branches) {
    branch->backend().stream.set_target(request.waiter);
    branch->flush();
  }
}

void Fan::State::fail_with(const Error& error, std::size_t branch) {
  if (failed) return;
  failed = true;
  failure.kind = FanStep::kFailed;
  failure.sqlstate = error.sqlstate;
  failure.branch = branch;
  wire::append_error(failure.error, "ERROR", error);
}

void Fan::State::fail_with_branch(std::size_t at) {
  if (failed) return;
  failed = true;
  failure.kind = FanStep::kFailed;
  failure.sqlstate = branches[at]->error_sqlstate();
  failure.error = branches[at]->error();
  failure.branch = at;
}

// A shard's own words are worth more than that a connection was lost.
bool Fan::State::note_failures() {
  if (failed) return true;
  for (const bool lost : {false, true}) {
    for (std::size_t i = 0; i < branches.size() && !failed; ++i) {
      if (branches[i]->failed() && branches[i]->lost() == lost) fail_with_branch(i);
    }
  }
  return failed;
}

void Fan::State::pump() {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    Branch& branch = *branches[i];
    branch.flush();
    if (branch.backend().stream.readable()) (void)branch.read(kBranchBudget);
    std::string asides = branch.take_asides();
    // What all shards do alike is told once.
    if (!asides.empty() && (request.merge.kind != Merge::Kind::kOne || i == 0))
      request.client->compose() += asides;
  }
  if (request.lead && branches[*request.lead]->complete()) {
    request.lead.reset();
    for (auto& branch : branches) {
      branch->go();
      branch->flush();
    }
  }
}

// Whether the whole is still wanted.
void Fan::State::look() {
  if (failed || unwanted) return;
  if (request.still_wanted) {
    if (Status wanted = request.still_wanted(); !wanted) unwanted = wanted.error();
  }
  if (!unwanted && request.deadline.passed()) {
    unwanted = Error{.sqlstate = std::string(sqlstate::kQueryCanceled),
                     .message = "canceling statement due to statement timeout"};
  }
  const auto patience = request.slow_client_timeout;
  if (!unwanted && patience.count() > 0 && request.client_stream != nullptr && !request.client->empty() &&
      Deadline::at(client_moved + patience).passed()) {
    unwanted =
        Error{.sqlstate = std::string(sqlstate::kConnectionFailure), .message = "the client takes no data"};
  }
}

// Every shard has its snapshot. False: they are to be taken again, or whether they are is not known yet.
bool Fan::State::at_one_moment() {
  if (!request.look) return true;
  const std::optional<bool> one_moment = request.look->one_moment();
  if (!one_moment) return false;
  torn = !*one_moment;
  if (!torn && request.look->in_steps) {
    for (auto& branch : branches) {
      branch->go();
      branch->flush();
    }
  }
  request.look.reset();
  return !torn;
}

void Fan::State::begin_rows() {
  for (const auto& branch : branches) {
    if (!branch->described()) return;
  }
  if (!at_one_moment()) return;
  for (std::size_t i = 1; i < branches.size(); ++i) {
    if (Status same = agree_on_columns(*branches[0], *branches[i]); !same) return fail_with(same.error());
  }
  rows_begun = true;
  const std::string& description = branches[0]->description();
  const std::size_t columns = description.size() >= 2 ? wire::load_u16(description.data()) : 0;
  if (!description.empty()) {
    if (Status ok = merge.begin(columns); !ok) return fail_with(ok.error());
    auto shown = visible_description(description, request.merge.hidden_columns);
    if (!shown) return fail_with(shown.error());
    visible = std::move(*shown);
  }
  if (request.describe == FanRequest::Describe::kNo) return;
  if (!description.empty()) {
    told = true;
    wire::FrameWriter(request.client->compose(), wire::server::kRowDescription).bytes(visible);
  } else if (request.describe == FanRequest::Describe::kPortal) {
    told = true;
    wire::append_empty(request.client->compose(), wire::server::kNoData);
  }
}

// True when rows have moved.
bool Fan::State::make_rows() {
  if (!rows_begun) begin_rows();
  if (!rows_begun || failed) return false;
  if (visible.empty() && branches[0]->description().empty()) {
    const bool all = std::all_of(branches.begin(), branches.end(), [](auto& each) { return each->ended(); });
    state = all ? RowMerge::State::kEnd : RowMerge::State::kHungry;
    return false;
  }
  const std::uint64_t before = merge.rows_out();
  const bool flushed = request.client_stream != nullptr;
  // Asking a shard for more may read from it, and that moves what stands in its buffer.
  const bool in_place = flushed && !chunks;
  auto made =
      merge.step(branches, *request.client, in_place, most_rows, flushed ? kClientBudget : request.most_kept);
  if (!made) {
    fail_with(made.error());
    return false;
  }
  state = *made;
  cut = !flushed && request.client->kept_bytes() >= request.most_kept;
  const std::uint64_t rows = merge.rows_out() - before;
  told = told || rows > 0;
  most_rows -= std::min(rows, most_rows);
  if (chunks) {
    for (auto& branch : branches) {
      if (branch->row() || branch->ended() || branch->executing()) continue;
      branch->execute_more();
      branch->flush();
    }
  }
  return rows > 0;
}

// False: the client has gone.
bool Fan::State::flush_client() {
  if (request.client_stream == nullptr || request.client->empty()) return true;
  const std::size_t before = request.client->kept_bytes();
  const io::IoResult result = request.client->flush(*request.client_stream);
  if (result.kind == io::IoResult::kOk || request.client->kept_bytes() < before) {
    client_moved = request.waiter->loop().now();
  }
  return result.kind == io::IoResult::kOk || result.kind == io::IoResult::kWouldBlock;
}

// A limit ends it while the shards still have rows; a write to copies of one table ends on all of them.
bool Fan::State::at_end() const {
  return cut || (state == RowMerge::State::kEnd &&
                 (merge.limit_reached() || std::all_of(branches.begin(), branches.end(),
                                                       [](const auto& each) { return each->ended(); })));
}

bool Fan::State::something_readable() const {
  return std::any_of(branches.begin(), branches.end(), [](const auto& each) {
    return each->wants_to_read(kBranchBudget) && each->backend().stream.readable();
  });
}

void Fan::State::sleep_on() {
  for (auto& branch : branches) {
    branch->backend().stream.want(branch->wants_to_read(kBranchBudget), branch->sending());
  }
  if (request.client_stream != nullptr) {
    // Told once that there is more from the client is enough.
    request.client_stream->want(!request.client_stream->readable(), !request.client->empty());
  }
}

// A limit has been reached, or the rows are too many: what is behind it is read when it is little, or when
// cancelling would fail a transaction.
void Fan::State::cancel_rests() {
  if (!request.cancel || in_transaction) return;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    Branch& branch = *branches[i];
    if (canceled[i] || !branch.executing() || branch.sending()) continue;
    if (!torn && branch.bytes_read() < kFewBytes) continue;
    canceled[i] = true;
    request.cancel(branch.backend());
  }
}

// Everything is read to its ReadyForQuery, and nothing goes to the client.
io::Task<> Fan::State::settle() {
  for (auto& branch : branches) {
    branch->discard();
    branch->finish();
  }
  while (!failed && !unwanted && !stopping) {
    bool moved = false, all = true;
    for (auto& branch : branches) {
      branch->flush();
      if (branch->backend().stream.readable()) moved |= branch->read(kBranchBudget);
      (void)branch->take_asides();
      all = all && branch->settled();
    }
    if (all) break;
    look();
    cancel_rests();
    if (moved || unwanted) continue;
    for (auto& branch : branches) branch->backend().stream.want(!branch->settled(), branch->sending());
    (void)co_await request.waiter->wait(request.deadline);
  }
  auto abandoning = abandon(&branches, request.cancel, request.waiter);
  co_await std::move(abandoning);
}

// The step ends with rows left: every shard answers what was sent to it, so that its connection is free.
io::Task<> Fan::State::put_aside() {
  for (auto& branch : branches) branch->set_aside(true);
  for (;;) {
    bool moved = false, all = true;
    for (auto& branch : branches) {
      if (branch->complete()) branch->finish();
      // Outside a transaction a Sync would take the portal with it.
      if (in_transaction && !branch->executing() && !branch->synced()) branch->sync();
      branch->flush();
      if (branch->backend().stream.readable()) moved |= branch->read(SIZE_MAX);
      std::string asides = branch->take_asides();
      if (!asides.empty()) request.client->compose() += asides;
      const bool quiet = !in_transaction && !branch->executing() && !branch->complete();
      all = all && (quiet || branch->settled()) && !branch->sending();
    }
    if (note_failures() || all) break;
    look();
    if (unwanted) break;
    if (moved) continue;
    for (auto& branch : branches) branch->backend().stream.want(!branch->settled(), branch->sending());
    (void)co_await request.waiter->wait(request.deadline);
  }
  for (auto& branch : branches) {
    branch->set_aside(false);
    branch->leave();
  }
}

// After a suspension.
void Fan::State::resume() {
  for (auto& branch : branches) branch->backend().stream.set_target(request.waiter);
}

// What the step has come to, all branches being settled.
FanStep Fan::State::result() {
  if (torn) {
    for (std::size_t i = 0; i < branches.size(); ++i) {
      if (branches[i]->lost()) fail_with_branch(i);
    }
    if (!failed && !unwanted) return FanStep{.kind = FanStep::kFailed, .torn = true};
  }
  if (!failed && unwanted) {
    for (std::size_t i = 0; i < branches.size() && !failed; ++i) {
      // That a shard was cancelled, we know: why says the one who asked for it.
      const Branch& branch = *branches[i];
      if (branch.failed() && !branch.lost() && branch.error_sqlstate() != sqlstate::kQueryCanceled)
        fail_with_branch(i);
    }
    fail_with(*unwanted);
  }
  // Errors behind the last row that was wanted do not count, unless they have failed a transaction.
  const bool beyond = (merge.limit_reached() || cut) && !in_transaction;
  if (!failed && !beyond) (void)note_failures();
  std::string tag;
  if (!failed) {
    std::vector<std::string> tags;
    for (const auto& branch : branches) {
      if (branch->complete() || tags.empty()) tags.push_back(branch->tag());
    }
    const bool has_rows = !branches[0]->description().empty();
    if ((merge.limit_reached() || cut) && tags.front().empty()) tags.front() = "SELECT 0";
    auto merged = merged_tag(request.merge.kind, tags, has_rows, merge.rows_out() - rows_before);
    if (merged) {
      tag = std::move(*merged);
    } else {
      fail_with(merged.error());
    }
  }
  if (failed) {
    failure.told = told;
    failure.rows = merge.rows_out() - rows_before;
    return std::move(failure);
  }
  return FanStep{.kind = FanStep::kComplete,
                 .rows = merge.rows_out() - rows_before,
                 .tag = std::move(tag),
                 .cut = cut,
                 .told = told};
}

io::Task<FanStep> Fan::advance(std::uint64_t max_rows) {
  State& s = *state_;
  INVARIANT(!s.over, "a fan that has ended is not advanced");
  s.most_rows = max_rows == 0 ? UINT64_MAX : max_rows;
  s.rows_before = s.merge.rows_out();
  s.state = RowMerge::State::kHungry;
  if (s.started) {
    s.resume();
  } else {
    s.start(max_rows);
  }
  bool suspended = false;
  for (;;) {
    s.look();
    if (s.unwanted) break;
    s.pump();
    bool moved = s.make_rows();
    const bool was_full = s.request.client->kept_bytes() >= kClientBudget;
    if (!s.flush_client()) {
      s.unwanted =
          Error{.sqlstate = std::string(sqlstate::kConnectionFailure), .message = "the client has gone"};
    }
    if (s.unwanted || s.note_failures()) break;
    moved |= was_full && s.request.client->kept_bytes() < kClientBudget;
    suspended = s.most_rows == 0;
    if (s.torn || suspended || s.at_end()) break;
    if (moved || s.something_readable()) continue;
    s.sleep_on();
    Deadline deadline = s.request.deadline;
    if (s.request.slow_client_timeout.count() > 0 && !s.request.client->empty()) {
      deadline = deadline.sooner(Deadline::at(s.client_moved + s.request.slow_client_timeout));
    }
    (void)co_await s.request.waiter->wait(deadline);
  }
  if (suspended && !s.torn) {
    auto putting = s.put_aside();
    co_await std::move(putting);
    if (!s.failed && !s.unwanted) {
      co_return FanStep{
          .kind = FanStep::kSuspended, .rows = s.merge.rows_out() - s.rows_before, .told = s.told};
    }
  }
  auto settling = s.settle();
  co_await std::move(settling);
  FanStep step = s.result();
  s.over = true;
  co_return step;
}

io::Task<> Fan::stop() {
  State& s = *state_;
  if (!s.started || s.over) {
    s.over = true;
    co_return;
  }
  s.resume();
  s.stopping = true;
  auto settling = s.settle();
  co_await std::move(settling);
  s.over = true;
}

Result<std::string> visible_description(std::string_view body, int hidden) {
  if (hidden == 0) return std::string(body);
  KG_TRY(auto columns, wire::read_row_description(body));
  if (columns.size() < static_cast<std::size_t>(hidden))
    return fail(sqlstate::kInternal, "a plan hides more columns than there are");
  columns.resize(columns.size() - static_cast<std::size_t>(hidden));
  std::string frame;
  wire::append_row_description(frame, columns);
  return frame.substr(wire::kHeaderBytes);
}

}  // namespace kintsugi::executor
