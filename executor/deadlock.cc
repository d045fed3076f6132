#include "executor/deadlock.h"

#include <algorithm>
#include <map>
#include <random>

#include "base/log.h"
#include "base/sql_quote.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;
using shardmap::Shard;
using shardmap::ShardId;
using shardmap::ShardMap;

constexpr auto kEvery = 1s;
constexpr auto kRoundTime = 5s;
constexpr auto kBetweenLooks = 50ms;
constexpr int kRoundsBeforeClosing = 60;

using Edges = std::map<std::string, std::set<std::string>>;

// Nodes of one circle, or none.
std::vector<std::string> circle_from(const std::string& start, const Edges& edges,
                                     std::set<std::string>* left) {
  std::vector<std::string> path;
  std::set<std::string> on_path;
  const std::function<bool(const std::string&)> visit = [&](const std::string& at) {
    if (on_path.contains(at)) {
      path.erase(path.begin(), std::ranges::find(path, at));
      return true;
    }
    if (left->contains(at)) return false;
    path.push_back(at);
    on_path.insert(at);
    if (const auto found = edges.find(at); found != edges.end() && std::ranges::any_of(found->second, visit))
      return true;
    path.pop_back();
    on_path.erase(at);
    left->insert(at);
    return false;
  };
  return visit(start) ? path : std::vector<std::string>();
}

bool is_transaction(const std::string& name) {
  return name.starts_with('t');
}

std::string connection_name(ShardId shard, std::string_view pid) {
  return "c" + std::to_string(shard) + ":" + std::string(pid);
}

}  // namespace

Error deadlock_detected() {
  return {.sqlstate = "40P01",
          .message = "deadlock detected",
          .detail = "The transaction waits on a shard for another one, which waits on another shard for it.",
          .hint = "Repeat the transaction. Transactions that lock rows in the same order do not meet so."};
}

std::vector<std::string> one_of_each_circle(const std::set<Wait>& waits) {
  Edges edges;
  for (const Wait& wait : waits) edges[wait.who].insert(wait.for_whom);
  std::vector<std::string> chosen;
  std::set<std::string> left;  // no circle leads through these
  for (auto at = edges.begin(); at != edges.end();) {
    const std::vector<std::string> circle = circle_from(at->first, edges, &left);
    if (circle.empty()) {
      ++at;
      continue;
    }
    const std::string& last = *std::ranges::max_element(circle, {}, [](const std::string& name) {
      return std::pair(is_transaction(name), std::string_view(name));
    });
    if (is_transaction(last)) chosen.push_back(last);
    left.insert(last);
    edges[last].clear();
  }
  return chosen;
}

DeadlockRound::DeadlockRound(bool several_routers) : several_routers_(several_routers) {
  std::random_device device;
  router_ = std::to_string(std::uint64_t{device()} << 32 | device());
}

std::string DeadlockRound::name_of(const HeldUp& transaction) const {
  return "t" + router_ + ":" + std::to_string(transaction.session) + ":" + std::to_string(transaction.since);
}

// What stands in both looks, with the moment at which it began, was there between them. So was the whole of a
// circle, though no two shards were asked at one moment.
std::vector<HeldUp> DeadlockRound::run(const ShardMap& map, const std::vector<HeldUp>& mine,
                                       Deadline deadline) {
  sessions_.keep_those_of(map);
  const auto ends = [this, &mine](const std::set<Wait>& waits) {
    const std::vector<std::string> names = one_of_each_circle(waits);
    std::vector<HeldUp> found;
    std::ranges::copy_if(mine, std::back_inserter(found),
                         [&](const HeldUp& each) { return std::ranges::count(names, name_of(each)) > 0; });
    return found;
  };
  const std::set<Wait> first = look(map, mine, deadline);
  if (ends(first).empty()) return {};
  std::this_thread::sleep_for(kBetweenLooks);
  std::set<Wait> both;
  std::ranges::set_intersection(first, look(map, mine, deadline), std::inserter(both, both.end()));
  return ends(both);
}

