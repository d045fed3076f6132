// Rows of several shards brought together in temporary tables on one of them, the finisher: what tiers 3 and 4
// do before the final statement runs there. Rows stream from shard to shard; no more than a few hundred KB of
// them are here at a time.
//
//   begin a transaction on the finisher (and, inside a transaction of the client's, on every source)
//   Gathering gathering(request);
//   GatherResult filled = co_await gathering.fill();
//   run the final statement on the finisher: a Fan with one branch, or the relay
//   co_await gathering.drop();
//
// The tables are made ON COMMIT DROP: no outcome leaves them behind. drop() is for a transaction that goes on;
// in one that has failed it does nothing, for the rollback (also to a savepoint) takes them. A transaction with
// temporary tables cannot be prepared: its finisher decides at the commit (Backend::has_temporaries says so). A
// READ ONLY transaction cannot create them: begin the finisher's without it.
//
// Belongs to one coroutine and its thread; backends and waiter stay alive and are not used while fill() or
// drop() runs. After fill() every backend is ready, or broken.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/io/task.h"
#include "executor/backend.h"
#include "planner/plan.h"
#include "wire/client_messages.h"

namespace kintsugi::executor {

struct GatherRequest {
  // The plan's relations, and for each of their tasks the connection to its shard, in the same order. A task on
  // the finisher's own connection is an INSERT INTO ... SELECT there.
  struct Relation {
    planner::GatheredRelation relation;
    std::vector<Backend*> sources;
  };
  std::vector<Relation> relations;
  Backend* finisher = nullptr;  // inside a transaction

  std::vector<std::uint32_t> parameter_types;       // OIDs, all of them when there are parameters
  std::vector<wire::BindValues::Value> parameters;  // of the client's Bind: views, used until fill() has ended

  std::uint64_t most_bytes = UINT64_MAX;  // limits.gather_bytes: of all relations together, over the network
  io::Waiter* waiter = nullptr;
  Deadline deadline = Deadline::never();
  std::function<Status()> still_wanted;  // as in FanRequest
  std::function<void(Backend&)> cancel;  // as in FanRequest
  std::uint64_t max_message = std::uint64_t{256} << 20;
};

struct GatherResult {
  bool ok = false;
  std::string error;     // a whole ErrorResponse for the client
  std::string sqlstate;  // of it
  std::uint64_t rows = 0, bytes = 0;
};

class Gathering {
 public:
  explicit Gathering(GatherRequest request) : request_(std::move(request)) {}

  // Makes and fills the tables, and has large ones analysed. When it fails the finisher's transaction has
  // failed too, as one statement of it would have failed it.
  io::Task<GatherResult> fill();
  io::Task<void> drop();

 private:
  io::Task<bool> put_keys(GatherRequest::Relation* what, GatherResult* result);
  io::Task<bool> fill_one(GatherRequest::Relation* what, GatherResult* result);
  [[nodiscard]] std::size_t first_here(const GatherRequest::Relation& what) const;
  [[nodiscard]] std::string opening(const GatherRequest::Relation& what, bool has_sources) const;
  [[nodiscard]] std::string analysing() const;
  io::Task<bool> run_here(std::string text, GatherResult* result, std::uint64_t* rows = nullptr);
  [[nodiscard]] std::string insert_of(const planner::GatheredRelation& relation,
                                      const std::string& select) const;

  GatherRequest request_;
  std::map<std::string, std::uint64_t> rows_of_;  // by temporary table, of those that are filled
};

}  // namespace kintsugi::executor
