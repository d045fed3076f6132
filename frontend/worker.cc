#include "frontend/worker.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/invariant.h"
#include "base/log.h"
#include "frontend/session.h"
#include "parser/split_statements.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kCancelTimeout = 10s;
constexpr auto kCleanUpTimeout = 5s;
constexpr int kLoginsBesides = 1000;  // sockets that may be logging in on top of max_clients
constexpr int kAcceptsInARow = 64;

io::Task<> run_session(std::unique_ptr<Session> session) {
  auto running = session->run();
  co_await std::move(running);
}

io::Task<> deliver_cancel(Worker* worker, std::shared_ptr<const executor::ShardLogin> login, io::HostPort peer,
                          wire::BackendKey key, std::shared_ptr<executor::Cancels> cancels,
                          wire::BackendKey session, std::function<void()> on_done) {
  io::Waiter waiter(worker->loop());
  auto sending = executor::cancel_on_shard(login, peer, key, &waiter, Deadline::in(kCancelTimeout));
  Status sent = co_await std::move(sending);
  if (!sent)
    log::warning("could not cancel a statement", {{"shard", login->shard}, {"error", sent.error().message}});
  if (!sent) cancels->lost = true;
  --cancels->under_way;
  worker->wake(session);
  if (on_done) on_done();
}

io::Task<> restore(Worker* worker, executor::BackendLease lease, bool discard) {
  io::Waiter waiter(worker->loop());
  lease->stream.set_target(&waiter);
  const Deadline deadline = Deadline::in(kCleanUpTimeout);
  if (lease->status != wire::TransactionStatus::kIdle) {
    auto rolling_back = executor::run_control_query(lease.get(), "ROLLBACK", &waiter, deadline);
    if (auto done = co_await std::move(rolling_back); !done) lease->broken = true;
  }
  if (discard && !lease->broken) {
    auto discarding = executor::run_control_query(lease.get(), "DISCARD ALL", &waiter, deadline);
    if (auto done = co_await std::move(discarding); !done) lease->broken = true;
    lease->prepared.clear();
    lease->applied = executor::Settings::none();
  }
  lease->stream.set_target(nullptr);
}

}  // namespace

Result<std::shared_ptr<const executor::ShardLogin>> Shared::login_for(
    const shardmap::Shard& shard, const std::string& user, const std::string& password,
    const std::optional<wire::ScramKeys>& keys) {
  std::lock_guard lock(logins_mutex_);
  ShardLogins& logins = logins_[shard.name];
  if (logins.dsn_text != shard.dsn) {
    KG_TRY(executor::Dsn dsn, executor::Dsn::parse(shard.dsn));
    logins = {shard.dsn, std::move(dsn), {}};
  }
  // With a user in the DSN all clients share its connections.
  const std::string key = logins.dsn.user.empty() ? user : "";
  auto& login = logins.by_client[key];
  if (login == nullptr) {
    auto made = executor::ShardLogin::make(shard.name, logins.dsn, user, password, keys);
    if (!made) {
      logins.by_client.erase(key);
      return fail(std::move(made).error());
    }
    login = std::move(*made);
  }
  return login;
}

Worker::Worker(Shared& shared, int index, io::UniqueFd listener)
    : last_unnamed_version(static_cast<std::uint64_t>(index + 1) << 48),
      shared_(shared),
      index_(index),
      listener_(std::move(listener)),
      pools_(loop_, shared.pools) {
  routing_.map = shared.maps->current();
  routing_.catalog = planner::Catalog::empty();
  routing_.version = 1;
  accept_again_.on_fire = [this] {
    if (listener_watch_.attached()) listener_watch_.want(io::kReadable);
  };
}

Worker::~Worker() = default;

void Worker::start() {
  thread_ = std::thread([this] { run(); });
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::run() {
  if (routes()) book_.warm_up();
  listener_watch_.attach(loop_, listener_.get(), this);
  listener_watch_.want(io::kReadable);
  loop_.run();
}

void Worker::on_event(io::Watch&, std::uint32_t) {
  accept_all();
}

void Worker::accept_all() {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    io::UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED) return;
      // Out of descriptors or memory: accepting at once again would only burn the processor.
      log::error("cannot accept a connection", {{"error", std::strerror(errno)}});
      listener_watch_.want(0);
      accept_again_.set(loop_, Deadline::in(100ms));
      return;
    }
    if (shared_.connections.load() >= shared_.config.server.max_clients + kLoginsBesides) continue;
    io::set_no_delay(socket.get());
    io::set_keep_alive(socket.get());
    gate_.spawn(run_session(std::make_unique<Session>(*this, std::move(socket))));
  }
}

wire::BackendKey Worker::add(Session* session) {
  wire::BackendKey key;
  do {
    next_session_ = (next_session_ + 1) & 0x7fffff;
    key.pid = (next_session_ << 8) | static_cast<std::uint32_t>(index_ & 0xff);
  } while (key.pid == 0 || sessions_.contains(key.pid));
  INVARIANT(getrandom(&key.secret, sizeof key.secret, 0) == sizeof key.secret, "the kernel gives random bytes");
  sessions_[key.pid] = session;
  entering_.erase(session);
  return key;
}

void Worker::remove(wire::BackendKey key) {
  sessions_.erase(key.pid);
}

void Worker::wake(wire::BackendKey session) {
  auto at = sessions_.find(session.pid);
  if (at != sessions_.end()) at->second->wake();
}

void Worker::deliver(shardmap::MapPtr map, std::function<void()> seen, std::function<void()> taken) {
  loop_.post([this, map = std::move(map), seen = std::move(seen), taken = std::move(taken)]() mutable {
    const shardmap::MapPtr before = std::exchange(routing_.map, std::move(map));
    routing_changed(before);
    seen();
    taking_.emplace_back(routing_.map->epoch(), std::move(taken));
    tell_taken();
  });
}

