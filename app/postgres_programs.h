// Where PostgreSQL's own programs are, and as whom they have to run.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kintsugi::app {

class PostgresPrograms {
 public:
  // The folder KINTSUGI_PG_BIN, or Debian's with that major version (0: the newest), or what is on PATH.
  static Result<PostgresPrograms> find(int major);

  explicit PostgresPrograms(std::string folder);

  // The command line of a server program (initdb, pg_ctl): as user postgres when we are root, who may not run
  // them.
  [[nodiscard]] std::vector<std::string> as_server(const std::string& program,
                                                   std::vector<std::string> arguments) const;
  // Of a client program (psql): as ourselves.
  [[nodiscard]] std::vector<std::string> as_client(const std::string& program,
                                                   std::vector<std::string> arguments) const;

  // Gives a folder to the user that as_server() runs as.
  [[nodiscard]] Status hand_over(const std::string& folder) const;
  // Whether that user can get into the folder.
  [[nodiscard]] bool can_enter(const std::string& folder) const;
  [[nodiscard]] bool as_other_user() const { return as_other_user_; }

 private:
  std::string folder_;
  bool as_other_user_;
};

}  // namespace kintsugi::app
