// A router as small as can be, to test moves without one: follows the map by a MapFeed, and does what
// docs/life_of_a_move.md asks of routers. Each thread runs its statements through a client of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "shardmap/key_encoding.h"
#include "shardmap/key_predicate.h"
#include "shardmap/map_feed.h"
#include "shardmap/pg_session.h"

namespace kintsugi::splitmerge {

class SmallRouter {
 public:
  using Clock = std::chrono::steady_clock;

  SmallRouter(const std::string& store, const std::string& name) : directory_(temporary()) {
    shardmap::MapFeedOptions options{store, directory_, "replica.db", name};
    options.lease = std::chrono::milliseconds(2000);
    options.beat = std::chrono::milliseconds(300);
    auto started = shardmap::MapFeed::start(options, [this](const shardmap::MapPtr& map) {
      {
        const std::lock_guard lock(mutex_);
        map_ = map;
      }
      if (feed_) tell();
    });
    if (!started) throw std::runtime_error(started.error().to_string());
    feed_ = std::move(*started);
    tell();
  }
  ~SmallRouter() {
    feed_.reset();
    std::filesystem::remove_all(directory_);
  }

  // One client's connections to the shards; one thread.
  class Client {
   public:
    explicit Client(SmallRouter& router) : router_(router) {}

    // Runs on the shard of this key, on one map; waits while the shardlet is held or has just moved. What was
    // waited counts in `longest_wait_ms` and `waits`.
    Result<std::vector<shardmap::PgRow>> write(std::int64_t key, const std::string& sql) {
      const auto began = Clock::now();
      for (;;) {
        const Running running(router_);
        const auto shardlet = router_.find(*running.map, key);
        if (!shardlet) return fail("KG001", "no shardlet");
        if (shardlet->state() == shardmap::ShardletState::kHeld) {
          pause();
          continue;
        }
        auto& session = on(*running.map->shard(shardlet->shard()));
        auto answer = session.query(sql, {}, Deadline::in(std::chrono::seconds(30)));
        const bool moved =
            !answer && answer.error().message.find("kintsugi: shardlet moved") != std::string::npos;
        if (!moved) {
          const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
          waits.push_back(ms);
          return answer;
        }
        ++bounced;
        pause();
      }
    }

    // A count of the rows of `table` (key column `tenant`) on all shards, on one map.
    Result<std::uint64_t> count(const std::string& table, const std::string& map_name) {
      const Running running(router_);
      const shardmap::Mapping& mapping = *running.map->mapping(map_name);
      std::uint64_t rows = 0;
      for (const shardmap::Shard* shard : running.map->shards()) {
        KG_TRY(const std::string outside,
               outside_ranges(mapping, {"tenant"}, shardmap::hidden_on(mapping, shard->id)));
        KG_TRY(const auto answer, on(*shard).query("SELECT count(*) FROM " + table + " WHERE " + outside, {},
                                                   Deadline::in(std::chrono::seconds(30))));
        rows += std::stoull(*answer[0][0]);
      }
      return rows;
    }

    std::vector<double> waits;
    int bounced = 0;

   private:
    static void pause() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }
    shardmap::PgSession& on(const shardmap::Shard& shard) {
      auto& session = sessions_[shard.id];
      while (!session || !session->good()) {
        auto made = shardmap::PgSession::connect(shard.dsn, true, Deadline::in(std::chrono::seconds(30)));
        if (made) session = *std::move(made);
      }
      return *session;
    }
    SmallRouter& router_;
    std::map<shardmap::ShardId, std::unique_ptr<shardmap::PgSession>> sessions_;
  };

 private:
  // A statement that runs on one map.
  struct Running {
    explicit Running(SmallRouter& its) : router(its) {
      const std::lock_guard lock(router.mutex_);
      map = router.map_;
      router.running_.insert(map->epoch());
    }
    ~Running() {
      bool last_of_old = false;
      {
        const std::lock_guard lock(router.mutex_);
        router.running_.erase(router.running_.find(map->epoch()));
        last_of_old = map->epoch() < router.map_->epoch();
      }
      if (last_of_old) router.tell();
    }
    SmallRouter& router;
    shardmap::MapPtr map;
  };

  static std::string temporary() {
    std::string path = (std::filesystem::temp_directory_path() / "kg-router-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    return path;
  }
  static std::optional<shardmap::ShardletView> find(const shardmap::ShardMap& map, std::int64_t key) {
    std::string bytes;
    shardmap::append_bigint(key, bytes);
    return map.mapping("tenants")->find(bytes);
  }
  void tell() {
    std::uint64_t seen = 0;
    std::uint64_t taken = 0;
    {
      const std::lock_guard lock(mutex_);
      seen = map_->epoch();
      taken = running_.empty() ? seen : *running_.begin();
    }
    feed_->seen(seen);
    feed_->taken(taken);
  }

  std::string directory_;
  std::mutex mutex_;
  shardmap::MapPtr map_;
  std::multiset<std::uint64_t> running_;
  std::unique_ptr<shardmap::MapFeed> feed_;
};

}  // namespace kintsugi::splitmerge
