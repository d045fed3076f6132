// One PostgreSQL cluster of the demo, from initdb to pg_ctl stop. Every step may be interrupted by a kill -9
// and be run again. One thread a cluster; several clusters may be worked on side by side.
#pragma once

#include <string>

#include "app/postgres_programs.h"
#include "base/error.h"

namespace kintsugi::app {

class DemoCluster {
 public:
  struct Options {
    std::string name;            // s1
    std::string folder;          // holds <name>/ and <name>.log; belongs to the user that PostgreSQL runs as
    std::string socket_folder;   // empty: no unix socket
    std::string admin_password;  // of role postgres
  };

  DemoCluster(const PostgresPrograms& programs, Options options);

  [[nodiscard]] const std::string& name() const { return options_.name; }
  [[nodiscard]] std::string data() const { return options_.folder + "/" + options_.name; }
  [[nodiscard]] bool exists() const;

  // initdb, into a folder that gets its name when it is whole. Nothing when it exists.
  [[nodiscard]] Status create() const;
  // Ends what a killed demo left running here, removes pid files that fit a foreign process, starts, and
  // returns when connections are taken. 55006: the port is taken.
  [[nodiscard]] Status start(int port) const;
  // Fast, then immediate, then every process that is left. Nothing runs afterwards.
  void stop() const;
  // The processes that work in this cluster's folder, its postmaster among them.
  [[nodiscard]] std::vector<int> processes() const;

 private:
  [[nodiscard]] Status run(const std::vector<std::string>& line, const std::string& input,
                           const char* what) const;
  [[nodiscard]] Status configure(int port) const;
  [[nodiscard]] Status start_once() const;
  void remove_stale_pid_files(int port) const;
  [[nodiscard]] std::string log_file() const { return options_.folder + "/" + options_.name + ".log"; }

  const PostgresPrograms& programs_;
  Options options_;
};

// Whether nobody listens on 127.0.0.1:port.
[[nodiscard]] bool port_is_free(int port);

}  // namespace kintsugi::app