void Worker::tell_taken() {
  std::uint64_t oldest = UINT64_MAX;
  for (const auto& [pid, session] : sessions_) {
    if (session->planned_epoch() != 0) oldest = std::min(oldest, session->planned_epoch());
  }
  std::erase_if(taking_, [oldest](auto& waiting) {
    if (oldest < waiting.first) return false;
    waiting.second();
    return true;
  });
}

void Worker::deliver(planner::CatalogPtr catalog) {
  loop_.post([this, catalog = std::move(catalog)]() mutable {
    routing_.catalog = std::move(catalog);
    routing_changed(routing_.map);
  });
}

void Worker::deliver(std::shared_ptr<const Services> services) {
  loop_.post([this, services = std::move(services)]() mutable { services_ = std::move(services); });
}

// Sessions may hold a statement for just this.
void Worker::routing_changed(const shardmap::MapPtr& before) {
  ++routing_.version;
  for (auto& [pid, session] : sessions_) session->routing_changed(before);
}

void Worker::ask_load(std::function<void(const admin::RouterLoad& load)> tell) {
  loop_.post([this, tell = std::move(tell)] {
    admin::RouterLoad load = load_.copy();
    const parser::StatementCacheCounters& cache = book_.counters();
    load.cache_hits = cache.hits;
    load.cache_misses = cache.misses;
    load.cache_evictions = cache.evictions;
    load.cache_entries = cache.entries;
    load.cache_bytes = cache.bytes;
    load.epoch = routing_.map->epoch();
    tell(load);
  });
}

void Worker::ask_held_up(std::function<void(std::vector<executor::HeldUp>)> tell) {
  loop_.post([this, tell = std::move(tell)] {
    std::vector<executor::HeldUp> all;
    for (const auto& [number, session] : sessions_) {
      if (auto held = session->held_up()) all.push_back(std::move(*held));
    }
    tell(std::move(all));
  });
}

void Worker::break_off(const executor::HeldUp& transaction) {
  loop_.post([this, number = static_cast<std::uint32_t>(transaction.session), since = transaction.since] {
    if (const auto at = sessions_.find(number); at != sessions_.end()) at->second->break_off(since);
  });
}

void Worker::ask_route(std::string text, std::string user,
                       std::function<void(Result<std::vector<std::string>> lines)> tell) {
  loop_.post([this, text = std::move(text), user = std::move(user), tell = std::move(tell)] {
    tell(route_of(text, user));
  });
}

Result<std::vector<std::string>> Worker::route_of(const std::string& text, const std::string& user) {
  const auto statements = parser::split_statements(text);
  if (statements.size() != 1) return fail(sqlstate::kInvalidParameter, "this is not one statement");
  const NamesRef names = book_.names("\"$user\", public", user, "");
  parser::Normaliser normal;
  const KnownRef known = book_.look_up(text, statements.front(), *names, routing_, normal, nullptr);
  if (known->tree == nullptr) {
    const auto parsed = parser::Parser().parse(text);
    if (!parsed) return fail(parsed.error());
    return fail("42601", "this statement cannot be read");
  }
  if (known->refusal) return fail(*known->refusal);
  if (known->analysis == nullptr)
    return fail(sqlstate::kInvalidParameter,
                "this statement is not routed: it is about the session, or Kintsugi's own");
  KG_TRY(const planner::Plan plan,
         planner::make_plan(*known->analysis, {&normal, statements.front().begin, {}}, *routing_.map));
  return planner::lines_of(plan, *routing_.map, statements.front().of(text));
}

void Worker::cancel(wire::BackendKey key, std::function<void()> on_done) {
  loop_.post([this, key, on_done = std::move(on_done)]() mutable {
    auto at = sessions_.find(key.pid);
    // A wrong key is not answered, as in PostgreSQL: nothing is to be learnt from it.
    if (at != sessions_.end() && at->second->key().secret == key.secret) {
      at->second->cancel(std::move(on_done));
    } else {
      on_done();
    }
  });
}

void Worker::send_cancel(const executor::BackendPool& pool, const executor::Backend& backend,
                         wire::BackendKey session, std::function<void()> on_done) {
  if (cancels_.closed()) {
    if (on_done) on_done();
    return;
  }
  ++backend.cancels->under_way;
  cancels_.spawn(deliver_cancel(this, pool.slots()->login(), backend.peer, backend.key, backend.cancels,
                                session, std::move(on_done)));
}

void Worker::clean_up(executor::BackendLease lease, bool discard) {
  if (gate_.closed()) {
    lease->broken = true;
    return;
  }
  gate_.spawn(restore(this, std::move(lease), discard));
}

void Worker::begin_shutdown() {
  loop_.post([this] {
    shutting_down_ = true;
    listener_watch_.detach();
    listener_.reset();
    accept_again_.cancel();
    for (auto& [pid, session] : sessions_) session->wake();
  });
}

void Worker::end_sessions() {
  loop_.post([this] {
    ending_ = true;
    for (auto& [pid, session] : sessions_) session->wake();
    for (Session* session : entering_) session->cut();
    // The loop cannot own its own end; the gate is drained first, then the loop stops.
    stopper_.spawn(drain_and_stop());
  });
}

io::Task<> Worker::drain_and_stop() {
  auto draining = gate_.close(&loop_);
  co_await std::move(draining);
  auto canceling = cancels_.close(&loop_);
  co_await std::move(canceling);
  pools_.shut_down();
  loop_.stop();
}

}  // namespace kintsugi::frontend
