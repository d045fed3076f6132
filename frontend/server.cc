#include "frontend/server.h"

#include <condition_variable>
#include <future>
#include <thread>

#include "base/log.h"
#include "frontend/worker.h"

namespace kintsugi::frontend {
namespace {

constexpr auto kThreadPatience = std::chrono::seconds(3);  // on a machine that has much to do
constexpr int kMaxThreads = 256;                           // a session's number has eight bits for its thread

Result<std::shared_ptr<const io::TlsContext>> load_tls(const ServerConfig& config) {
  if (config.tls_cert.empty() && config.tls_key.empty()) return std::shared_ptr<const io::TlsContext>();
  if (config.tls_cert.empty() || config.tls_key.empty()) {
    return fail(sqlstate::kInvalidParameter, "server.tls_cert and server.tls_key belong together",
                "Set both, or neither.");
  }
  return io::TlsContext::server(config.tls_cert, config.tls_key);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

Server::Server() = default;

Server::~Server() {
  shutdown(std::chrono::milliseconds(0));
}

Result<std::unique_ptr<Server>> Server::start(const Config& config) {
  KG_TRY(auto maps, fixed_map(config));
  admin::Surroundings surroundings{.router = config.server.listen};
  surroundings.map = [maps] { return maps->current(); };
  auto commands =
      std::make_shared<admin::CommandQueue>(std::make_shared<admin::Surroundings>(std::move(surroundings)));
  return start(config, std::move(maps), std::move(commands));
}

Result<std::unique_ptr<Server>> Server::start(const Config& config, std::shared_ptr<MapSource> maps,
                                              std::shared_ptr<admin::CommandQueue> commands,
                                              std::shared_ptr<executor::Moments> moments) {
  std::unique_ptr<Server> server(new Server);
  if (moments == nullptr) moments = std::make_shared<executor::Moments>();
  server->shared_ = std::make_unique<Shared>(config, std::move(maps), std::move(commands), std::move(moments));
  Shared& shared = *server->shared_;
  KG_TRY(shared.users, UserTable::make(config));
  KG_TRY(auto tls, load_tls(config.server));
  shared.set_tls(std::move(tls));
  for (const ShardConfig& shard : config.shards) KG_CHECK(executor::Dsn::parse(shard.dsn));
  KG_TRY(io::HostPort at, io::parse_host_port(config.server.listen));
  if (!is_loopback(at.host)) {
    if (shared.users.open_to_all()) {
      return fail(sqlstate::kInvalidParameter, "server.listen is not on loopback and no user is configured",
                  "Add [[user]] with a name and a password, or listen on 127.0.0.1.");
    }
    for (const UserConfig& user : config.users) {
      if (user.password.empty() && user.scram.empty()) {
        return fail(sqlstate::kInvalidParameter,
                    "user \"" + user.name + "\" has no password and server.listen is not on loopback",
                    "Give the user a password or a scram verifier, or listen on 127.0.0.1.");
      }
    }
  }
  int threads = config.server.threads > 0 ? config.server.threads
                                          : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  threads = std::min(threads, kMaxThreads);
  for (int i = 0; i < threads; ++i) {
    KG_TRY(io::UniqueFd listener, io::listen_tcp(at, i == 0 ? io::Listening::kFirst : io::Listening::kJoining));
    if (i == 0) at.port = io::local_port(listener.get());  // port 0: the others share what the first one got
    shared.workers.push_back(std::make_unique<Worker>(shared, i, std::move(listener)));
  }
  for (auto& worker : shared.workers) worker->start();
  server->address_ = at.to_string();
  return server;
}

void Server::deliver(const shardmap::MapPtr& map) {
  const std::lock_guard lock(delivering_);
  if (shared_->workers.empty()) return;
  const std::uint64_t epoch = map->epoch();
  // The last of the threads tells the source: that it has the map, and that nothing of an older one runs there.
  auto missing = std::make_shared<std::atomic<std::size_t>>(shared_->workers.size());
  const std::function<void()> taken = [missing, epoch, maps = shared_->maps] {
    if (missing->fetch_sub(1) == 1) maps->taken(epoch);
  };
  auto blind = std::make_shared<std::atomic<std::size_t>>(shared_->workers.size());
  const std::function<void()> seen = [blind, epoch, maps = shared_->maps] {
    if (blind->fetch_sub(1) == 1) maps->seen(epoch);
  };
  for (auto& worker : shared_->workers) worker->deliver(map, seen, taken);
}

void Server::deliver(const planner::CatalogPtr& catalog) {
  const std::lock_guard lock(delivering_);
  for (auto& worker : shared_->workers) worker->deliver(catalog);
}

void Server::set_services(std::shared_ptr<CatalogSource> catalogs, std::function<void()> settle) {
  auto services = std::make_shared<const Services>(Services{std::move(catalogs), std::move(settle)});
  const std::lock_guard lock(delivering_);
  for (auto& worker : shared_->workers) worker->deliver(services);
}

std::vector<admin::PoolState> Server::pools() const {
  std::vector<admin::PoolState> states;
  shared_->pools.each_slots([&states](const executor::PoolSlots& slots) {
    states.push_back(
        {slots.login()->shard, slots.login()->role, slots.open(), slots.limit(), slots.waiting.load()});
  });
  return states;
}

namespace {

// What the threads tell, one after the other.
template <class Sum>
struct Answers {
  explicit Answers(std::size_t threads) : missing(threads) {}
  template <class Add>
  void add(const Add& each) {
    const std::lock_guard lock(mutex);
    each(sum);
    if (--missing == 0) told.notify_one();
  }
  // What has come in time; whether that is all.
  std::pair<Sum, bool> wait() {
    std::unique_lock lock(mutex);
    const bool all = told.wait_for(lock, kThreadPatience, [this] { return missing == 0; });
    return {sum, all};
  }

  std::mutex mutex;
  std::condition_variable told;
  std::size_t missing;
  Sum sum;
};

}  // namespace

std::optional<admin::RouterLoad> Server::load() const {
  std::unique_lock asking(delivering_);
  const auto answers = std::make_shared<Answers<admin::RouterLoad>>(shared_->workers.size());
  for (const auto& worker : shared_->workers) {
    worker->ask_load([answers](const admin::RouterLoad& load) {
      answers->add([&load](admin::RouterLoad& sum) { sum.add(load); });
    });
  }
  asking.unlock();
  auto [sum, all] = answers->wait();
  if (!all) return std::nullopt;
  sum.clients = shared_->clients.load();
  sum.connections = shared_->connections.load();
  return sum;
}

std::vector<executor::HeldUp> Server::held_up() const {
  using All = std::vector<executor::HeldUp>;
  std::unique_lock asking(delivering_);
  const auto answers = std::make_shared<Answers<All>>(shared_->workers.size());
  for (const auto& worker : shared_->workers) {
    worker->ask_held_up([answers](const All& held) {
      answers->add([&held](All& sum) { sum.insert(sum.end(), held.begin(), held.end()); });
    });
  }
  asking.unlock();
  return answers->wait().first;
}

void Server::break_off(const executor::HeldUp& transaction) {
  const std::lock_guard lock(delivering_);
  const auto index = static_cast<std::size_t>(
      Worker::index_of({.pid = static_cast<std::uint32_t>(transaction.session), .secret = 0}));
  if (index < shared_->workers.size()) shared_->workers[index]->break_off(transaction);
}

Result<std::vector<std::string>> Server::route(const std::string& statement, const std::string& user) const {
  const auto told = std::make_shared<std::promise<Result<std::vector<std::string>>>>();
  auto lines = told->get_future();
  if (shared_->workers.empty()) return fail(sqlstate::kCannotConnectNow, "the router is shutting down");
  shared_->workers.front()->ask_route(
      statement, user, [told](Result<std::vector<std::string>> answer) { told->set_value(std::move(answer)); });
  if (lines.wait_for(kThreadPatience) != std::future_status::ready)
    return fail(sqlstate::kCannotConnectNow, "the router's thread does not answer");
  return lines.get();
}

void Server::reload_tls() {
  if (shared_->config.server.tls_cert.empty()) {
    log::info(
        "nothing is read again: there is no server.tls_cert, and the rest of the configuration is read at a "
        "start");
    return;
  }
  auto tls = load_tls(shared_->config.server);
  if (!tls) {
    log::error("the TLS certificate was not reloaded and the old one stays", {{"error", tls.error().message}});
    return;
  }
  shared_->set_tls(std::move(*tls));
  log::info("the TLS certificate was reloaded", {{"certificate", shared_->config.server.tls_cert}});
}

void Server::shutdown(std::chrono::milliseconds patience) {
  if (stopped_.exchange(true) || shared_ == nullptr) return;
  for (auto& worker : shared_->workers) worker->begin_shutdown();
  const Deadline deadline = Deadline::in(patience);
  while (shared_->clients.load() > 0 && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (auto& worker : shared_->workers) worker->end_sessions();
  for (auto& worker : shared_->workers) worker->join();
  const std::lock_guard lock(delivering_);
  shared_->workers.clear();
}

}  // namespace kintsugi::frontend
