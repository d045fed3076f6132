// What somebody wants done, as a value: made of an SQL statement, a REST request or a command line, run by
// CommandLayer, written into the audit trail as text. Keys are in PostgreSQL's text form. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shardmap/map_commands.h"
#include "splitmerge/job.h"

namespace kintsugi::admin {

// Each may do what the one before may.
enum class Role : std::uint8_t {
  kViewer,    // look
  kOperator,  // start and stop jobs, take shardlets offline and online
  kAdmin,     // change shards, maps and tables
};
enum class Face : std::uint8_t { kSql, kRest };

struct Actor {
  std::string name;  // the database user, or the token's name
  Role role = Role::kViewer;
  Face face = Face::kSql;
};

namespace command {

struct CreateShard {
  shardmap::NewShard shard;
  bool if_not_exists = false;
};
struct AlterShard {
  std::string name;
  std::optional<std::string> new_name, dsn;
  std::optional<shardmap::ShardState> state;
};
struct DropShard {
  std::string name;
  bool if_exists = false;
};
struct CreateMap {
  shardmap::NewMap map;
  bool if_not_exists = false;
};
struct DropMap {
  std::string name;
  bool if_exists = false;
};
struct CreateShardlet {
  shardmap::edit::CreateShardlet shardlet;
  bool if_not_exists = false;
};
struct AlterShardlet {
  std::string name;
  std::optional<std::string> new_name;
  std::optional<shardmap::ShardletState> state;
};
struct DropShardlet {
  std::string name;
  bool if_exists = false;
};
// Takes a table that the shards have into the map, or says that it is replicated.
struct PlaceTable {
  shardmap::Table table;
  bool if_exists = false;
};
// It is a home table again; its rows are not touched.
struct UnplaceTable {
  std::string schema, name;
  bool if_exists = false;
};

// A split, merge, move, drain or rebalance. Answers with the job at once, or when it has ended.
struct StartJob {
  splitmerge::JobRequest request;
  bool wait = false;
  bool dry_run = false;  // drain, rebalance: says what would be moved, moves nothing
};
struct ControlJob {
  std::uint64_t id = 0;
  bool resume = false;  // else cancel
};

struct Show {
  enum class What : std::uint8_t {
    kShards,
    kMaps,
    kShardlets,
    kTables,
    kJobs,
    kRouters,
    kPools,
    kStats,
    kSlow,
    kAudit,
  };
  What what = What::kShards;
  std::string map;                  // shardlets and tables of this map only
  std::string shard;                // shardlets of this shard only
  std::string state, type;          // shards, shardlets, jobs in this state; jobs of this type only
  bool newest_first = false;        // jobs
  std::string who;                  // what this one has asked for, of the audit trail
  std::optional<std::string> name;  // this one; 42704 when there is none
  // A page of a list: at most so many (0: all), after that one (the `next` of the page before).
  std::size_t limit = 0;
  std::string after;
};
struct Lookup {
  std::string map;
  std::vector<std::string> key;
};
struct Check {
  bool rows = true;
};
struct Resolve {
  bool from_shards = false;  // the shards are right, and the store is made to say the same
  bool dry_run = false;
};
// Fills an empty store from what its shards know, as after its loss.
struct Rebuild {
  std::vector<std::string> dsns;
};
struct Export {};
struct Import {
  std::string text;
};

}  // namespace command

using Command =
    std::variant<command::CreateShard, command::AlterShard, command::DropShard, command::CreateMap,
                 command::DropMap, command::CreateShardlet, command::AlterShardlet, command::DropShardlet,
                 command::PlaceTable, command::UnplaceTable, command::StartJob, command::ControlJob,
                 command::Show, command::Lookup, command::Check, command::Resolve, command::Rebuild,
                 command::Export, command::Import>;

// Whose role suffices.
[[nodiscard]] Role role_needed(const Command& command);

// It changes nothing: not refused where the map is fixed, nor audited, but for an export.
[[nodiscard]] bool only_looks(const Command& command);

// As the SQL of it, or words like it, without passwords: for the audit trail and logs.
[[nodiscard]] std::string describe(const Command& command);

// "CREATE SHARD": the command tag of its success.
[[nodiscard]] std::string_view tag_of(const Command& command);

[[nodiscard]] std::string_view name_of(Role role);
[[nodiscard]] std::optional<Role> role_named(std::string_view name);
[[nodiscard]] std::string_view name_of(Face face);

}  // namespace kintsugi::admin
