// A real PostgreSQL server for a test: its own data directory, socket directory and port, gone with the object.
//
// The first use on a machine runs initdb into a cached template; every later cluster is a copy of it. Started
// as root, the servers run as `postgres`. Whatever goes wrong throws std::runtime_error with the server's own
// log: a test that cannot have its server must fail. One thread at a time per object.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace kintsugi::pgtest {

struct ClusterOptions {
  // Lines of postgresql.conf, after ours: wal_level=logical, max_prepared_transactions=50, fsync=off.
  std::vector<std::string> settings;
};

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options = {});
  // A streaming standby of `primary`, which must be running; in step when this returns.
  static Cluster standby_of(const Cluster& primary);
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  // "host=127.0.0.1 port=... dbname=... user=postgres"
  [[nodiscard]] std::string dsn(const std::string& database = "postgres") const;
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running() const { return pid_ > 0; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

  void stop();     // fast shutdown
  void kill();     // SIGKILL to the postmaster and all its children
  void start();    // again, on the same port
  void freeze();   // SIGSTOP to all its processes
  void thaw();     // SIGCONT
  void promote();  // a standby; returns when it takes writes

 private:
  struct Empty {};
  explicit Cluster(Empty) {}
  void wait_until_ready();
  void stop_at_once();
  [[nodiscard]] std::vector<pid_t> processes() const;

  std::string directory_;
  int port_ = 0;
  pid_t pid_ = 0;
};

// Runs SQL through psql, one statement after the other, stopping at the first error (which throws); gives back
// what `psql -At` prints, without the last newline.
std::string psql(const std::string& dsn, const std::string& sql);

}  // namespace kintsugi::pgtest
