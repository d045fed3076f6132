// The PostgreSQL side of a router: everything that listens for clients. Started and stopped by one thread; runs
// on its own.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/config.h"
#include "base/error.h"

namespace kintsugi::frontend {

struct Shared;

class Server {
 public:
  // Listens when it returns.
  static Result<std::unique_ptr<Server>> start(const Config& config);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "127.0.0.1:6432": with the real port when port 0 was asked for.
  [[nodiscard]] std::string address() const { return address_; }

  // The certificate and key again, for connections from now on. The old ones stay when the new ones cannot be
  // used.
  void reload_tls();

  // No new clients; idle ones are sent away; running statements and open transactions may end within
  // `patience`; then the rest is cut. Blocks until everything is closed.
  void shutdown(std::chrono::milliseconds patience);

 private:
  Server();
  std::unique_ptr<Shared> shared_;
  std::string address_;
  bool stopped_ = false;
};

}  // namespace kintsugi::frontend
