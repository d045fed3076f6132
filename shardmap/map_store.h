// Where the map lives: load it, commit an edit against the epoch it was made for, learn of others' commits.
// Beside the map a store keeps notes, small records that change together with it: routers, shards to bring into
// step, intents, jobs.
//
// A store object belongs to one thread at a time; open one for each. What happens when the store cannot be
// reached: reads fail with 08006, changes with KG006. Every call ends by its deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "shardmap/map_edit.h"

namespace kintsugi::shardmap {

// A map as a store holds it. The token is that of the edit that made this epoch: two stores (or one before and
// after a fail-over that lost a commit) can agree on the number, never on the token.
struct StoredMap {
  MapPtr map;
  std::string token;
};

struct LoggedEdit {
  std::uint64_t epoch = 0;
  std::string token;
  MapEdit edit;
};

struct Note {
  std::string kind;
  std::string key;
  std::string body;
  std::int64_t age_ms = 0;  // since it was written, by the store's clock
};

struct NoteChange {
  std::string kind;
  std::string key;
  std::optional<std::string> body;  // none: the note goes
  // Given: the note must be this now, empty for not there; or the whole commit fails with 40001.
  std::optional<std::string> expected;
};

class MapStore {
 public:
  virtual ~MapStore() = default;

  virtual Result<StoredMap> load(Deadline deadline) = 0;

  // The edits after `epoch`, in order; nothing when the store's history does not hold that epoch with that
  // token (any more): then load().
  virtual Result<std::optional<std::vector<LoggedEdit>>> edits_since(std::uint64_t epoch,
                                                                     const std::string& token,
                                                                     Deadline deadline) = 0;

  // Makes `edit` the next epoch, with the changes of notes, all or nothing. `base` is what the store holds, or
  // 40001: somebody else was first; load and decide again. Gives back the new map. An error of the edit itself
  // changes nothing. When the connection is lost so that nobody can say whether the commit happened, the error
  // is KG006 with a detail that says so.
  virtual Result<StoredMap> commit(const StoredMap& base, const MapEdit& edit,
                                   const std::vector<NoteChange>& notes, Deadline deadline) = 0;

  // Waits until the store's epoch may be another than `epoch`, or the deadline. True: look.
  virtual Result<bool> wait(std::uint64_t epoch, Deadline deadline) = 0;

  virtual Result<std::vector<Note>> notes(const std::string& kind, Deadline deadline) = 0;
  // Changes of notes alone: no new epoch.
  virtual Status put_notes(const std::vector<NoteChange>& changes, Deadline deadline) = 0;

  // False while only a standby of the store can be reached: reads work, commits do not.
  [[nodiscard]] virtual bool writable() const = 0;
};

// "sqlite:FILE" (relative to `directory`) or a PostgreSQL connection string or URI, of one host or several.
// Makes what is missing, upgrades what is older; 0A000 when the store was made by a newer program.
Result<std::unique_ptr<MapStore>> open_store(const std::string& where, const std::string& directory,
                                             Deadline deadline);

// A random uuid, for stores, shards and tokens.
std::string random_uuid();

}  // namespace kintsugi::shardmap
