// One connection to a shard, logged in, and what we know about its session there. Owned by a pool, or by the
// lease that took it out; belongs to the thread of that pool.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/io/stream.h"
#include "executor/outbox.h"
#include "executor/prepared.h"
#include "executor/settings.h"
#include "wire/server_messages.h"

namespace kintsugi::executor {

// Cancel requests that may still reach a connection; shared with those who send them.
struct Cancels {
  int under_way = 0;
  bool lost = false;  // one may arrive at any time: the connection is not to be another client's
};

struct Backend {
  io::Stream stream;
  Outbox out;
  std::string carry;  // the beginning of a message whose rest has not come

  std::string shard;
  io::HostPort peer;  // where cancel requests go
  wire::BackendKey key;
  wire::TransactionStatus status = wire::TransactionStatus::kIdle;

  SettingsRef startup = Settings::none();   // what the startup packet carried
  SettingsRef applied = Settings::none();   // what sessions have set since
  SettingsRef reported = Settings::none();  // the server's ParameterStatus values
  SettingsRef greeted = Settings::none();   // those of its login
  PreparedOnBackend prepared;
  static constexpr std::uint64_t kUnknownOwner = UINT64_MAX;
  std::uint64_t unnamed_owner = 0;  // whose unnamed statement is here, 0: there is none

  // This transaction has made temporary tables here: it cannot be prepared, and so has to be the one that
  // decides.
  bool has_temporaries = false;

  bool broken = false;  // never goes back to the pool
  std::shared_ptr<Cancels> cancels = std::make_shared<Cancels>();
  std::uint64_t leases = 0;
  Deadline::Clock::time_point idle_since;

  // A message that is longer than a chunk and has to be seen whole comes to its end in `carry`.
  io::IoResult read_more_to_carry(std::size_t most);
  [[nodiscard]] bool carries_a_whole_message() const;
  std::string take_carry();

  // A ReadyForQuery has come.
  void note_status(wire::TransactionStatus now) {
    status = now;
    if (now == wire::TransactionStatus::kIdle) has_temporaries = false;
  }
  // A ParameterStatus has come.
  void note_parameter(std::string_view name, std::string_view value);
};

// Rows of a small control query in text format.
using Rows = std::vector<std::vector<std::optional<std::string>>>;

// Sends a simple query of our own and waits for its end; for a backend that has nothing outstanding. Notices
// are dropped, notifications are appended to `notifications` (raw frames) when given. An ErrorResponse is the
// error returned, and the connection stays usable; anything else that goes wrong marks it broken.
io::Task<Result<Rows>> run_control_query(Backend* backend, std::string sql, io::Waiter* waiter,
                                         Deadline deadline, std::string* notifications = nullptr);

// The second half of it: the query has been sent. `tag` takes the last command tag, `error_frame` the
// ErrorResponse as it came, `notices` those and the notifications.
struct ControlExtras {
  std::string* notifications = nullptr;
  std::string* notices = nullptr;
  std::string* tag = nullptr;
  std::string* error_frame = nullptr;
};
io::Task<Result<Rows>> read_control_answer(Backend* backend, io::Waiter* waiter, Deadline deadline,
                                           ControlExtras extras);

}  // namespace kintsugi::executor
