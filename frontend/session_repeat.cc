// A statement that the fence of a move has refused is run again on the next map. The shard has refused it
// whole, the transaction there had done nothing else, the client has been told nothing: so nobody can tell it
// from one that came a moment later. What cannot be repeated so gets the shard's 40001.
//
// On the way of bytes it is the client's messages that come again, from the first Bind of the batch (or the
// query) to where the client is. An errand makes another plan.
#include <algorithm>

#include "executor/moved.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;
using executor::Expected;

constexpr auto kControlTimeout = 10s;
constexpr auto kTryAgainAfter = 300ms;
constexpr std::size_t kMostRepeated = 1 << 20;  // bytes of messages that are kept to come again
constexpr std::size_t kMostKept = 256;          // of the buffer, while nothing runs

}  // namespace

// The next message to be sent may be the first of a unit: the transaction on this connection, when there is
// one, has done nothing yet, and neither has the batch.
void Session::begin_unit(bool writes) {
  if (unit_.on) {
    unit_.writes |= writes;
    if (writes) relay_.keep_back();
    return;
  }
  if (executed_ || (lease_->status != wire::TransactionStatus::kIdle && !untouched_)) return;
  if (relay_.awaits_read()) return;  // of a query before it, which would not come again with it
  unit_.on = true;
  unit_.closed = false;
  unit_.writes = writes;
  unit_.version = worker_.routing().version;
  unit_.bytes.clear();
  relay_.begin_unit(writes);
}

void Session::note_in_unit(std::string_view message, char type) {
  unit_.bytes.append(message);
  unit_.closed = type == wire::client::kSync || type == wire::client::kQuery;
  if (!relay_.untold() || unit_.bytes.size() > kMostRepeated) give_up_unit();
}

// It cannot be repeated from here on: something else follows, or the client wants to know what is.
void Session::give_up_unit() {
  if (!unit_.on) return;
  unit_.on = false;
  relay_.tell(to_client_);
}

void Session::end_unit() {
  unit_.on = false;
  repeat_until_.reset();
  unit_.bytes.clear();
  if (unit_.bytes.capacity() > kMostKept) std::string().swap(unit_.bytes);
}

void Session::expect(Expected&& expected) {
  if (unit_.on && unit_.closed) give_up_unit();
  expected.of_unit = unit_.on;
  relay_.expect(std::move(expected), to_client_);
}

// The fence has refused the unit. When the shard has come to an end with it, it is run again.
void Session::unit_was_refused() {
  unit_.on = false;
  unit_.refused = true;
  measured_.statements = measured_.failed = 0;  // it is counted when it has run, from when it came
  if (relay_.skipping()) {
    relay_.sync_sent();
    wire::append_sync(lease_->out.compose());
    relay_.expect({.kind = Expected::kSync, .from = Expected::kHidden}, to_client_);
  }
  unsynced_ = 0;
  executed_ = false;
  blocked_ = Blocked::kOnAnswers;
}

io::Task<> Session::repeat_unit() {
  unit_.refused = false;
  const bool doubted = std::exchange(unit_.doubted, false);
  again_ = true;
  plan_ends();
  auto taking_back = take_back([doubted, shard = here_](const Place& place) {
    return place.begun &&
           (doubted ? place.shard == shard : place.lease->status == wire::TransactionStatus::kFailed);
  });
  co_await std::move(taking_back);
  txn_.failed = false;  // it had not, or there would have been no unit
  if (doubted) {
    in_.insert(0, unit_.bytes);
    unit_.bytes.clear();
    co_return;
  }
  if (!repeat_until_) repeat_until_ = Deadline::in(worker_.shared().config.limits.hold_timeout);
  auto holding = hold("", unit_.version, *repeat_until_);
  co_await std::move(holding);
  in_.insert(0, unit_.bytes);
  unit_.bytes.clear();
}

// These parts of the transaction have never been: they begin anew when they are needed.
io::Task<> Session::take_back(std::function<bool(const Place&)> which) {
  for (auto at = away_.begin(); at != away_.end();) {
    Place& place = *at;
    if (!which(place)) {
      ++at;
      continue;
    }
    auto rolling_back =
        executor::run_control_query(place.lease.get(), "ROLLBACK", &waiter_, Deadline::in(kControlTimeout));
    if (auto done = co_await std::move(rolling_back); !done) place.lease->broken = true;
    place.begun = place.wrote = false;
    at = place.lease->broken ? away_.erase(at) : std::next(at);
  }
}

// ---- errands ----

bool Session::plan_is_old(std::uint64_t version) const {
  return worker_.routing().version != version;
}

// Whether the statement that ended so may be run again; then it is time to make another plan.
io::Task<bool> Session::wait_to_repeat(StatementEnd* end, std::uint64_t version, Deadline deadline) {
  if (end->again && !ended_ && !deadline.passed()) {
    deadlocked_ = false;
    co_return true;
  }
  if (!end->moved || ended_) co_return false;
  if (end->unsent) co_return true;
  auto holding = hold("", version, deadline);
  co_await std::move(holding);
  if (!backend_error_) co_return true;
  *end = StatementEnd::refused(*std::exchange(backend_error_, std::nullopt));
  co_return false;
}

Deadline Session::hold_deadline() const {
  return Deadline::in(worker_.shared().config.limits.hold_timeout);
}

// While a shardlet is handed over its statements wait here. The next map says where they go. A shard that has
// refused without the map's saying so may let them in without another one: a crash has closed a guard again,
// and the job opens it. So it is asked now and then.
io::Task<> Session::hold(std::string shardlet, std::uint64_t seen, Deadline deadline) {
  if (seen_.ask) {
    auto asking = ask_isolation();
    co_await std::move(asking);
    co_return;
  }
  if (txn_.due) {
    auto taking = take_one_snapshot();
    co_await std::move(taking);
    co_return;
  }
  held_ = true;
  const auto began = Deadline::Clock::now();
  const Deadline until = shardlet.empty() ? deadline.sooner(Deadline::in(kTryAgainAfter)) : deadline;
  worker_.load().hold_begins();
  while (!plan_is_old(seen) && !until.passed() && !backend_error_) {
    if (Status wanted = still_wanted(); !wanted) backend_error_ = std::move(wanted).error();
    if (!backend_error_) (void)co_await waiter_.wait(until);
  }
  held_ = false;
  const auto waited = Deadline::Clock::now() - began;
  measured_.held += waited;
  worker_.load().hold_ends(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(waited).count()));
  if (!plan_is_old(seen) && deadline.passed() && !backend_error_) backend_error_ = held_too_long(shardlet);
}

Error Session::held_too_long(const std::string& shardlet) const {
  if (careful()) {
    return {.sqlstate = std::string(sqlstate::kMapReadOnly),
            .message = "a shard knows of a change of the shard map that this router has not heard of",
            .hint = "The router cannot reach the map store. Repeat the statement when it can."};
  }
  return {.sqlstate = std::string(sqlstate::kQueryCanceled),
          .message = (shardlet.empty() ? "what the statement writes to" : "shardlet " + shardlet) +
                     " is being handed over to another shard and was not free in time",
          .hint = "Repeat the statement. limits.hold_timeout is " +
                  std::to_string(worker_.shared().config.limits.hold_timeout.count()) + " ms."};
}

void Session::routing_changed(const shardmap::MapPtr& before) {
  note_map(before);
  if (held_) waiter_.notify();
}

}  // namespace kintsugi::frontend
