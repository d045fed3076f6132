#include "executor/shard_sessions.h"

namespace kintsugi::executor {

using namespace std::chrono_literals;

Result<shardmap::PgSession*> ShardSessions::at(const shardmap::Shard& shard, Deadline deadline,
                                               const std::function<Status(shardmap::PgSession&)>& begin) {
  Connection& connection = connections_[shard.id];
  if (connection.dsn == shard.dsn && connection.session != nullptr && connection.session->good())
    return connection.session.get();
  connection.session.reset();
  auto made = shardmap::PgSession::connect(shard.dsn, true, deadline.sooner(Deadline::in(5s)));
  if (!made) {
    Error error = std::move(made).error();
    error.message = "shard " + shard.name + ": " + error.message;
    return fail(std::move(error));
  }
  if (begin) KG_CHECK(begin(**made));
  connection = {shard.dsn, std::move(*made)};
  return connection.session.get();
}

void ShardSessions::keep_those_of(const shardmap::ShardMap& map) {
  std::erase_if(connections_, [&map](const auto& each) { return map.shard(each.first) == nullptr; });
}

}  // namespace kintsugi::executor
