// Where a shard is and how to log in there: PostgreSQL's own connection strings, keyword=value or URI.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/io/socket.h"

namespace kintsugi::executor {

enum class SslMode { kDisable, kAllow, kPrefer, kRequire, kVerifyCa, kVerifyFull };

struct Dsn {
  std::vector<io::HostPort> hosts;  // where to connect, tried in order
  std::vector<std::string> names;   // and as whom the certificate has to name each of them
  std::string dbname;
  std::string user;      // empty: the client's own
  std::string password;  // empty: the client's own
  SslMode ssl_mode = SslMode::kPrefer;
  std::string ssl_root_cert, ssl_cert, ssl_key;
  std::string options;  // "-c name=value ..." for every connection
  bool require_channel_binding = false;
  bool require_read_write = false;  // target_session_attrs read-write or primary

  // A keyword that is not supported is an error that names it; no error shows a value, or a piece of the text
  // that may be one.
  static Result<Dsn> parse(std::string_view text);
  // The name of one of `hosts`.
  [[nodiscard]] const std::string& name_of(const io::HostPort& host) const;
  // For messages: host, port and database; never user options or a password.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace kintsugi::executor
