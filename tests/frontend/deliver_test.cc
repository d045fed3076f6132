// A new map reaches every thread of the server, and its source learns when the last has it.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "frontend/server.h"
#include "shardmap/map_edit.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

class Source final : public MapSource {
 public:
  [[nodiscard]] shardmap::MapPtr current() const override { return shardmap::ShardMap::empty("store"); }
  void taken(std::uint64_t epoch) override {
    const std::lock_guard lock(mutex_);
    epochs_.push_back(epoch);
    changed_.notify_all();
  }
  [[nodiscard]] bool lease_valid() const override { return true; }
  [[nodiscard]] bool store_reachable() const override { return true; }

  std::vector<std::uint64_t> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 5s, [&] { return epochs_.size() >= count; });
    return epochs_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> epochs_;
};

Config on_free_port() {
  Config config;
  config.server.listen = "127.0.0.1:0";
  config.server.threads = 4;
  return config;
}

std::shared_ptr<admin::CommandQueue> commands() {
  return std::make_shared<admin::CommandQueue>(std::make_shared<admin::Surroundings>());
}

TEST(Deliver, EachEpochIsTakenOnceAllThreadsHaveIt) {
  auto source = std::make_shared<Source>();
  auto server = Server::start(on_free_port(), source, commands());
  ASSERT_TRUE(server) << server.error().to_string();
  shardmap::MapPtr map = source->current();
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < 50; ++i) {
    auto next = shardmap::apply(*map, {shardmap::edit::CreateShard{"s" + std::to_string(i), "host=h", ""}});
    ASSERT_TRUE(next);
    map = *next;
    expected.push_back(map->epoch());
    (*server)->deliver(map);
  }
  EXPECT_EQ(source->wait_for(50), expected);
}

TEST(Deliver, AServerThatWasShutDownTakesNothing) {
  auto source = std::make_shared<Source>();
  auto server = Server::start(on_free_port(), source, commands());
  ASSERT_TRUE(server);
  (*server)->shutdown(0ms);
  (*server)->deliver(source->current());
  EXPECT_TRUE(source->wait_for(0).empty());
}

TEST(FixedMap, TheFirstShardIsHome) {
  Config config;
  config.shards = {{"b", "host=b"}, {"a", "host=a"}};
  auto fixed = fixed_map(config);
  ASSERT_TRUE(fixed);
  ASSERT_NE((*fixed)->current()->home_shard(), nullptr);
  EXPECT_EQ((*fixed)->current()->home_shard()->name, "b");
  EXPECT_EQ((*fixed)->current()->shard_named("a")->dsn, "host=a");
  config.shards.push_back({"a", "host=c"});
  EXPECT_EQ(fixed_map(config).error().sqlstate, "42710");
}

}  // namespace
}  // namespace kintsugi::frontend
