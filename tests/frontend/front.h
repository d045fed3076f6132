// A router in the test's own process before a real PostgreSQL, and a client that speaks the raw protocol to
// either of them, so that the same bytes can be sent to both and what comes back compared.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "frontend/server.h"
#include "tests/patience.h"
#include "tests/pg/cluster.h"
#include "wire/client_messages.h"
#include "wire/server_messages.h"

namespace kintsugi::fronttest {

inline constexpr int kAnswer_ms = 20000 * kPatience;

struct Message {
  char type = 0;
  std::string body;
};

// "1 2 T D(7) C(SELECT 1) Z(I)": types, and of some messages what counts. ParameterStatus is left out.
std::string trace(const std::vector<Message>& messages);

// Composes what a client sends.
struct Batch {
  std::string bytes;
  Batch& query(std::string_view sql);
  Batch& parse(std::string_view name, std::string_view sql);
  Batch& bind(std::string_view portal, std::string_view statement, const std::vector<std::string>& values = {});
  Batch& describe(char kind, std::string_view name);
  Batch& execute(std::string_view portal = "", int max_rows = 0);
  Batch& close(char kind, std::string_view name);
  Batch& sync();
  Batch& flush();
  Batch& copy_data(std::string_view data);
  Batch& copy_done();
  Batch& copy_fail(std::string_view why);
  // Unnamed statement and portal: Parse, Bind, Execute.
  Batch& run(std::string_view sql);
};

// Blocking, with a deadline on every read. Throws when the connection or the wait fails.
class RawClient {
 public:
  using Parameters = std::vector<std::pair<std::string, std::string>>;
  explicit RawClient(int port, const Parameters& more = {}, bool wait_ready = true);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes);
  void send(const Batch& batch) { send(batch.bytes); }
  // Nothing at the end of the connection.
  std::optional<Message> next(int timeout_ms = kAnswer_ms);
  // Up to and with the n-th ReadyForQuery, or the end of the connection (then the trace ends in "EOF").
  std::string until_ready(int n = 1, int timeout_ms = kAnswer_ms);
  // Up to and with the first message of this type.
  std::string until(char type, int timeout_ms = kAnswer_ms);
  // What comes within this time.
  std::string within(int milliseconds);
  std::string query(std::string_view sql);  // and its trace
  std::string value(std::string_view sql);  // the first column of the first row
  std::string exchange(const Batch& batch, int ready = 1);
  void cancel() const;  // over a connection of its own; returns when that has ended
  void close();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int port_ = 0;
  int fd_ = -1;
  std::string in_;
  wire::BackendKey key_;
};

// One PostgreSQL for the program, and one database "app" with its user "postgres".
pgtest::Cluster& cluster();

// A router before it, on a port of its own.
class Front {
 public:
  explicit Front(const std::function<void(Config&)>& adjust = {});
  ~Front();
  [[nodiscard]] int port() const { return port_; }
  frontend::Server& server() { return *server_; }

 private:
  std::unique_ptr<frontend::Server> server_;
  int port_ = 0;
};

// Returns when PostgreSQL runs a statement of the database "app" that contains this text; throws when none
// comes.
void wait_until_runs(const std::string& text);

// SQL straight at PostgreSQL, through psql.
std::string direct(const std::string& sql);

}  // namespace kintsugi::fronttest
