// The session and its connection: when one is taken, what is made of it before and after, when it goes back.
#include <sys/socket.h>

#include <cerrno>

#include "base/log.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 10s;

}  // namespace

io::Task<> Session::obtain_backend() {
  canceled_ = false;
  const auto asked = Deadline::Clock::now();
  auto acquiring = acquire(pool_, std::move(lease_), std::exchange(taken_back_, false));
  auto acquired = co_await std::move(acquiring);
  measured_.waited += Deadline::Clock::now() - asked;
  if (acquired) {
    lease_ = std::move(*acquired);
    tell_parameters();
    begin_lease();
  } else {
    backend_error_ = std::move(acquired).error();
    pins_ &= executor::kPinMode;
  }
  if (blocked_ == Blocked::kOnBackend) {
    blocked_ = Blocked::kNo;
    unfed_ = !in_.empty();
  }
}

// The error of a setting that is refused is the client's own: it set it.
io::Task<Status> Session::apply_settings(executor::Backend* backend) {
  if (backend->applied == settings_) co_return Status{};
  const std::string sql = executor::settings_change_sql(*backend->applied, *settings_);
  if (!sql.empty()) {
    std::string notifications;  // one that was kept may listen
    auto running =
        executor::run_control_query(backend, sql, &waiter_, Deadline::in(kControlTimeout), &notifications);
    auto done = co_await std::move(running);
    if (!notifications.empty()) to_client_.compose() += notifications;
    if (!done) co_return fail(std::move(done).error());
  }
  backend->applied = settings_;
  co_return Status{};
}

void Session::begin_lease() {
  lease_->stream.set_target(&waiter_);
  lease_->stream.want(true, false);
  relay_.begin(lease_.get());
}

void Session::tell_parameters() {
  if (lease_->reported == reported_ || !logged_in_) return;
  if (!reported_->entries().empty()) {
    for (const auto& [name, value] : lease_->reported->entries()) {
      const std::string* told = reported_->find(name);
      if (told == nullptr || *told != value) wire::append_parameter_status(to_client_.compose(), name, value);
    }
  }
  reported_ = lease_->reported;
}

Status Session::still_wanted() {
  if (canceled_) return fail(sqlstate::kQueryCanceled, "canceling statement due to user request");
  if (deadlocked_) return fail(executor::deadlock_detected());
  if (worker_.ending())
    return fail(sqlstate::kAdminShutdown, "terminating connection due to administrator command");
  if (client_.readable()) {
    char byte = 0;
    const ssize_t got = recv(client_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    // PostgreSQL runs what was sent before an orderly end of the connection, and a client that waits is no
    // exception.
    if (got == 0) client_eof_ = true;
    if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      client_eof_ = true;
      ended_ = true;
      return fail(sqlstate::kConnectionFailure, "the client has gone");
    }
    client_.want(false, false);  // it has sent more: that can wait
  }
  return {};
}

void Session::note_events() {
  if (!relay_.has_events()) return;
  const executor::RelayEvents events = relay_.take_events();
  if (events.discard_all || events.deallocate_all) statements_.clear();
  if (events.discard_all) unnamed_.valid = false;
  for (int i = 0; i < events.deallocates && !deallocating_.empty(); ++i) {
    auto at = statements_.find(deallocating_.front());
    if (at != statements_.end()) {
      if (lease_) lease_->prepared.erase(at->second->statement->id);
      statements_.erase(at);
    }
    deallocating_.pop_front();
  }
  measured_.failed += events.errors;
  if (events.errors > 0 && unit_.doubted)
    unit_.refused = unit_.doubted = false;  // what it stood behind has failed
  if (events.preparation_failed) preparation_failed_ = true;
  if (events.ddl && worker_.services().catalogs != nullptr) {
    defined_ = true;
    worker_.services().catalogs->refresh("a definition", [] {});
  }
  if (events.barrier_failed) {
    local_skip_ = true;
    if (txn_.implicit && barrier_begins_) {  // its BEGIN was skipped with the rest
      txn_ = {};
      begun_ = false;
    } else if (txn_.implicit) {
      txn_.failed = true;
    }
  }
  if (events.hidden_query_failed) {
    backend_error_ = events.hidden_query_failed;
    begun_ = false;
  }
  if (events.sync_swallowed) ++unsynced_;
  if (events.moved) unit_was_refused();
  if (events.unnamed_failed != 0 && events.unnamed_failed == unnamed_.version) unnamed_.valid = false;
}

bool Session::must_look() const {
  if (effects_ == 0 || lease_->status != wire::TransactionStatus::kIdle || unsynced_ > 0) return false;
  // With one connection of its own there is nothing to find out, but that a RESET may have taken its name. Of
  // several each is to have what was set on another.
  if ((pins_ & executor::kPinMode) != 0) {
    if (routes() && worker_.map()->shards().size() > 1) return (effects_ & (kMaySet | kMayCall)) != 0;
    return user_.has_application_name && (effects_ & kMaySet) != 0;
  }
  return (effects_ & (kMaySet | kMayPin | kMayCall)) != 0 || (pins_ != 0 && (effects_ & kMayUnpin) != 0);
}

