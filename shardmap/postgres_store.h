// The map in a PostgreSQL database, in schema kintsugi_map, for many routers. Connects when it must, follows a
// promoted standby through the hosts of its connection string, reads from a standby while no primary answers.
// One thread at a time. Private to shardmap/.
#pragma once

#include <memory>
#include <string>

#include "shardmap/map_store.h"
#include "shardmap/pg_session.h"

namespace kintsugi::shardmap {

class PostgresStore : public MapStore {
 public:
  // Hasty: commits do not wait for the disk, nor for a standby.
  explicit PostgresStore(std::string dsn, bool hasty = false) : dsn_(std::move(dsn)), hasty_(hasty) {}

  // Connects and upgrades the schema now rather than with the first call.
  Status prepare(Deadline deadline);

  Result<StoredMap> load(Deadline deadline) override;
  Result<std::optional<std::vector<LoggedEdit>>> edits_since(std::uint64_t epoch, const std::string& token,
                                                             Deadline deadline) override;
  Result<StoredMap> commit(const StoredMap& base, const MapEdit& edit, const std::vector<NoteChange>& notes,
                           Deadline deadline) override;
  Result<bool> wait(std::uint64_t epoch, Deadline deadline) override;
  Result<std::vector<Note>> notes(const std::string& kind, Deadline deadline) override;
  Status put_notes(const std::vector<NoteChange>& changes, Deadline deadline) override;
  [[nodiscard]] bool writable() const override { return session_ && session_->good() && session_->writable(); }

 private:
  // A session for reading: the primary, or any host when there is none.
  Status need_session(Deadline deadline);
  Status need_writable(Deadline deadline);
  Status take_session(bool primary, Deadline deadline);
  Result<StoredMap> read_map(Deadline deadline);
  Status read_entries(ShardMapLoader& loader, const std::string& map, Deadline deadline);
  Status write_commit(const StoredMap& base, const ShardMap& next, const MapEdit& edit,
                      const std::string& token, const std::vector<NoteChange>& notes, Deadline deadline);
  // After a COMMIT without an answer.
  Status settle_doubt(std::uint64_t epoch, const std::string& token, Deadline deadline);

  std::string dsn_;
  bool hasty_;
  std::unique_ptr<PgSession> session_;
  bool fresh_session_ = false;  // not yet told by wait()
  bool listening_ = false;
  Deadline::Clock::time_point look_for_primary_{};
};

}  // namespace kintsugi::shardmap
