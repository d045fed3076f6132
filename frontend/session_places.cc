// The connections that a session holds at one time: one in use, and those of other shards that are parts of its
// transaction or pinned to it.
#include "base/invariant.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"

namespace kintsugi::frontend {

using executor::Expected;

ShardId Session::home() const {
  const shardmap::Shard* shard = worker_.map()->home_shard();
  return shard == nullptr ? 0 : shard->id;
}

bool Session::in_transaction() const {
  return txn_.open || (lease_ && lease_->status != wire::TransactionStatus::kIdle);
}

// Between these two an answer may still come that an older map has led to.
void Session::plan_begins() {
  ++measured_.statements;
  seen_.used = true;
  if (planned_epoch_ == 0) planned_epoch_ = worker_.map()->epoch();
}

void Session::plan_ends() {
  if (measured_.statements != 0) statement_ended();
  if (std::exchange(planned_epoch_, 0) != 0) worker_.statement_ended();
}

// What the client is told at the end of a statement that no shard has answered.
wire::TransactionStatus Session::status() const {
  if (!txn_.open || txn_.implicit) return wire::TransactionStatus::kIdle;
  if (txn_.failed) return wire::TransactionStatus::kFailed;
  if (lease_ && lease_->status == wire::TransactionStatus::kFailed) return wire::TransactionStatus::kFailed;
  return wire::TransactionStatus::kInTransaction;
}

Result<executor::BackendPool*> Session::pool_of(ShardId shard) {
  const shardmap::MapPtr& map = worker_.map();
  if (std::exchange(pools_version_, worker_.routing().version) != worker_.routing().version) pools_.clear();
  for (const PoolAt& known : pools_) {
    if (known.shard == shard) return known.use.get();
  }
  const shardmap::Shard* found = map->shard(shard);
  if (found == nullptr) {
    return fail(sqlstate::kShardUnreachable, "there is no shard yet",
                "An administrator makes one: CREATE SHARD name DSN 'host=... dbname=...'.");
  }
  KG_TRY(auto login, worker_.shared().login_for(*found, user_.user, user_.password, user_.keys));
  executor::BackendPool& pool = worker_.pools().pool_for(login, startup_);
  pools_.push_back({shard, executor::PoolUse(pool)});
  return &pool;
}

void Session::set_pool(ShardId shard, executor::BackendPool* pool) {
  here_ = shard;
  if (pool == pool_) return;
  pool_ = pool;
  pool_use_ = executor::PoolUse(*pool);
}

// A connection to `where`, with the client's transaction opened on it; 0: any will do. The quick way is an idle
// connection that already is as the client wants it. Anything else is obtain_backend's.
Session::Ready Session::ensure_backend(ShardId where) {
  if (backend_error_) return Ready::kRejected;
  if (lease_) {
    if (where == 0 || where == here_) return ensure_begun();
    if (!leave_place()) return Ready::kBlocked;
  }
  if (where == 0) where = away_.empty() ? home() : away_.front().shard;
  if (take_back(where)) {
    if (begun_ || lease_->applied == settings_) {
      begin_lease();
      return ensure_begun();
    }
    taken_back_ = true;
    blocked_ = Blocked::kOnBackend;
    return Ready::kBlocked;
  }
  if (txn_.whole) {
    backend_error_ = joins_too_late(where);
    return Ready::kRejected;
  }
  if (txn_.sets_here) {
    backend_error_ = lacks_settings(where);
    return Ready::kRejected;
  }
  auto pool = pool_of(where);
  if (!pool) {
    backend_error_ = std::move(pool).error();
    return Ready::kRejected;
  }
  set_pool(where, *pool);
  lease_ = pool_->try_acquire(settings_);
  if (lease_ && lease_->applied == settings_ && lease_->reported == reported_) {
    begin_lease();
    return ensure_begun();
  }
  blocked_ = Blocked::kOnBackend;
  return Ready::kBlocked;
}

// The transaction is opened and its answer awaited: a statement that were sent behind a BEGIN that fails would
// be a transaction of its own.
Session::Ready Session::ensure_begun() {
  if (!txn_.open || begun_) return Ready::kYes;
  std::string text = txn_.begin;
  for (const std::string& statement : txn_.prelude) text.append(";\n").append(statement);
  wire::append_query(lease_->out.compose(), text);
  relay_.expect({.kind = Expected::kQuery, .from = Expected::kHidden}, to_client_);
  begun_ = untouched_ = true;
  block_until_drained();
  return Ready::kBlocked;
}

// Before another connection is used: this one has to have answered, and goes back to its pool or is kept for
// later. False: not yet.
bool Session::leave_place() {
  give_up_unit();
  if (!relay_.idle() || unsynced_ > 0 || !lease_->out.empty()) {
    if (unsynced_ > 0 && !relay_.swallows_sync()) {
      barrier_begins_ = !txn_.open && executed_;
      if (barrier_begins_) {
        // What runs between two Syncs is one transaction. It becomes one of the router's own.
        std::string& out = lease_->out.compose();
        wire::append_parse(out, "", "BEGIN", {});
        relay_.expect({.kind = Expected::kParse, .from = Expected::kHidden}, to_client_);
        wire::append_bind(out, "", "", wire::BindValues{});
        relay_.expect({.kind = Expected::kBind, .from = Expected::kHidden}, to_client_);
        wire::append_execute(out, "", 0);
        relay_.expect({.kind = Expected::kExecute, .from = Expected::kHidden}, to_client_);
        lease_->unnamed_owner = executor::Backend::kUnknownOwner;
        txn_ = {.open = true, .implicit = true, .begin = "BEGIN", .queried = true};
        begun_ = true;
      }
      wire::append_sync(lease_->out.compose());
      relay_.expect({.kind = Expected::kSync, .from = Expected::kHidden, .barrier = true}, to_client_);
      unsynced_ = 0;
    }
    block_until_drained();
    return false;
  }
  if (must_look()) {
    blocked_ = Blocked::kOnAnswers;
    return false;
  }
  put_away();
  return true;
}

// The relay is idle: the connection is kept aside, or given back when nothing holds it.
void Session::put_away() {
  if (!lease_) return;
  INVARIANT(relay_.idle(), "a connection is put away with nothing outstanding");
  const bool held = lease_->status != wire::TransactionStatus::kIdle || pins_ != 0;
  if (!held) {
    release_backend();
    return;
  }
  if (effects_ != 0) {
    look_at_ = here_;
    look_effects_ |= std::exchange(effects_, 0);
  }
  // The transaction has failed on every shard, whichever is asked next.
  if (txn_.open && lease_->status == wire::TransactionStatus::kFailed) txn_.failed = true;
  reported_ = lease_->reported;
  if (relay_.attached()) relay_.end();
  lease_->stream.want(false, false);
  away_.push_back({here_, pool_, std::move(lease_), pins_, begun_, wrote_});
  lease_ = {};
  pins_ &= executor::kPinMode;
  begun_ = wrote_ = untouched_ = false;
}

bool Session::take_up(ShardId shard) {
  if (!take_back(shard)) return false;
  begin_lease();
  return true;
}

bool Session::take_back(ShardId shard) {
  for (auto at = away_.begin(); at != away_.end(); ++at) {
    if (at->shard != shard) continue;
    set_pool(shard, at->pool);
    lease_ = std::move(at->lease);
    pins_ = at->pins;
    begun_ = at->begun;
    wrote_ = at->wrote;
    away_.erase(at);
    return true;
  }
  return false;
}

// A connection that was kept gets what the client has set since on another one.
io::Task<Status> Session::catch_up(Place* place) {
  if (place->begun) co_return Status{};
  auto applying = apply_settings(place->lease.get());
  co_return co_await std::move(applying);
}

// The transaction has ended everywhere: what nothing holds goes back. The connection that is to be looked at
// stays for it; others that had the same settings made on them are made like new.
void Session::release_places() {
  const bool set = txn_.sets;
  if (set) names_known_ = false;
  txn_ = {};
  seen_ = {};
  begun_ = wrote_ = false;
  for (auto at = away_.begin(); at != away_.end();) {
    Place& place = *at;
    const bool begun = std::exchange(place.begun, false);
    place.wrote = false;
    const bool look = look_effects_ != 0 && place.shard == look_at_;
    if ((place.pins != 0 || look) && !place.lease->broken) {
      ++at;
      continue;
    }
    place.lease->stream.set_target(nullptr);
    if (begun && set && !place.lease->broken) worker_.clean_up(std::move(place.lease), true);
    at = away_.erase(at);
  }
}

// A connection with the client's settings. `first` is one that the pool gave already, or that was `kept` and
// has what no other one has.
io::Task<Result<executor::BackendLease>> Session::acquire(executor::BackendPool* pool,
                                                          executor::BackendLease first, bool kept) {
  constexpr int kTries = 3;
  executor::BackendLease lease = std::move(first);
  for (int attempt = 1;; ++attempt) {
    if (!lease) {
      client_.want(!client_eof_, false);
      auto acquiring =
          pool->acquire(settings_, &waiter_, Deadline::in_or_never(worker_.pools().config().wait_timeout),
                        [this] { return still_wanted(); });
      auto acquired = co_await std::move(acquiring);
      if (!acquired) co_return fail(std::move(acquired).error());
      lease = std::move(*acquired);
    }
    lease->stream.set_target(&waiter_);
    auto applying = apply_settings(lease.get());
    Status applied = co_await std::move(applying);
    if (applied) co_return lease;
    lease->broken = true;
    lease.release();
    if (kept || attempt == kTries) co_return fail(std::move(applied).error());
  }
}

}  // namespace kintsugi::frontend
