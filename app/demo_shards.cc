#include "app/demo_shards.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "app/child_process.h"
#include "app/demo_sample.h"

namespace kintsugi::app {
namespace {

constexpr int kFirstPort = 15432;
std::mutex ports_lock;  // two shards that look for a free port at the same time must not find the same one

// A folder may be too deep for the name of a unix socket in it; TCP is enough then.
std::string usable_socket_folder(const std::string& folder) {
  constexpr std::size_t kNameBytes = std::string_view("/.s.PGSQL.65535.lock").size();
  return folder.size() + kNameBytes < sizeof(sockaddr_un::sun_path) ? folder : "";
}

}  // namespace

DemoShards::DemoShards(PostgresPrograms programs, std::string folder, DemoState& state)
    : programs_(std::move(programs)), folder_(std::move(folder)), state_(state) {
  std::string shards = folder_ + "/shards";
  for (const DemoState::Shard& shard : state_.shards) {
    clusters_.emplace_back(programs_, DemoCluster::Options{.name = shard.name,
                                                           .folder = shards,
                                                           .socket_folder = usable_socket_folder(shards),
                                                           .admin_password = state_.admin_password});
  }
}

Status DemoShards::on_all(const std::function<Status(const DemoCluster&, DemoState::Shard&)>& work) {
  std::vector<Status> results(clusters_.size());
  std::vector<std::thread> threads;
  std::size_t i = 0;
  for (const DemoCluster& cluster : clusters_) {
    threads.emplace_back(
        [&work, &cluster, &shard = state_.shards[i], &result = results[i]] { result = work(cluster, shard); });
    ++i;
  }
  for (std::thread& thread : threads) thread.join();
  for (Status& result : results) KG_CHECK(std::move(result));
  return {};
}

Status DemoShards::start() {
  KG_CHECK(on_all([](const DemoCluster& cluster, DemoState::Shard&) { return cluster.create(); }));
  return on_all(
      [this](const DemoCluster& cluster, DemoState::Shard& shard) { return start_one(cluster, shard); });
}

// On the port that was remembered, or on the next free one when somebody else has it by now.
Status DemoShards::start_one(const DemoCluster& cluster, DemoState::Shard& shard) {
  Status started = fail("55006", "no port was tried");
  for (int attempt = 0; attempt < 5; ++attempt) {
    // What an earlier demo left running has its port: not taken by somebody else.
    bool keep = shard.port != 0 && attempt == 0 && (port_is_free(shard.port) || !cluster.processes().empty());
    if (!keep) {
      std::lock_guard lock(ports_lock);
      std::set<int> ours;
      for (const DemoState::Shard& other : state_.shards) ours.insert(other.port);
      int port = kFirstPort;
      while (port < 65535 && (ours.contains(port) || !port_is_free(port))) ++port;
      shard.port = port;
    }
    started = cluster.start(shard.port);
    if (started || started.error().sqlstate != "55006") return started;
  }
  return started;
}

Status DemoShards::prepare() {
  KG_CHECK(on_all([this](const DemoCluster&, DemoState::Shard& shard) { return prepare_one(shard); }));
  return load_sample();
}

Status DemoShards::prepare_one(const DemoState::Shard& shard) const {
  // The password is of our own letters: nothing to quote.
  std::string script =
      "SELECT 'CREATE ROLE app LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app') \\gexec\n"
      "ALTER ROLE app PASSWORD '" +
      state_.password +
      "';\n"
      // PostgreSQL 15 lets superusers only subscribe, and a move subscribes to what it moves.
      "ALTER ROLE app SUPERUSER;\n"
      "SELECT 'CREATE DATABASE app OWNER app' "
      "WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'app') \\gexec\n";
  KG_CHECK(psql(shard, "postgres", "postgres", script, false));
  return {};
}

Status DemoShards::load_sample() {
  if (!state_.loaded && state_.spread == 0) {
    state_.spread = static_cast<int>(state_.shards.size());
    // Decided before anything is loaded: a start that is killed goes on with the same parts.
    KG_CHECK(write_demo_state(folder_ + "/demo.json", state_));
  }
  KG_CHECK(on_all([this](const DemoCluster&, DemoState::Shard& shard) { return load_part(shard); }));
  if (state_.loaded) return {};
  state_.loaded = true;
  return write_demo_state(folder_ + "/demo.json", state_);
}

// All of the sample, and then only this shard's tenants of it: in one transaction.
Status DemoShards::load_part(const DemoState::Shard& shard) const {
  KG_TRY(std::string there,
         psql(shard, "app", "app", "SELECT to_regclass('public.order_items') IS NOT NULL;", false));
  if (there.starts_with("t")) return {};
  int index = 0;
  while (state_.shards[static_cast<std::size_t>(index)].name != shard.name) ++index;
  const int parts = std::max(state_.spread, 1);
  std::string script(demo_sample_sql());
  for (auto table = std::rbegin(kDemoTables); table != std::rend(kDemoTables); ++table) {
    const std::string begin = std::to_string(demo_part_begins(index, parts));
    const std::string end = std::to_string(demo_part_begins(index + 1, parts));
    const std::string key = table->second;
    script += std::string("DELETE FROM ") + table->first;
    if (index < parts) script += " WHERE " + key + " < " + begin + " OR " + key + " >= " + end;
    script += ";\n";
  }
  KG_CHECK(psql(shard, "app", "app", script, true));
  return {};
}

Result<std::string> DemoShards::count_sample() const {
  constexpr const char* kNames[] = {" tenants, ", " users, ", " orders, ", " order items"};
  long sums[std::size(kDemoTables)] = {};
  for (const DemoState::Shard& shard : state_.shards) {
    for (std::size_t i = 0; i < std::size(kDemoTables); ++i) {
      KG_TRY(
          const std::string count,
          psql(shard, "app", "app", std::string("SELECT count(*) FROM ") + kDemoTables[i].first + ";", false));
      sums[i] += std::strtol(count.c_str(), nullptr, 10);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::size(sums); ++i) text += std::to_string(sums[i]) + kNames[i];
  return text;
}

Result<std::string> DemoShards::psql(const DemoState::Shard& shard, const std::string& user,
                                     const std::string& database, const std::string& script,
                                     bool one_transaction) const {
  std::vector<std::string> arguments = {"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"};
  if (one_transaction) arguments.push_back("--single-transaction");
  arguments.push_back("-f");
  arguments.push_back("-");
  KG_TRY(Outcome outcome,
         run_program({.arguments = programs_.as_client("psql", arguments),
                      .input = script,
                      .environment = {{"PGHOST", "127.0.0.1"},
                                      {"PGPORT", std::to_string(shard.port)},
                                      {"PGUSER", user},
                                      {"PGDATABASE", database},
                                      {"PGPASSWORD", user == "app" ? state_.password : state_.admin_password},
                                      {"PGCONNECT_TIMEOUT", "20"}}}));
  if (outcome.exit_code == 0) return outcome.output;
  return fail("58000", "psql on shard " + shard.name + " failed", "", outcome.output);
}

void DemoShards::stop() {
  static_cast<void>(on_all([](const DemoCluster& cluster, DemoState::Shard&) {
    cluster.stop();
    return Status();
  }));
}

std::string DemoShards::dsn(const DemoState::Shard& shard) const {
  return "host=127.0.0.1 port=" + std::to_string(shard.port) +
         " dbname=app user=app password=" + state_.password;
}

}  // namespace kintsugi::app
