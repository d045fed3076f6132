// How large each shard's database is, asked for now and then on a thread of its own: for who looks, not for
// decisions. Any thread may ask.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "shardmap/shard_map.h"

namespace kintsugi::app {

class ShardSizes {
 public:
  explicit ShardSizes(std::function<shardmap::MapPtr()> map);
  ~ShardSizes() { stop(); }
  ShardSizes(const ShardSizes&) = delete;
  ShardSizes& operator=(const ShardSizes&) = delete;
  void stop();

  // Bytes by the shard's name; a shard that did not answer is missing.
  [[nodiscard]] std::map<std::string, std::int64_t> known() const;

 private:
  void run();

  const std::function<shardmap::MapPtr()> map_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::map<std::string, std::int64_t> known_;
  std::thread thread_;
};

}  // namespace kintsugi::app
