// The configuration as a value: what `kintsugi serve` was told, after defaults, file, environment and flags.
// Read from TOML in app/; passed to who needs it; never global. Every key stands in docs/operations.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"

namespace kintsugi {

using std::chrono::milliseconds;

struct ServerConfig {
  std::string listen = "127.0.0.1:6432";  // host:port; [::1]:6432 for IPv6
  int threads = 0;                        // 0: one per core
  std::string tls_cert;                   // PEM chain; empty: no TLS
  std::string tls_key;
  int max_clients = 10000;
  milliseconds login_timeout{15000};         // from accept to authenticated
  milliseconds idle_timeout{0};              // a client without a transaction; 0: none
  milliseconds transaction_idle_timeout{0};  // a client idle inside one
  milliseconds slow_client_timeout{60000};   // a client that takes no byte of what waits for it
  milliseconds shutdown_timeout{30000};      // what SIGTERM gives running statements
};

struct AdminConfig {
  std::string listen = "127.0.0.1:8432";
  std::string token_file;
  std::string user_file;
  std::string tls_cert;
  std::string tls_key;
};

struct DatabaseConfig {
  std::string name = "app";
};

struct MapConfig {
  std::string store = "sqlite:map.db";
  std::string replica = "replica.db";
};

enum class PoolMode { kTransaction, kSession };

struct PoolConfig {
  PoolMode mode = PoolMode::kTransaction;
  int size = 20;                        // connections a shard and role, over all threads
  milliseconds wait_timeout{30000};     // how long a client waits for a free one
  milliseconds connect_timeout{10000};  // TCP, TLS and login at the shard
  milliseconds idle_timeout{600000};    // an unused connection is closed after this
  int prepared_statements = 500;        // kept prepared on one connection before the oldest is closed
};

struct LimitsConfig {
  milliseconds statement_timeout{0};
  milliseconds hold_timeout{10000};
  std::int64_t gather_bytes = std::int64_t{1} << 30;
  std::int64_t max_message = std::int64_t{256} << 20;
  milliseconds slow_statement{1000};
};

struct LogConfig {
  log::Level level = log::Level::kInfo;
};

struct UserConfig {
  std::string name;
  std::string password;  // plain; empty when `scram` is given
  std::string scram;     // "SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>"
  bool admin = false;
  std::string tenant_map;
  std::string tenant_key;
};

// A shard named in the file: for the start without a shard map, and what `demo` writes.
struct ShardConfig {
  std::string name;
  std::string dsn;
};

struct Config {
  ServerConfig server;
  AdminConfig admin;
  DatabaseConfig database;
  MapConfig map;
  PoolConfig pool;
  LimitsConfig limits;
  LogConfig log;
  std::vector<UserConfig> users;
  std::vector<ShardConfig> shards;
};

}  // namespace kintsugi
