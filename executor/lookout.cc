#include "executor/lookout.h"

#include <algorithm>
#include <set>

#include "executor/control_round.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kLockNotAvailable = "55P03";
constexpr auto kConnectTimeout = 5s;
constexpr auto kAnswerTimeout = 10s;
// A commit lets go after some writes to the disk. Who waits for longer is waited for by others in turn: between
// two attempts nothing is held for half as long as they take.
constexpr auto kFirstLockTimeout = 80ms;
constexpr int kMostDoublings = 3;
constexpr auto kFrozenAfter = 1s;      // beyond the patience
constexpr auto kLongestPatience = 5s;  // so long may commits of other routers wait for one statement

std::string in_ms(std::chrono::milliseconds time) {
  return "'" + std::to_string(time.count()) + "ms'";
}

}  // namespace

struct Lookout::Entry {
  enum class State : std::uint8_t { kWaiting, kHeld, kOver, kRefused };
  Logins shards;
  io::Waiter* waiter = nullptr;  // null: the statement has gone
  std::chrono::milliseconds patience{0};
  bool alone = false;
  State state = State::kWaiting;
  io::Waiter* lane = nullptr;  // while it holds
  bool let_go = false;
  bool was_held = false;
  int attempts = 0;
  std::optional<Error> error;

  void become(State next) {
    state = next;
    if (waiter != nullptr) waiter->notify();
  }
};

namespace {

std::chrono::milliseconds lock_timeout_of(const auto& entries) {
  int attempts = 0;
  for (const auto& entry : entries) attempts = std::max(attempts, entry->attempts);
  return kFirstLockTimeout * (1 << std::min(attempts, kMostDoublings));
}

}  // namespace

Lookout::Watch& Lookout::Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    give_up();
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

void Lookout::Watch::give_up() {
  if (entry_ == nullptr) return;
  entry_->waiter = nullptr;
  let_go();
  entry_.reset();
}

bool Lookout::Watch::held() const {
  return entry_->state == Entry::State::kHeld;
}

const std::optional<Error>& Lookout::Watch::refused() const {
  return entry_->error;
}

void Lookout::Watch::let_go() {
  if (entry_->let_go) return;
  entry_->let_go = true;
  if (entry_->lane != nullptr) entry_->lane->notify();
}

std::optional<bool> Lookout::Watch::was_held() const {
  if (entry_->state != Entry::State::kOver) return std::nullopt;
  return entry_->was_held;
}

Lookout::Watch Lookout::watch(Logins shards, io::Waiter* waiter, std::chrono::milliseconds patience,
                              bool alone) {
  auto entry = std::make_shared<Entry>();
  entry->shards = std::move(shards);
  entry->waiter = waiter;
  entry->patience = std::min<std::chrono::milliseconds>(patience, kLongestPatience);
  entry->alone = alone;
  if (gate_.closed()) {
    entry->error = Error{.sqlstate = "57P01", .message = "the router is shutting down"};
    entry->state = Entry::State::kRefused;
    return Watch(std::move(entry));
  }
  waiting_.push_back(entry);
  auto free = std::ranges::find_if(lanes_, [](const auto& lane) { return !lane->busy; });
  if (free == lanes_.end() && lanes_.size() < kLanes)
    free = lanes_.insert(lanes_.end(), std::make_unique<Lane>(loop_));
  if (free != lanes_.end()) {
    (*free)->busy = true;
    gate_.spawn(run(free->get()));
  }
  return Watch(std::move(entry));
}

std::vector<Lookout::Connection*> Lookout::Lane::connections_of(const Entries& entries) {
  std::set<Connection*> all;
  for (const auto& entry : entries) {
    for (const auto& login : entry->shards) {
      Connection& connection = connections[login.get()];
      connection.login = login;
      all.insert(&connection);
    }
  }
  return {all.begin(), all.end()};
}

