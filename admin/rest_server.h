// The REST face: listens on [admin] listen, asks for the token, routes requests to operations. Blocking, with
// threads of its own and a command layer for each request under way. Started and ended by one thread.
#pragma once

#include <memory>
#include <string>

#include "admin/commands/surroundings.h"
#include "base/error.h"

namespace kintsugi::admin {

struct RestOptions {
  std::string listen;             // host:port; port 0 takes a free one
  std::string token_file;         // made when it is not there
  std::string user_file;          // of the users with tokens of their own
  std::string tls_cert, tls_key;  // PEM; empty: no TLS
  std::string version;            // of the program
};

class RestServer {
 public:
  // Listens when it returns.
  static Result<std::unique_ptr<RestServer>> start(const RestOptions& options,
                                                   std::shared_ptr<const Surroundings> surroundings);
  ~RestServer();  // waits for the requests under way
  RestServer(const RestServer&) = delete;
  RestServer& operator=(const RestServer&) = delete;

  // The certificate and key again; the old ones stay when the new ones cannot be used.
  void reload_tls();

  // "127.0.0.1:8432"
  [[nodiscard]] const std::string& address() const;

 private:
  struct Parts;
  explicit RestServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace kintsugi::admin
