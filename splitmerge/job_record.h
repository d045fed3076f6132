// A job as it is kept in the map store: the note of kind `job` with the job's number as key. One record a job,
// and every step is decided by it alone. Changed by compare-and-set only. Private to splitmerge/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardmap/key_predicate.h"
#include "shardmap/map_store.h"
#include "splitmerge/job.h"

namespace kintsugi::splitmerge {

inline constexpr const char* kJobNote = "job";
inline constexpr const char* kCancelNote = "job_cancel";  // key: the job's number; there: stop and undo
inline constexpr const char* kCounterNote = "job_counter";

// How rows of one relation were identified before the job made it FULL.
struct PriorIdentity {
  std::string relation;  // quoted, with its schema
  std::string clause;    // "DEFAULT", "NOTHING", "USING INDEX ..."
  std::string number;    // its oid; empty in records of older routers
  friend bool operator==(const PriorIdentity&, const PriorIdentity&) = default;
};

// A table as one shard knows it, whatever it is called by now.
struct NumberedTable {
  shardmap::Table table;
  std::string number;  // its oid there
  friend bool operator==(const NumberedTable&, const NumberedTable&) = default;
};

// The move that the job is at. What it says is written down before it is done.
struct MoveWork {
  std::string shardlet;
  shardmap::ShardId source = 0;
  shardmap::ShardId target = 0;
  std::vector<shardmap::KeyRange> ranges;
  std::vector<shardmap::Table> tables;  // those of the map when they were copied
  shardmap::ShardletState prior = shardmap::ShardletState::kOnline;
  std::vector<PriorIdentity> identities;
  bool hidden = false;     // the map may hide the range on the target
  bool arrived = false;    // rows of ours may be on the target; before that, its rows are not ours to delete
  bool fenced = false;     // the fence may stand
  bool published = false;  // every router knows the new owner, writes run
  bool verified = false;   // both sides were compared
  // The tables that have rows of the move, on the source and on the target; empty: as `tables` says.
  std::vector<NumberedTable> here, there;
  std::string version;        // of the tables that are copied (version_of); empty: nobody has looked
  std::string version_there;  // the same, of the target's
  std::string committed_at;   // by the source's clock
  friend bool operator==(const MoveWork&, const MoveWork&) = default;
};

// What a move could not take away at once, because transactions had the table: triggers, disabled, and replica
// identities. The job is over for everybody but the runners, who come back for it.
struct Leftover {
  shardmap::ShardId shard = 0;
  bool triggers = false;
  std::vector<PriorIdentity> identities;
  friend bool operator==(const Leftover&, const Leftover&) = default;
};

struct JobRecord {
  JobInfo info;
  std::string owner;         // a runner's uuid; empty: nobody's
  std::uint64_t beat = 0;    // grows while the owner lives
  bool undoing = false;      // on its way to failed or canceled
  bool canceled = false;     // which of the two
  std::optional<Error> why;  // it is undone, whatever delays that meanwhile
  bool split_made = false;   // the map has the two parts; undoing makes them one again
  std::string map;
  MoveWork work;
  std::vector<Leftover> leftovers;
  int attempts = 0;  // to take them away
  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

// Nothing is left to be done for it.
[[nodiscard]] bool is_over(const JobRecord& record);

[[nodiscard]] std::string body_of(const JobRecord& record);
Result<JobRecord> record_of(std::string_view body);

// "2026-11-18T15:00:00.123Z"
[[nodiscard]] std::string utc_now();

}  // namespace kintsugi::splitmerge