// Round after round, as long as somebody waits.
io::Task<> Lookout::run(Lane* lane) {
  while (!waiting_.empty()) {
    const Entries entries = std::exchange(waiting_, {});
    const std::chrono::milliseconds lock_timeout = lock_timeout_of(entries);
    if (lock_timeout > kFirstLockTimeout) (void)co_await lane->waiter.wait(Deadline::in(lock_timeout / 2));
    auto locking = lock(lane, entries, lock_timeout);
    co_await std::move(locking);
    Entries held;
    for (const auto& entry : entries) {
      if (entry->waiter == nullptr) continue;
      bool contended = false;
      for (const auto& login : entry->shards) {
        const Connection& connection = lane->connections[login.get()];
        if (connection.trouble) entry->error = connection.trouble;
        contended = contended || connection.contended;
      }
      if (entry->error) {
        entry->become(Entry::State::kRefused);
      } else if (contended) {
        ++entry->attempts;
        waiting_.push_back(entry);
      } else {
        held.push_back(entry);
      }
    }
    // What nobody holds who has all is let go at once: its being held may be what the others wait for.
    const std::vector<Connection*> needed = lane->connections_of(held);
    std::vector<Connection*> idle;
    for (Connection* connection : lane->connections_of(entries)) {
      if (std::ranges::find(needed, connection) == needed.end()) idle.push_back(connection);
    }
    auto releasing = unlock(lane, std::move(idle));
    co_await std::move(releasing);
    std::chrono::milliseconds patience{0};
    for (const auto& entry : held) {
      patience = std::max(patience, entry->patience);
      entry->lane = &lane->waiter;
      entry->become(Entry::State::kHeld);
    }
    const Deadline until = Deadline::in(patience);
    const auto over = [](const auto& entry) { return entry->let_go; };
    while (!std::ranges::all_of(held, over) && !until.passed()) (void)co_await lane->waiter.wait(until);
    Entries in_time;
    std::ranges::copy_if(held, std::back_inserter(in_time), over);
    auto unlocking = unlock(lane, needed);
    co_await std::move(unlocking);
    for (const auto& entry : held) {
      entry->was_held = std::ranges::find(in_time, entry) != in_time.end();
      for (const auto& login : entry->shards)
        entry->was_held = entry->was_held && lane->connections[login.get()].ended;
      entry->lane = nullptr;
      entry->become(Entry::State::kOver);
    }
  }
  // Logins come and go with the shards' addresses and the clients' passwords.
  std::erase_if(lane->connections, [](const auto& each) { return each.second.login.use_count() == 1; });
  lane->busy = false;
}

// On all shards that the entries name, at the same time; but first on the first one of each that is to be
// alone: of two who want the same shards one waits there, and holds nothing that the other needs.
io::Task<> Lookout::lock(Lane* lane, Entries entries, std::chrono::milliseconds lock_timeout) {
  std::chrono::milliseconds patience{0};
  std::vector<Connection*> firsts, rest = lane->connections_of(entries);
  for (Connection* connection : rest) {
    connection->trouble.reset();
    connection->contended = connection->ended = connection->alone = false;
  }
  for (const auto& entry : entries) {
    patience = std::max(patience, entry->patience);
    if (!entry->alone) continue;
    for (const auto& login : entry->shards) lane->connections[login.get()].alone = true;
    firsts.push_back(&lane->connections[entry->shards.front().get()]);
  }
  std::erase_if(rest, [&](Connection* each) { return std::ranges::find(firsts, each) != firsts.end(); });
  std::ranges::sort(firsts);
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  const std::string settings =
      "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = " + in_ms(lock_timeout) +
      "; SET LOCAL idle_in_transaction_session_timeout = " + in_ms(patience + kFrozenAfter) + "; ";
  if (!firsts.empty()) {
    auto locking = lock_these(lane, firsts, settings);
    co_await std::move(locking);
  }
  auto locking = lock_these(lane, std::move(rest), settings);
  co_await std::move(locking);
}

io::Task<> Lookout::lock_these(Lane* lane, std::vector<Connection*> connections, std::string settings) {
  std::vector<Connection*> asked;
  std::vector<ControlOrder> orders;
  for (Connection* connection : connections) {
    if (connection->backend == nullptr || connection->backend->broken) {
      auto connecting =
          connect_shard(connection->login, Settings::none(), &lane->waiter, Deadline::in(kConnectTimeout));
      auto connected = co_await std::move(connecting);
      if (!connected) {
        connection->backend.reset();
        connection->trouble = std::move(connected).error();
        continue;
      }
      connection->backend = std::move(*connected);
    }
    asked.push_back(connection);
    orders.push_back({connection->backend.get(),
                      settings + (connection->alone ? "LOCK TABLE kintsugi.opening IN EXCLUSIVE MODE; " : "") +
                          "LOCK TABLE kintsugi.moment IN SHARE MODE"});
  }
  auto running = run_on_all(std::move(orders), &lane->waiter, Deadline::in(kAnswerTimeout));
  const std::vector<ControlAnswer> answers = co_await std::move(running);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].rows) continue;
    const Error& error = answers[i].rows.error();
    // A connection that has died since the last round is made anew.
    asked[i]->contended = error.sqlstate == kLockNotAvailable || asked[i]->backend->broken;
    if (!asked[i]->contended) asked[i]->trouble = error;
  }
}

io::Task<> Lookout::unlock(Lane* lane, std::vector<Connection*> locked) {
  std::vector<Connection*> asked;
  std::vector<ControlOrder> orders;
  for (Connection* connection : locked) {
    if (connection->backend == nullptr || connection->backend->broken ||
        connection->backend->status == wire::TransactionStatus::kIdle)
      continue;
    asked.push_back(connection);
    orders.push_back({connection->backend.get(), "COMMIT"});
  }
  auto running = run_on_all(std::move(orders), &lane->waiter, Deadline::in(kAnswerTimeout));
  const std::vector<ControlAnswer> answers = co_await std::move(running);
  for (std::size_t i = 0; i < answers.size(); ++i)
    asked[i]->ended = answers[i].rows && answers[i].tag == "COMMIT";
}

}  // namespace kintsugi::executor
