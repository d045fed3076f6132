// One connection to a PostgreSQL for control work: libpqxx, as error values, each call ended by its deadline.
// One thread at a time. For shardmap/ and splitmerge/; no header of libpqxx is seen here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "shardmap/row_change.h"

namespace kintsugi::shardmap {

// A row's values as text; a NULL is none.
using PgRow = std::vector<std::optional<std::string>>;

// For sessions whose transactions are short: should the process be frozen in the midst of one, the server ends
// it soon. Its locks would hold up every other router, and a replication slot waits for all that run on a
// server.
inline constexpr const char* kEndIdleTransactions = "SET idle_in_transaction_session_timeout = '5s'; ";

class PgSession {
 public:
  // Of several hosts in `dsn`, `primary` takes one that takes writes, otherwise any will do. What is committed
  // is on the disk, whatever the database's synchronous_commit.
  static Result<std::unique_ptr<PgSession>> connect(const std::string& dsn, bool primary, Deadline deadline);
  ~PgSession();
  PgSession(const PgSession&) = delete;
  PgSession& operator=(const PgSession&) = delete;

  // From now on errors begin with this: `shard "s2": ...`, where there are several servers.
  void call_it(std::string name);

  // False once the connection is lost, for good: make another session.
  [[nodiscard]] bool good() const;
  // Whether the server took writes when we connected.
  [[nodiscard]] bool writable() const;

  // One statement. An error of the server keeps its SQLSTATE; a lost connection or a passed deadline is 08006,
  // and the session is then no longer good.
  Result<std::vector<PgRow>> query(const std::string& sql, const std::vector<SqlValue>& values,
                                   Deadline deadline);
  Status run(const std::string& sql, const std::vector<SqlValue>& values, Deadline deadline);
  // Several statements without parameters.
  Status script(std::string_view sql, Deadline deadline);

  // BEGIN, `work`, COMMIT; ROLLBACK when it fails. `in_doubt` is set when the connection was lost at COMMIT.
  Status transaction(const std::function<Status()>& work, Deadline deadline, bool* in_doubt = nullptr);

  // After LISTEN: waits for a notification; false when the deadline came first.
  Result<bool> wait_notification(Deadline deadline);

 private:
  struct Connection;
  explicit PgSession(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

// Bytes as PostgreSQL's bytea text form, and back.
std::string bytea_text(std::string_view bytes);
std::string bytes_of_bytea(std::string_view text);

// Runs the scripts that `schema` has not seen, under an advisory lock, and makes the schema. 0A000 when it is
// newer than all of them; `what` names it in messages.
Status migrate_schema(PgSession& session, const std::string& schema,
                      const std::vector<std::string_view>& scripts, const std::string& what, Deadline deadline);

}  // namespace kintsugi::shardmap
