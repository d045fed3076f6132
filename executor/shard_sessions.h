// Connections to shards for work of the router's own, kept from round to round. One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "base/error.h"
#include "shardmap/pg_session.h"
#include "shardmap/shard_map.h"

namespace kintsugi::executor {

class ShardSessions {
 public:
  // `begin` is done with a new connection before it is kept: when it fails, the next call makes another one.
  // Errors of connecting name the shard.
  Result<shardmap::PgSession*> at(const shardmap::Shard& shard, Deadline deadline,
                                  const std::function<Status(shardmap::PgSession&)>& begin = {});
  // Closes those of shards that have left the map.
  void keep_those_of(const shardmap::ShardMap& map);
  void close_all() { connections_.clear(); }

 private:
  struct Connection {
    std::string dsn;
    std::unique_ptr<shardmap::PgSession> session;
  };
  std::map<shardmap::ShardId, Connection> connections_;
};

}  // namespace kintsugi::executor
