#include "executor/pool.h"

#include <algorithm>

#include "base/log.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;

constexpr auto kSweepEvery = 10s;
constexpr auto kIsolationKnown = 1s;   // ALTER ROLE ... SET, a reload of the configuration
constexpr auto kFunctionsKnown = 60s;  // another router may have made one
constexpr auto kForgetAfter = 60s;     // a pool without users and connections
constexpr auto kImpatience = 20ms;     // a queue that stands this long is made known to every thread
constexpr std::size_t kLookedAt = 8;   // idle connections looked at for one with the right settings

Error waited_too_long(const PoolSlots& slots, milliseconds waited) {
  return Error{.sqlstate = std::string(sqlstate::kLimitReached),
               .message = "no connection to shard " + slots.login()->shard + " became free within " +
                          std::to_string(waited.count()) + " ms",
               .detail = std::to_string(slots.open()) + " of " + std::to_string(slots.limit()) +
                         " connections are in use, " + std::to_string(slots.waiting.load()) + " clients wait.",
               .hint = "Raise pool.size or pool.wait_timeout, or look for transactions that stay open."};
}

}  // namespace

bool PoolSlots::try_reserve() {
  int open = open_.load(std::memory_order_relaxed);
  while (open < limit_) {
    if (open_.compare_exchange_weak(open, open + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

SettingsRef PoolSlots::greeting(const SettingsRef& startup) {
  std::lock_guard lock(greetings_mutex_);
  auto at = greetings_.find(startup);
  return at != greetings_.end() ? at->second : Settings::none();
}

void PoolSlots::note_greeting(const SettingsRef& startup, const SettingsRef& reported) {
  std::lock_guard lock(greetings_mutex_);
  greetings_[startup] = reported;
  if (greetings_.size() < 2 * greetings_kept_ + 16) return;
  std::erase_if(greetings_,
                [](const auto& entry) { return entry.first.use_count() == 1; });  // nobody has these
  greetings_kept_ = greetings_.size();
}

std::optional<std::vector<std::string>> PoolSlots::function_settings() {
  std::lock_guard lock(functions_mutex_);
  if (!functions_ || functions_->generation != schema_generation() || functions_->until.passed())
    return std::nullopt;
  return functions_->names;
}

void PoolSlots::note_function_settings(std::vector<std::string> names) {
  std::lock_guard lock(functions_mutex_);
  functions_ = {std::move(names), schema_generation(), Deadline::in(kFunctionsKnown)};
}

std::optional<std::string> PoolSlots::default_isolation() {
  std::lock_guard lock(functions_mutex_);
  if (!isolation_ || isolation_->second.passed()) return std::nullopt;
  return isolation_->first;
}

void PoolSlots::note_default_isolation(std::string name) {
  std::lock_guard lock(functions_mutex_);
  isolation_ = {std::move(name), Deadline::in(kIsolationKnown)};
}

void BackendLease::release() {
  if (backend_ != nullptr) pool_->take_back(std::move(backend_));
}

PoolUse::PoolUse(BackendPool& pool) : pool_(&pool) {
  ++pool.uses_;
  pool.forgettable_ = true;
}

PoolUse::~PoolUse() {
  if (pool_ != nullptr && --pool_->uses_ == 0) pool_->unused_since_ = pool_->owner_.loop().now();
}

// ---- BackendPool ----

BackendPool::BackendPool(ThreadPools& owner, std::shared_ptr<PoolSlots> slots, SettingsRef startup)
    : owner_(owner), slots_(std::move(slots)), startup_(std::move(startup)) {
  impatience_.on_fire = [this] {
    if (waiting_.empty()) return;
    ask_for_room(true);
    impatience_.set(owner_.loop(), Deadline::in(kImpatience));
  };
}

BackendPool::~BackendPool() {
  while (!idle_.empty()) close(take_idle(nullptr));
}

const SettingsRef& BackendPool::reported() {
  if (reported_->entries().empty()) reported_ = slots_->greeting(startup_);
  return reported_;
}

BackendLease BackendPool::lease(std::unique_ptr<Backend> backend) {
  ++backend->leases;
  return BackendLease(this, std::move(backend));
}

std::unique_ptr<Backend> BackendPool::take_idle(const SettingsRef* wanted) {
  if (idle_.empty()) return nullptr;
  std::size_t chosen = idle_.size() - 1;
  if (wanted != nullptr && idle_[chosen]->applied != *wanted) {
    const std::size_t last = idle_.size() > kLookedAt ? idle_.size() - kLookedAt : 0;
    for (std::size_t i = idle_.size(); i-- > last;) {
      if (idle_[i]->applied == *wanted) {
        chosen = i;
        break;
      }
    }
  }
  std::unique_ptr<Backend> backend = std::move(idle_[chosen]);
  idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(chosen));
  return backend;
}

BackendLease BackendPool::try_acquire(const SettingsRef& wanted) {
  if (!waiting_.empty()) return {};  // nobody jumps the queue
  while (auto backend = take_idle(&wanted)) {
    // What has been idle for a while may have died since the loop last looked. The loop's time alone does not
    // know of a process that was frozen in the midst of a round.
    const bool just_used =
        owner_.loop().now() - backend->idle_since < 1ms && Deadline::Clock::now() - backend->idle_since < 1ms;
    if (!just_used && !backend->stream.encrypted() && backend->stream.has_unread_or_closed()) {
      close(std::move(backend));
      continue;
    }
    return lease(std::move(backend));
  }
  return {};
}

io::Task<Result<BackendLease>> BackendPool::acquire(SettingsRef wanted, io::Waiter* waiter, Deadline deadline,
                                                    std::function<Status()> still_wanted) {
  if (BackendLease ready = try_acquire(wanted)) co_return ready;
  const auto began = Deadline::Clock::now();
  if (waiting_.empty() && slots_->try_reserve()) {
    auto connecting = connect(waiter, deadline, std::move(still_wanted));
    co_return co_await std::move(connecting);
  }
  // Connections that idle with other startup options make room before anybody waits.
  Ticket ticket{waiter, nullptr, false};
  waiting_.push_back(&ticket);
  slots_->waiting.fetch_add(1);
  if (waiting_.size() == 1) impatience_.set(owner_.loop(), Deadline::in(kImpatience));
  ask_for_room(false);
  while (ticket.backend == nullptr && !ticket.may_connect) {
    const bool in_time = co_await waiter->wait(deadline);
    if (ticket.backend != nullptr || ticket.may_connect) break;
    Status wanted_still = still_wanted();
    if (!in_time || !wanted_still) {
      leave(ticket);
      if (!wanted_still) co_return fail(std::move(wanted_still).error());
      co_return fail(
          waited_too_long(*slots_, std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - began)));
    }
  }
  slots_->waiting.fetch_sub(1);
  if (ticket.backend != nullptr) co_return lease(std::move(ticket.backend));
  auto connecting = connect(waiter, deadline, std::move(still_wanted));
  co_return co_await std::move(connecting);
}

// Idle connections, here with other startup options or on another thread, make room at once. Busy ones are
// asked for only after a while: under load every thread serves its own clients fastest, and yet nobody may
// starve beside a thread that has enough, or beside clients with other options.
void BackendPool::ask_for_room(bool of_busy_ones) {
  // A slot given back between the look at the limit and the place in the queue has told nobody.
  owner_.slot_freed(slots_.get());
  const Need need{&owner_, startup_};
  owner_.help(slots_, need, of_busy_ones);
  owner_.directory().tell_others(&owner_, [slots = slots_, need, of_busy_ones](ThreadPools& other) {
    other.help(slots, need, of_busy_ones);
  });
}

void BackendPool::leave(Ticket& ticket) {
  std::erase(waiting_, &ticket);
  slots_->waiting.fetch_sub(1);
}

io::Task<Result<BackendLease>> BackendPool::connect(io::Waiter* waiter, Deadline deadline,
                                                    std::function<Status()> still_wanted) {
  // The caller has reserved the slot.
  ++owned_;
  auto pause = 50ms;
  for (;;) {
    const Deadline attempt = deadline.sooner(Deadline::in(owner_.config().connect_timeout));
    auto connecting = connect_shard(slots_->login(), startup_, waiter, attempt);
    auto made = co_await std::move(connecting);
    if (made) {
      (*made)->greeted = (*made)->reported;
      reported_ = (*made)->greeted;
      slots_->note_greeting(startup_, reported_);
      (*made)->stream.set_target(nullptr);
      co_return lease(std::move(*made));
    }
    Error error = std::move(made).error();
    const bool may_pass =
        error.sqlstate == sqlstate::kCannotConnectNow || error.sqlstate == sqlstate::kTooManyConnections;
    Status wanted_still = still_wanted();
    if (may_pass && wanted_still && !deadline.passed()) {
      // The server is starting up, or has no connection free: nothing has run, so waiting is safe.
      const Deadline wake = deadline.sooner(Deadline::in(pause));
      while (!wake.passed()) (void)co_await waiter->wait(wake);
      pause = std::min<std::chrono::milliseconds>(pause * 2, 1000ms);
      if (!deadline.passed()) continue;
    }
    --owned_;
    slots_->give_back();
    slot_freed();
    if (!wanted_still) co_return fail(std::move(wanted_still).error());
    if (may_pass) {
      error.message = "shard " + slots_->login()->shard + " takes no connections: " + error.message;
      error.sqlstate = std::string(sqlstate::kShardUnreachable);
    }
    log::warning("cannot connect to a shard", {{"shard", slots_->login()->shard}, {"error", error.message}});
    co_return fail(std::move(error));
  }
}

void BackendPool::take_back(std::unique_ptr<Backend> backend) {
  backend->stream.set_target(nullptr);  // who held it may be gone before the next one has it
  const bool clean = !backend->broken && backend->status == wire::TransactionStatus::kIdle &&
                     backend->out.empty() && backend->carry.empty() && backend->cancels->under_way == 0 &&
                     !backend->cancels->lost && !owner_.shutting_down_;
  if (!clean) {
    close(std::move(backend));
    return;
  }
  backend->idle_since = owner_.loop().now();
  if (waiting_.empty() || backend->leases % 2 == 0) {
    if (owner_.pay_debt(*this, backend)) return;
  }
  if (!serve(backend)) keep_idle(std::move(backend));
}

// To the one who has waited longest.
bool BackendPool::serve(std::unique_ptr<Backend>& backend) {
  if (waiting_.empty()) return false;
  Ticket* ticket = waiting_.front();
  waiting_.pop_front();
  ticket->backend = std::move(backend);
  ticket->waiter->notify();
  return true;
}

void BackendPool::keep_idle(std::unique_ptr<Backend> backend) {
  backend->stream.set_target(this);
  backend->stream.want(true, false);
  idle_.push_back(std::move(backend));
}

void BackendPool::adopt(std::unique_ptr<Backend> backend) {
  ++owned_;
  reported_ = backend->greeted;
  backend->stream.attach(owner_.loop(), nullptr);
  // It may have been idle for long where it comes from, and have died there.
  if (!backend->stream.encrypted() && backend->stream.has_unread_or_closed()) {
    close(std::move(backend));
    return;
  }
  if (owner_.shutting_down_ || !serve(backend)) take_back(std::move(backend));
}

void BackendPool::on_event(io::Watch&, std::uint32_t) {
  // An idle connection has no business to speak: the server is shutting down, or has closed it. Asynchronous
  // parameter changes end a connection too; the next one reports them afresh.
  for (std::size_t i = 0; i < idle_.size();) {
    if (!idle_[i]->stream.readable()) {
      ++i;
      continue;
    }
    std::unique_ptr<Backend> dead = std::move(idle_[i]);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    close(std::move(dead));
  }
}

void BackendPool::close(std::unique_ptr<Backend> backend) {
  drop(std::move(backend));
  slots_->give_back();
  slot_freed();
}

// Says goodbye; the slot stays reserved.
void BackendPool::drop(std::unique_ptr<Backend> backend) {
  if (backend->stream.open() && !backend->broken && backend->status == wire::TransactionStatus::kIdle) {
    static constexpr char kTerminate[] = {'X', 0, 0, 0, 4};
    (void)backend->stream.write({kTerminate, sizeof kTerminate});
  }
  backend.reset();
  --owned_;
}

void BackendPool::slot_freed() {
  owner_.slot_freed(slots_.get());
  if (slots_->waiting.load() > 0) {
    const PoolSlots* slots = slots_.get();
    owner_.directory().tell_others(&owner_, [slots](ThreadPools& other) { other.slot_freed(slots); });
  }
}

bool BackendPool::serve_slot() {
  return !waiting_.empty() && slots_->try_reserve() && use_slot();
}

// A reserved slot to the one who has waited longest.
bool BackendPool::use_slot() {
  if (waiting_.empty()) return false;
  Ticket* ticket = waiting_.front();
  waiting_.pop_front();
  ticket->may_connect = true;
  ticket->waiter->notify();
  return true;
}

void BackendPool::sweep(Deadline::Clock::time_point oldest) {
  while (!idle_.empty() && idle_.front()->idle_since < oldest) {
    std::unique_ptr<Backend> backend = std::move(idle_.front());
    idle_.erase(idle_.begin());
    close(std::move(backend));
  }
}

// ---- PoolDirectory ----

std::shared_ptr<PoolSlots> PoolDirectory::slots_for(const std::shared_ptr<const ShardLogin>& login) {
  std::lock_guard lock(mutex_);
  // Another password is another login: the one before may be good for nothing.
  const std::string secret = login->password + (login->keys ? login->keys->client_key.reveal() : "");
  const std::string key = login->shard + '\0' + login->role + '\0' + login->dsn.to_string() + '\0' +
                          std::to_string(std::hash<std::string>{}(secret));
  auto& slots = slots_[key];
  if (slots == nullptr) slots = std::make_shared<PoolSlots>(login, config_.size);
  return slots;
}

void PoolDirectory::join(ThreadPools* thread) {
  std::lock_guard lock(mutex_);
  threads_.push_back(thread);
}

void PoolDirectory::leave(ThreadPools* thread) {
  std::lock_guard lock(mutex_);
  std::erase(threads_, thread);
}

void PoolDirectory::tell_others(ThreadPools* self, const std::function<void(ThreadPools&)>& work) {
  std::lock_guard lock(mutex_);
  for (ThreadPools* thread : threads_) {
    if (thread != self) thread->loop().post([thread, work] { work(*thread); });
  }
}

// ---- ThreadPools ----

ThreadPools::ThreadPools(io::Loop& loop, PoolDirectory& directory) : loop_(loop), directory_(directory) {
  directory_.join(this);
  sweep_timer_.on_fire = [this] {
    sweep(loop_.now());
    sweep_timer_.set(loop_, Deadline::in(kSweepEvery));
  };
  sweep_timer_.set(loop_, Deadline::in(kSweepEvery));
}

ThreadPools::~ThreadPools() {
  directory_.leave(this);
}

BackendPool& ThreadPools::pool_for(const std::shared_ptr<const ShardLogin>& login, const SettingsRef& startup) {
  std::shared_ptr<PoolSlots> slots = directory_.slots_for(login);
  auto& pool = pools_[{slots.get(), startup.get()}];
  if (pool == nullptr) pool = std::make_unique<BackendPool>(*this, slots, startup);
  return *pool;
}

void ThreadPools::help(const std::shared_ptr<PoolSlots>& slots, const Need& need, bool remember) {
  BackendPool* spare = nullptr;
  for (auto at = pools_.lower_bound({slots.get(), nullptr});
       at != pools_.end() && at->first.first == slots.get(); ++at) {
    BackendPool& pool = *at->second;
    if (pool.idle_.empty() || !pool.waiting_.empty()) continue;
    if (spare == nullptr || pool.startup() == need.startup) spare = &pool;
  }
  if (spare != nullptr) {
    give(*spare, spare->take_idle(nullptr), need);
  } else if (remember) {
    std::deque<Need>& debts = debts_[slots.get()];
    if (std::find(debts.begin(), debts.end(), need) == debts.end()) debts.push_back(need);
  }
}

bool ThreadPools::pay_debt(BackendPool& pool, std::unique_ptr<Backend>& backend) {
  if (debts_.empty()) return false;
  auto at = debts_.find(pool.slots().get());
  if (at == debts_.end()) return false;
  const Need need = at->second.front();
  at->second.pop_front();
  if (at->second.empty()) debts_.erase(at);
  if (need.thread == this) {
    // Here it can be seen whether anybody still waits, and its own pool serves it anyway.
    const BackendPool& waits = pool_for(pool.slots()->login(), need.startup);
    if (&waits == &pool || waits.waiting_.empty()) return false;
  }
  give(pool, std::move(backend), need);
  return true;
}

// The connection itself, socket and all, or the place that it leaves when it has other startup options.
void ThreadPools::give(BackendPool& pool, std::unique_ptr<Backend> backend, const Need& need) {
  const std::shared_ptr<PoolSlots> slots = pool.slots();
  if (pool.startup() != need.startup) {
    pool.drop(std::move(backend));
    need.thread->loop().post(
        [to = need.thread, slots, startup = need.startup] { to->take_slot(slots, startup); });
    return;
  }
  --pool.owned_;
  backend->stream.detach();
  backend->stream.set_target(nullptr);
  // std::function wants something that can be copied.
  auto parcel = std::make_shared<std::unique_ptr<Backend>>(std::move(backend));
  need.thread->loop().post([to = need.thread, slots, startup = need.startup, parcel] {
    to->pool_for(slots->login(), startup).adopt(std::move(*parcel));
  });
}

// A slot that is reserved already, for who waits there; free for all when nobody does any more.
void ThreadPools::take_slot(const std::shared_ptr<PoolSlots>& slots, const SettingsRef& startup) {
  BackendPool& pool = pool_for(slots->login(), startup);
  if (pool.use_slot()) return;
  slots->give_back();
  pool.slot_freed();
}

void ThreadPools::slot_freed(const PoolSlots* slots) {
  for (auto at = pools_.lower_bound({slots, nullptr}); at != pools_.end() && at->first.first == slots; ++at) {
    while (at->second->serve_slot()) {
    }
  }
}

void ThreadPools::sweep(Deadline::Clock::time_point now) {
  const auto timeout = config().idle_timeout;
  for (auto at = pools_.begin(); at != pools_.end();) {
    BackendPool& pool = *at->second;
    if (timeout.count() > 0) pool.sweep(now - timeout);
    const bool forgotten = pool.forgettable_ && pool.uses_ == 0 && pool.owned_ == 0 && pool.waiting_.empty() &&
                           pool.unused_since_ < now - kForgetAfter;
    at = forgotten ? pools_.erase(at) : std::next(at);
  }
}

void ThreadPools::shut_down() {
  shutting_down_ = true;
  for (auto& [key, pool] : pools_) {
    while (!pool->idle_.empty()) pool->close(pool->take_idle(nullptr));
  }
}

}  // namespace kintsugi::executor
