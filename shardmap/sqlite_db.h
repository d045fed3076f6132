// One connection to an SQLite file, as error values. One thread at a time. Private to shardmap/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "shardmap/row_change.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kintsugi::shardmap {

// The row that a statement stands on; views are good until the next one.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  [[nodiscard]] std::string_view bytes(int column) const;
  [[nodiscard]] std::string text(int column) const { return std::string(bytes(column)); }
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;

 private:
  sqlite3_stmt* statement_;
};

// Whether a commit that was answered is there after a power cut. After a crash of the process it is in any
// case.
enum class SqliteSync : std::uint8_t { kEachCommit, kSometime };

class SqliteDb {
 public:
  // Makes the file if need be (mode 0600: it holds the shards' DSNs), in WAL mode.
  static Result<std::unique_ptr<SqliteDb>> open(const std::string& path,
                                                SqliteSync sync = SqliteSync::kEachCommit);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  // One statement; `on_row` sees each row and may fail, which ends the statement.
  Status run(const std::string& sql, const std::vector<SqlValue>& values = {},
             const std::function<Status(const SqliteRow&)>& on_row = nullptr);
  // Several statements without parameters.
  Status script(std::string_view sql);
  // How many rows the last statement changed.
  [[nodiscard]] int changes() const;

  // BEGIN IMMEDIATE, `work`, COMMIT; ROLLBACK when it fails.
  Status transaction(const std::function<Status()>& work);

  // Brings the file to the newest of `scripts`; 0A000 when it is newer than all of them.
  Status migrate(const std::vector<std::string_view>& scripts);

 private:
  explicit SqliteDb(sqlite3* db) : db_(db) {}
  Error error(std::string_view what) const;
  sqlite3* db_;
};

}  // namespace kintsugi::shardmap
