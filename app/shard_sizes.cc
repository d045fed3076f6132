#include "app/shard_sizes.h"

#include "shardmap/pg_session.h"

namespace kintsugi::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kEvery = 15s;
constexpr auto kPatience = 3s;  // for each shard

}  // namespace

ShardSizes::ShardSizes(std::function<shardmap::MapPtr()> map) : map_(std::move(map)) {
  thread_ = std::thread([this] { run(); });
}

void ShardSizes::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::map<std::string, std::int64_t> ShardSizes::known() const {
  const std::lock_guard lock(mutex_);
  return known_;
}

void ShardSizes::run() {
  std::unique_lock lock(mutex_);
  for (std::uint64_t epoch = 0; !stopping_;) {
    lock.unlock();
    const shardmap::MapPtr map = map_();
    epoch = map->epoch();
    std::map<std::string, std::int64_t> sizes;
    for (const shardmap::Shard* shard : map->shards()) {
      const Deadline deadline = Deadline::in(kPatience);
      auto session = shardmap::PgSession::connect(shard->dsn, false, deadline);
      if (!session) continue;
      const auto rows =
          (*session)->query("SELECT pg_catalog.pg_database_size(pg_catalog.current_database())", {}, deadline);
      if (rows && !rows->empty() && rows->front().front())
        sizes[shard->name] = std::strtoll(rows->front().front()->c_str(), nullptr, 10);
    }
    lock.lock();
    known_ = std::move(sizes);
    // A new shard is not waited for that long.
    for (auto waited = 0s; waited < kEvery && !stopping_; waited += 1s) {
      wake_.wait_for(lock, 1s);
      lock.unlock();
      const bool changed = map_()->epoch() != epoch && waited >= 2s;
      lock.lock();
      if (changed) break;
    }
  }
}

}  // namespace kintsugi::app