// By what no two servers have in common, copies of one another included.
void DeadlockRound::learn_servers(const ShardMap& map, Deadline deadline) {
  servers_.clear();
  for (const Shard* shard : map.shards()) {
    const auto session = sessions_.at(*shard, deadline);
    if (!session) continue;
    const auto rows = (*session)->query(
        "SELECT pg_catalog.pg_postmaster_start_time()::text || ' ' || pg_catalog.current_setting('port')", {},
        deadline);
    if (rows) servers_[shard->id] = rows->at(0).at(0).value_or("");
  }
}

std::set<Wait> DeadlockRound::look(const ShardMap& map, const std::vector<HeldUp>& mine, Deadline deadline) {
  std::set<Wait> waits;
  learn_servers(map, deadline);
  for (const Shard* shard : map.shards()) {
    if (Status looked = look_at(*shard, mine, &waits, deadline); !looked)
      log::debug("a shard could not be asked who waits there", {{"error", looked.error().to_string()}});
  }
  return waits;
}

Status DeadlockRound::look_at(const Shard& shard, const std::vector<HeldUp>& mine, std::set<Wait>* waits,
                              Deadline deadline) {
  KG_TRY(shardmap::PgSession* const session, sessions_.at(shard, deadline));
  std::map<std::string, std::string> names;  // of transactions, by process number
  std::string rows;
  for (const HeldUp& transaction : mine) {
    for (const auto& [where, pid] : transaction.backends) {
      const std::string name = name_of(transaction);
      const auto there = servers_.find(where), here = servers_.find(shard.id);
      const bool one_server =
          there != servers_.end() && here != servers_.end() && there->second == here->second;
      if (where == shard.id || one_server) names[std::to_string(pid)] = name;
      if (where != shard.id) continue;
      rows.append(rows.empty() ? "(" : ", (")
          .append(std::to_string(pid))
          .append(", ")
          .append(quote_literal(name))
          .append(")");
    }
  }
  if (several_routers_) {
    if (!rows.empty()) {
      KG_CHECK(session->script(
          "INSERT INTO kintsugi.held_up (pid, transaction) VALUES " + rows +
              " ON CONFLICT (pid) DO UPDATE SET transaction = excluded.transaction, seen = now(); "
              "DELETE FROM kintsugi.held_up WHERE seen < now() - interval '1 hour'",
          deadline));
    }
    KG_TRY(const auto theirs,
           session->query("SELECT pid, transaction FROM kintsugi.held_up WHERE seen > now() - interval "
                          "'5 seconds'",
                          {}, deadline));
    for (const auto& row : theirs) names.emplace(*row.at(0), *row.at(1));
  }
  KG_TRY(const auto waiting,
         session->query(
             "SELECT l.pid, b.pid, l.began FROM (SELECT pid, min(waitstart)::text AS began FROM "
             "pg_catalog.pg_locks WHERE NOT granted GROUP BY pid) AS l, "
             "LATERAL unnest(pg_catalog.pg_blocking_pids(l.pid)) AS b (pid) WHERE b.pid <> 0 AND l.began IS "
             "NOT NULL",
             {}, deadline));
  const auto called = [&](const std::string& pid) {
    const auto name = names.find(pid);
    return name == names.end() ? connection_name(shard.id, pid) : name->second;
  };
  for (const auto& row : waiting)
    waits->insert({called(*row.at(0)), called(*row.at(1)),
                   std::to_string(shard.id) + ":" + *row.at(0) + ":" + *row.at(2)});
  return {};
}

DeadlockWatch::DeadlockWatch(Router router) : router_(std::move(router)) {}

DeadlockWatch::~DeadlockWatch() {
  stop();
}

void DeadlockWatch::start() {
  thread_ = std::thread([this] { loop(); });
}

void DeadlockWatch::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  condition_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DeadlockWatch::loop() {
  DeadlockRound round(router_.several);
  int idle = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (condition_.wait_for(lock, kEvery, [this] { return stopping_; })) return;
    }
    const shardmap::MapPtr map = router_.map();
    const std::vector<HeldUp> mine =
        map == nullptr || map->shards().size() < 2 ? std::vector<HeldUp>() : router_.held_up();
    if (mine.empty()) {
      if (++idle == kRoundsBeforeClosing) round.close();
      continue;
    }
    idle = 0;
    for (const HeldUp& transaction : round.run(*map, mine, Deadline::in(kRoundTime)))
      router_.break_off(transaction);
  }
}

}  // namespace kintsugi::executor
