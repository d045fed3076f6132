// What may be asked of the mover, and what a job says of itself: plain values, with their JSON (CONTRACT §6).
// Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "shardmap/key_encoding.h"

namespace kintsugi::splitmerge {

enum class JobType : std::uint8_t {
  kMove,       // a shardlet to another shard
  kSplit,      // a shardlet in two, one of which may move
  kMerge,      // neighbours into one, moved together first where they live apart
  kDrain,      // all shardlets of a shard to the others
  kRebalance,  // the fewest moves that make the shards about equal
  kProvision,  // a new shard gets the schema of the others and the replicated tables
};
[[nodiscard]] std::string_view name_of(JobType type);
[[nodiscard]] std::optional<JobType> job_type_named(std::string_view name);

enum class JobState : std::uint8_t {
  kQueued,
  kPreparing,
  kCopying,
  kCatchingUp,
  kFenced,
  kCommitted,
  kCleaning,
  kDone,
  kFailed,    // everything undone, `error` says why; may be resumed
  kCanceled,  // everything undone
};
[[nodiscard]] std::string_view name_of(JobState state);  // "catching_up"
[[nodiscard]] std::optional<JobState> job_state_named(std::string_view name);
[[nodiscard]] bool is_final(JobState state);

enum class MoveMode : std::uint8_t {
  kOnline,   // copied while it is written to; needs wal_level = logical
  kOffline,  // writes wait for the whole copy
};
[[nodiscard]] std::string_view name_of(MoveMode mode);
[[nodiscard]] std::optional<MoveMode> move_mode_named(std::string_view name);

struct JobRequest {
  JobType type = JobType::kMove;
  std::vector<std::string> shardlets;  // move, split: one; merge: the neighbours, any order
  std::string to;                      // move: the target; split: of the part that moves; merge: ON SHARD
  std::optional<shardmap::Bound> at;  // split: the first key of the right part; a shorter one is a prefix, what
                                      // is missing is MINVALUE. None: the middle of the data
  std::vector<std::string> into;      // split: left and right; merge: one. Empty: names are found
  std::string move;                   // split with `to`: the part that moves, by its name or "l", "r"; empty: r
  std::string shard;                  // drain, provision
  std::string map;                    // rebalance: one map; empty: all
  bool by_rows = false;               // rebalance: the rows are made about equal; otherwise the bytes
  MoveMode mode = MoveMode::kOnline;
  std::uint64_t max_rate = 0;  // bytes a second while copying; 0: no limit
  friend bool operator==(const JobRequest&, const JobRequest&) = default;
};

struct JobProgress {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;      // rows, estimated when the copy begins; 0: not known yet
  std::optional<double> eta_s;  // of the copy
  friend bool operator==(const JobProgress&, const JobProgress&) = default;
};

struct JobEvent {
  std::string at;  // UTC, ISO 8601
  std::string what;
  friend bool operator==(const JobEvent&, const JobEvent&) = default;
};

struct JobInfo {
  std::uint64_t id = 0;
  JobRequest request;
  JobState state = JobState::kQueued;
  JobProgress progress;
  // Why it failed; or, in a state that is not final, what is in the way and is tried again.
  std::optional<Error> error;
  std::string started;  // empty: not yet
  std::string ended;
  std::vector<JobEvent> history;
  bool canceling = false;               // asked to stop, or being undone
  std::uint64_t parent = 0;             // the drain or rebalance that it is part of
  std::vector<std::uint64_t> children;  // of a drain or rebalance
  std::string router;                   // who runs it now
  friend bool operator==(const JobInfo&, const JobInfo&) = default;
};

[[nodiscard]] std::string bytes_text(std::uint64_t bytes);  // "156 MB"

// "50MB/s", "64kB", "1000000": bytes a second. None: no such rate, or more than 64 bits can count.
[[nodiscard]] std::optional<std::uint64_t> rate_named(std::string_view text);

// One line for SHOW JOBS: "a to s2".
[[nodiscard]] std::string target_of(const JobRequest& request);

// The body of POST /v1/jobs. Members that the type does not have are refused (22023).
Result<JobRequest> job_request_from_json(std::string_view json);
// What the API answers: the request and what became of it.
[[nodiscard]] std::string to_json(const JobInfo& job);

}  // namespace kintsugi::splitmerge
