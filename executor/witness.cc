#include "executor/witness.h"

#include <utility>

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectTimeout = 5s;
constexpr auto kAnswerTimeout = 10s;
constexpr std::size_t kIdleStands = 64;

// Nothing is lost with it in a crash, so it waits for no disk. Two witnesses in one slot refuse each other.
constexpr std::string_view kCommitWitness =
    "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE; SET LOCAL synchronous_commit = off; "
    "UPDATE kintsugi.serial SET written = written + 1 WHERE slot = pg_catalog.pg_backend_pid() % 64; COMMIT";

}  // namespace

io::Task<Status> Witness::commit_on(Logins shards, io::Waiter* waiter, Deadline deadline) {
  if (gate_.closed()) co_return fail(sqlstate::kAdminShutdown, "the router is shutting down");
  if (stands_.size() >
      kIdleStands) {  // logins come and go with the shards' addresses and the clients' passwords
    std::erase_if(stands_,
                  [](const auto& each) { return !each.second->busy && each.second->login.use_count() == 1; });
  }
  auto wish = std::make_shared<Wish>(Wish{.waiter = waiter, .left = shards.size(), .error = {}});
  for (auto& login : shards) {
    std::unique_ptr<Stand>& stand = stands_[login.get()];
    if (stand == nullptr) stand = std::make_unique<Stand>(loop_);
    stand->login = std::move(login);
    stand->wishes.push_back(wish);
    if (std::exchange(stand->busy, true)) continue;
    gate_.spawn(run(stand.get()));
  }
  while (wish->left > 0 && !wish->error && !deadline.passed()) (void)co_await waiter->wait(deadline);
  wish->waiter = nullptr;
  if (wish->error) co_return fail(*wish->error);
  if (wish->left > 0) {
    co_return fail(sqlstate::kShardUnreachable,
                   "a shard did not answer in time while a serializable transaction began",
                   "Repeat the transaction. SHOW SHARDS says which shard does not answer.");
  }
  co_return Status{};
}

// Commit after commit, as long as somebody waits.
io::Task<> Witness::run(Stand* stand) {
  while (!stand->wishes.empty()) {
    const auto wishes = std::exchange(stand->wishes, {});
    auto committing = commit(stand);
    const Status committed = co_await std::move(committing);
    for (const auto& wish : wishes) {
      if (committed)
        --wish->left;
      else
        wish->error = committed.error();
      if (wish->waiter != nullptr) wish->waiter->notify();
    }
  }
  stand->busy = false;
}

io::Task<Status> Witness::commit(Stand* stand) {
  for (const Deadline until = Deadline::in(kAnswerTimeout);;) {
    const bool fresh = stand->backend == nullptr || stand->backend->broken;
    if (fresh) {
      stand->backend.reset();
      auto connecting =
          connect_shard(stand->login, Settings::none(), &stand->waiter, Deadline::in(kConnectTimeout));
      KG_CO_TRY(stand->backend, co_await std::move(connecting));
    }
    auto running = run_control_query(stand->backend.get(), std::string(kCommitWitness), &stand->waiter, until);
    const auto committed = co_await std::move(running);
    if (committed) co_return Status{};
    if (until.passed() || (fresh && stand->backend->broken)) co_return fail(committed.error());
    if (stand->backend->broken) continue;  // it had died since the last time
    auto rolling_back = run_control_query(stand->backend.get(), "ROLLBACK", &stand->waiter, until);
    if (const auto rolled_back = co_await std::move(rolling_back); !rolled_back) stand->backend->broken = true;
    if (committed.error().sqlstate != sqlstate::kSerializationFailure) co_return fail(committed.error());
  }
}

}  // namespace kintsugi::executor
