// Careful mode: the router's lease has run out, so nobody waits for it any more when the map changes, and it
// may not trust its own (docs/life_of_a_move.md). Every statement is an errand then, in a transaction, and the
// shards are asked in that same transaction whether their local maps say more than this router knows.
//
// What was sent while the lease was valid and is answered when it is not: rows are thrown away and read again,
// carefully. An answer that had begun while it was valid is true to its end: its snapshot is older than its
// first row. What a write did is true whenever it is told: the shard would have refused it.
#include <algorithm>

#include "base/log.h"
#include "executor/moved.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kControlTimeout = 30s;

Error moved_on(const std::string& shard) {
  return {.sqlstate = std::string(executor::kMovedState),
          .message = std::string(executor::kMovedMessage),
          .detail = "Shard " + shard + " knows of a change of the shard map that this router has not heard of.",
          .hint = "Retry the transaction."};
}

}  // namespace

// For what is sent now: the connection that it is sent on is there already.
bool Session::careful() const {
  return routes() && waiter_.loop().now() >= worker_.shared().maps->lease_end();
}

// For what has been read now. The round's time is older than what was sent in this very round: then the clock
// is asked.
bool Session::arrived_in_doubt() const {
  if (!routes()) return false;
  const auto round = waiter_.loop().now();
  const auto now = sent_in_round_ == round ? Clock::now() : round;
  return now >= worker_.shared().maps->lease_end();
}

bool Session::lease_has_run_out() const {
  return routes() && Clock::now() >= worker_.shared().maps->lease_end();
}

// Fails as the fence would when the shard knows more than a map of this statement's epoch.
std::string Session::check_statement() const {
  const std::uint64_t epoch = planned_epoch_ != 0 ? planned_epoch_ : worker_.map()->epoch();
  return "DO $kintsugi$BEGIN IF NOT coalesce(kintsugi.holds(" + std::to_string(epoch) +
         "), false) THEN RAISE EXCEPTION '" + std::string(executor::kMovedMessage) + "' USING ERRCODE = '" +
         std::string(executor::kMovedState) +
         "', DETAIL = 'The shard knows of a change of the shard map that this router has not heard of.', HINT "
         "= "
         "'Retry the transaction.'; END IF; END$kintsugi$";
}

// Asks every shard that the session has used, after the fact: what has been read is as the shard had it before,
// and what has been written in a transaction that is still open cannot have come behind a fence.
io::Task<std::optional<Error>> Session::shards_moved_on(bool writes) {
  const std::string question = "SELECT kintsugi.holds(" + std::to_string(planned_epoch_) +
                               "), pg_catalog.current_setting('transaction_isolation') = 'read committed'";
  for (Place& place : away_) {
    if (place.lease->broken || (txn_.open && !place.begun)) continue;
    auto asking =
        executor::run_control_query(place.lease.get(), question, &waiter_, Deadline::in(kControlTimeout));
    auto rows = co_await std::move(asking);
    if (!rows) co_return rows.error();
    if (rows->size() != 1 || rows->front().size() != 2 || rows->front()[0] != "t")
      co_return moved_on(place.lease->shard);
    if (writes && place.wrote && rows->front()[1] != "t") {
      co_return Error{.sqlstate = std::string(sqlstate::kMapReadOnly),
                      .message =
                          "this router cannot reach the map store, and until it can it writes only in READ "
                          "COMMITTED transactions",
                      .hint = "Its snapshot could not see that a shardlet has moved."};
    }
  }
  co_return std::nullopt;
}

// Rows have come for which nobody vouches. True: they are not to be told.
bool Session::doubt_answer() {
  if (!relay_.awaits_read() || relay_.within_message()) return false;
  if (unit_.on && relay_.untold() && relay_.awaits_reads_alone()) {
    relay_.drop_answers();
    unit_.on = false;
    unit_.refused = unit_.doubted = true;
    measured_.statements = measured_.failed = 0;  // as in unit_was_refused()
    if (!relay_.will_end()) {
      wire::append_sync(lease_->out.compose());
      relay_.expect({.kind = executor::Expected::kSync, .from = executor::Expected::kDropped, .barrier = true},
                    to_client_);
    }
    unsynced_ = 0;
    executed_ = false;
    blocked_ = Blocked::kOnAnswers;
    return false;
  }
  const bool reads_alone = relay_.awaits_reads_alone();
  lose_answers(reads_alone);
  return true;
}

// It cannot be asked again: the transaction fails. What it may have done on this shard is undone with it.
void Session::lose_answers(bool reads_alone) {
  const Error error = moved_on(lease_->shard);
  if (!txn_.open || !begun_ || txn_.implicit || !reads_alone) {
    backend_lost("the router was away for too long to tell what it has answered");
    return;
  }
  plan_ends();
  end_unit();
  lease_->broken = true;
  if (relay_.abandon(error, to_client_, wire::TransactionStatus::kFailed)) local_skip_ = true;
  txn_.failed = txn_.lost = true;
  relay_.end();
  lease_->stream.want(false, false);
  away_.push_back({here_, pool_, std::move(lease_), pins_, begun_, wrote_});
  lease_ = {};
  pins_ &= executor::kPinMode;
  begun_ = wrote_ = untouched_ = false;
  unsynced_ = 0;
  effects_ = 0;
  deallocating_.clear();
  blocked_ = Blocked::kNo;
  unfed_ = !in_.empty();
}

}  // namespace kintsugi::frontend
