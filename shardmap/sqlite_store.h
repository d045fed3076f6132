// A map in an SQLite file: the embedded store of a single router, and the replica of every router. One thread
// at a time; several objects, also of several processes, may share a file. Private to shardmap/.
#pragma once

#include <memory>
#include <string>

#include "shardmap/map_store.h"
#include "shardmap/sqlite_db.h"

namespace kintsugi::shardmap {

class SqliteStore : public MapStore {
 public:
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& path,
                                                   SqliteSync sync = SqliteSync::kEachCommit);

  Result<StoredMap> load(Deadline deadline) override;
  Result<std::optional<std::vector<LoggedEdit>>> edits_since(std::uint64_t epoch, const std::string& token,
                                                             Deadline deadline) override;
  Result<StoredMap> commit(const StoredMap& base, const MapEdit& edit, const std::vector<NoteChange>& notes,
                           Deadline deadline) override;
  Result<bool> wait(std::uint64_t epoch, Deadline deadline) override;
  Result<std::vector<Note>> notes(const std::string& kind, Deadline deadline) override;
  Status put_notes(const std::vector<NoteChange>& changes, Deadline deadline) override;
  [[nodiscard]] bool writable() const override { return true; }

  // ---- as a replica: takes what the real store has committed.
  // `after` follows `before`, which this file holds, by one edit.
  Status follow(const ShardMap& before, const LoggedEdit& edit, const ShardMap& after);
  // Becomes a copy of `stored`, whatever was here.
  Status become(const StoredMap& stored);

 private:
  explicit SqliteStore(std::unique_ptr<SqliteDb> db) : db_(std::move(db)) {}
  Status write_edit(const ShardMap& before, const ShardMap& after, const MapEdit& edit,
                    const std::string& token);
  Status write_notes(const std::vector<NoteChange>& changes);
  Result<std::uint64_t> epoch();
  Result<std::string> token_of(std::uint64_t epoch);

  std::unique_ptr<SqliteDb> db_;
};

}  // namespace kintsugi::shardmap