// PostgreSQL does not list settings with a dot. Those that the database's functions may set are read off their
// bodies.
io::Task<> Session::learn_function_settings() {
  const std::shared_ptr<executor::PoolSlots> slots = pool_->slots();
  auto names = slots->function_settings();
  if (!names) {
    auto asking = executor::run_control_query(lease_.get(), executor::function_settings_sql(), &waiter_,
                                              Deadline::in(kControlTimeout));
    const auto rows = co_await std::move(asking);
    if (!rows) co_return;  // the look itself meets the same error
    names.emplace();
    for (const auto& row : *rows) {
      if (!row.empty() && row[0]) names->push_back(*row[0]);
    }
    slots->note_function_settings(*names);
  }
  note_custom_settings({.custom_settings = std::move(*names)});
}

// Outside a transaction, after a statement that may have left something in the session: what is really there?
io::Task<> Session::look_at_session_state() {
  const unsigned for_good = pins_ & (executor::kPinOther | executor::kPinMode);
  std::string notifications;
  if ((effects_ & kMayCall) != 0) {
    auto learning = learn_function_settings();
    co_await std::move(learning);
  }
  auto asking = executor::run_control_query(
      lease_.get(), executor::session_state_sql(pool_->slots()->login()->role, custom_settings_), &waiter_,
      Deadline::in(kControlTimeout), &notifications);
  auto rows = co_await std::move(asking);
  to_client_.compose() += notifications;
  if (!rows) {
    if (lease_->broken) {
      backend_lost(rows.error().message);
      co_return;
    }
    // The client's own settings can make even this fail (a statement_timeout of 1 ms). Then it keeps the
    // connection, which is always right, and the next occasion is another try.
    log::debug("a session's state could not be read", {{"user", user_.user}, {"error", rows.error().message}});
    pins_ |= executor::kPinUnknown;
    effects_ = 0;
    co_return;
  }
  executor::SessionState state = executor::read_session_state(*rows);
  lease_->applied = state.settings;
  if (settings_ != state.settings) names_known_ = false;
  settings_ = state.settings;
  // RESET leads back to what the startup packet said, and application_name is the one thing of it that is set
  // here.
  if (user_.has_application_name && settings_->find("application_name") == nullptr) {
    settings_ = settings_->with("application_name", user_.application_name);
  }
  pins_ = state.pins | for_good;
  effects_ = 0;
  if ((pins_ & executor::kPinMode) != 0 && lease_->applied != settings_) {
    auto applying = apply_settings(lease_.get());
    if (Status applied = co_await std::move(applying); !applied && lease_->broken)
      backend_lost(applied.error().message);
  }
}

// Nothing is outstanding. True when that lets something go on.
bool Session::settle() {
  bool moved = false;
  plan_ends();
  preparing_ = false;
  if (unsynced_ == 0) {
    end_unit();
    preparings_lost_ = 0;
  }
  if (blocked_ == Blocked::kOnAnswers && (!lease_ || lease_->cancels->under_way == 0)) {
    blocked_ = Blocked::kNo;
    unfed_ = !in_.empty();
    moved = unfed_;
  }
  if (!lease_) return moved;
  const bool idle = lease_->status == wire::TransactionStatus::kIdle && unsynced_ == 0;
  if (idle && !deallocating_.empty()) deallocating_.clear();
  if (idle && begun_) {
    // PostgreSQL has ended the transaction that it had all of.
    if (txn_.sets) names_known_ = false;
    txn_ = {};
    seen_ = {};
    begun_ = wrote_ = false;
  }
  if (idle && pins_ == 0 && !relay_.skipping() && lease_->cancels->under_way == 0 && !preparation_failed_) {
    release_backend();
  }
  return moved;
}

void Session::release_backend() {
  plan_ends();
  if (reported_ != lease_->reported) {
    reported_ = lease_->reported;
    const std::string* name = user_.application_name.empty() ? nullptr : reported_->find("application_name");
    if (name != nullptr && name->empty())  // the relay has told it otherwise
      reported_ = reported_->with("application_name", user_.application_name);
  }
  effects_ = 0;
  if (relay_.attached()) relay_.end();
  lease_.release();
}

void Session::cancel(std::function<void()> on_done) {
  if (lease_ && !relay_.idle()) {
    relay_.say_instead_of_canceled({});
    worker_.send_cancel(*pool_, *lease_, key_, std::move(on_done));
    return;
  }
  if (blocked_ == Blocked::kOnBackend || blocked_ == Blocked::kOnErrand || blocked_ == Blocked::kOnCommands) {
    canceled_ = true;
    waiter_.notify();
  }
  on_done();
}

}  // namespace kintsugi::frontend
