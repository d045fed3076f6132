// A job's connections to its two shards. Each bears the job's name and is used only after the lease was renewed
// with it already open, so that a successor can end all that its predecessor still had. Plain libpq besides the
// control session, for COPY and for the command that makes a slot. One thread at a time per connection. Private
// to splitmerge/.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/pg_session.h"
#include "shardmap/shard_map.h"
#include "splitmerge/job_lease.h"

struct pg_conn;
struct pg_result;

namespace kintsugi::splitmerge {

// What a job's things on the shards are called: "kintsugi_1f2e3d4c_17", unlike those of other stores' jobs.
[[nodiscard]] std::string job_name(const std::string& store_id, std::uint64_t id);

// An error in connecting to it says which shard cannot be reached; others are what they are.
[[nodiscard]] Error of_shard(const shardmap::Shard& shard, Error error);

// A control session: superuser's view, sorted and printed the same on every server, no user triggers.
Result<std::unique_ptr<shardmap::PgSession>> open_session(const shardmap::Shard& shard, const std::string& name,
                                                          JobLease& lease, Deadline deadline);

// Ends every connection of that name but our own; what it did is over when this returns.
Status end_predecessors(shardmap::PgSession& session, const std::string& name, Deadline deadline);

class RawLink {
 public:
  // `replication`: for the commands of the replication protocol.
  static Result<RawLink> open(const shardmap::Shard& shard, const std::string& name, bool replication,
                              JobLease& lease, Deadline deadline);
  ~RawLink();
  RawLink(RawLink&& other) noexcept;
  RawLink& operator=(RawLink&& other) noexcept;

  // One command; waits until it is done, the deadline, or `go_on` says no (asked every 20 ms).
  using GoOn = std::function<Status()>;
  Result<std::vector<shardmap::PgRow>> run(const std::string& sql, Deadline deadline, const GoOn& go_on);

  [[nodiscard]] pg_conn* pg() { return connection_; }
  // What went wrong last, as the server said it.
  [[nodiscard]] Error error(const pg_result* result) const;

 private:
  explicit RawLink(pg_conn* connection) : connection_(connection) {}
  pg_conn* connection_ = nullptr;
};

}  // namespace kintsugi::splitmerge
