// Keeps a router's catalogue up to date: reads the home shard's when it starts and when it is told to, and
// looks every so often whether somebody has defined something behind its back.
//
// Owned by the program; has a thread and a connection of its own. Catalogues are handed over on that thread.
// Any thread may call refresh() and current().
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "planner/catalog.h"
#include "shardmap/shard_map.h"

namespace kintsugi::shardmap {
class PgSession;
}

namespace kintsugi::executor {

class CatalogFeed {
 public:
  using Deliver = std::function<void(planner::CatalogPtr catalog)>;

  // `map` gives the current map, on the feed's thread.
  CatalogFeed(std::function<shardmap::MapPtr()> map, Deliver deliver,
              std::chrono::milliseconds every = std::chrono::milliseconds(1000));
  ~CatalogFeed();
  CatalogFeed(const CatalogFeed&) = delete;
  CatalogFeed& operator=(const CatalogFeed&) = delete;

  // Waits until the first catalogue is there, or the patience has run out: then it comes later.
  void start(std::chrono::milliseconds patience);
  void stop();

  // Reads it again. `done` is called once, after what was read has been handed over, or could not be read.
  void refresh(std::function<void()> done);
  [[nodiscard]] planner::CatalogPtr current() const;

 private:
  void run();
  void look(bool wanted);

  std::function<shardmap::MapPtr()> map_;
  Deliver deliver_;
  std::chrono::milliseconds every_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> waiting_;
  planner::CatalogPtr current_ = planner::Catalog::empty();
  bool stop_ = false, looked_ = false;

  // The thread's own.
  std::unique_ptr<shardmap::PgSession> session_;
  std::string dsn_, mark_;
  bool complained_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::executor
