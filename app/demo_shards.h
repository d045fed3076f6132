// The demo's shards as a whole: made, started, given a database and the sample, stopped. One thread calls; the
// work on the clusters runs side by side.
#pragma once

#include <functional>
#include <list>
#include <string>

#include "app/demo_cluster.h"
#include "app/demo_state.h"
#include "app/postgres_programs.h"
#include "base/error.h"

namespace kintsugi::app {

class DemoShards {
 public:
  // `folder` is the demo's data folder; what is decided (ports) is written into `state` and its file.
  DemoShards(PostgresPrograms programs, std::string folder, DemoState& state);
  ~DemoShards() { stop(); }
  DemoShards(const DemoShards&) = delete;
  DemoShards& operator=(const DemoShards&) = delete;

  [[nodiscard]] Status start();
  // Role and database `app` on every shard; the sample, once, each shard with its part of the tenants. A shard
  // that comes later gets the tables without rows.
  [[nodiscard]] Status prepare();
  void stop();

  // "20 tenants, 400 users, ..." over all shards.
  [[nodiscard]] Result<std::string> count_sample() const;
  [[nodiscard]] std::string dsn(const DemoState::Shard& shard) const;

 private:
  [[nodiscard]] Status start_one(const DemoCluster& cluster, DemoState::Shard& shard);
  [[nodiscard]] Status prepare_one(const DemoState::Shard& shard) const;
  [[nodiscard]] Status load_sample();
  [[nodiscard]] Status load_part(const DemoState::Shard& shard) const;
  [[nodiscard]] Result<std::string> psql(const DemoState::Shard& shard, const std::string& user,
                                         const std::string& database, const std::string& script,
                                         bool one_transaction) const;
  [[nodiscard]] Status on_all(const std::function<Status(const DemoCluster&, DemoState::Shard&)>& work);

  PostgresPrograms programs_;
  std::string folder_;
  DemoState& state_;
  std::list<DemoCluster> clusters_;
};

}  // namespace kintsugi::app
