#include "shardmap/sqlite_db.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstring>

namespace kintsugi::shardmap {
namespace {

constexpr int kBusyTimeoutMs = 5000;

}  // namespace

std::string_view SqliteRow::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}
std::int64_t SqliteRow::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}
double SqliteRow::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

Result<std::unique_ptr<SqliteDb>> SqliteDb::open(const std::string& path, SqliteSync sync) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail("58030", "cannot open the file " + path + ": " + std::strerror(errno));
  close(fd);
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<SqliteDb> db(new SqliteDb(handle));
  if (code != SQLITE_OK) return fail(db->error("cannot open " + path));
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  KG_CHECK(db->run("PRAGMA journal_mode = WAL", {}, [](const SqliteRow&) { return Status{}; }));
  KG_CHECK(
      db->run(sync == SqliteSync::kEachCommit ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL"));
  return db;
}

SqliteDb::~SqliteDb() {
  sqlite3_close_v2(db_);
}

Error SqliteDb::error(std::string_view what) const {
  const int code = sqlite3_errcode(db_);
  Error error{.sqlstate = code == SQLITE_BUSY ? "55P03" : "58030",
              .message = std::string(what) + ": " + sqlite3_errmsg(db_)};
  if (code == SQLITE_CONSTRAINT) error.sqlstate = "23505";
  return error;
}

Status SqliteDb::run(const std::string& sql, const std::vector<SqlValue>& values,
                     const std::function<Status(const SqliteRow&)>& on_row) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(db_, sql.c_str(), static_cast<int>(sql.size()), &raw, nullptr) != SQLITE_OK) {
    return fail(error("SQLite cannot prepare a statement"));
  }
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    const std::string& value = values[i].value;
    const int size = static_cast<int>(value.size());
    switch (values[i].kind) {
      case SqlValue::Kind::kText: sqlite3_bind_text(raw, at, value.data(), size, SQLITE_STATIC); break;
      // A blob without bytes must not become NULL.
      case SqlValue::Kind::kBytes:
        sqlite3_bind_blob(raw, at, size == 0 ? "" : value.data(), size, SQLITE_STATIC);
        break;
      case SqlValue::Kind::kInteger: sqlite3_bind_int64(raw, at, std::stoll(value)); break;
    }
  }
  for (;;) {
    const int code = sqlite3_step(raw);
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return fail(error("SQLite cannot run a statement"));
    if (on_row) KG_CHECK(on_row(SqliteRow(raw)));
  }
}

Status SqliteDb::script(std::string_view sql) {
  char* message = nullptr;
  if (sqlite3_exec(db_, std::string(sql).c_str(), nullptr, nullptr, &message) == SQLITE_OK) return {};
  const std::string text = message == nullptr ? "" : message;
  sqlite3_free(message);
  return fail("58030", "SQLite cannot run a script: " + text);
}

int SqliteDb::changes() const {
  return sqlite3_changes(db_);
}

Status SqliteDb::transaction(const std::function<Status()>& work) {
  KG_CHECK(run("BEGIN IMMEDIATE"));
  Status done = work();
  if (done) done = run("COMMIT");
  if (!done) (void)run("ROLLBACK");
  return done;
}

Status SqliteDb::migrate(const std::vector<std::string_view>& scripts) {
  return transaction([&]() -> Status {
    std::size_t version = 0;
    KG_CHECK(run("PRAGMA user_version", {}, [&version](const SqliteRow& row) -> Status {
      version = static_cast<std::size_t>(row.integer(0));
      return {};
    }));
    if (version > scripts.size()) {
      return fail(sqlstate::kNotSupported,
                  "the map file has version " + std::to_string(version) +
                      ", this program knows versions up to " + std::to_string(scripts.size()),
                  "Run the newer program.");
    }
    if (version == scripts.size()) return {};
    for (; version < scripts.size(); ++version) KG_CHECK(script(scripts[version]));
    return run("PRAGMA user_version = " + std::to_string(version));
  });
}

}  // namespace kintsugi::shardmap
