// Runs commands, the same for SQL, REST and the command line: checks the role, audits, changes the map or looks
// at it, waits until the routers have taken the change.
//
// One object a thread at a time; it blocks (libpqxx, SQLite) until the command is done or its deadline has
// passed. Keeps a connection to the store of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "admin/commands/command.h"
#include "admin/commands/command_result.h"
#include "admin/commands/epoch_condition.h"
#include "admin/commands/surroundings.h"
#include "base/deadline.h"
#include "base/error.h"

namespace kintsugi::admin {

// The circumstances of one command.
struct CommandRun {
  Deadline deadline = Deadline::never();
  // Given: the map's epoch must be as it says, or nothing is done and the error is kEpochMoved's.
  std::optional<EpochCondition> epoch;
  // Set by another thread: nobody wants it any more. What has begun may still be done.
  std::shared_ptr<const std::atomic<bool>> canceled;
};

// Of what a command answers, before it has run; none: it answers with its tag alone.
[[nodiscard]] std::vector<ResultColumn> columns_of(const Command& command);

class CommandLayer {
 public:
  explicit CommandLayer(std::shared_ptr<const Surroundings> surroundings);
  ~CommandLayer();
  CommandLayer(const CommandLayer&) = delete;
  CommandLayer& operator=(const CommandLayer&) = delete;

  Result<CommandResult> run(const Command& command, const Actor& actor, const CommandRun& run);

  // For whoever has run DDL on all shards himself (CREATE TABLE ... SHARD BY | REPLICATED, DROP TABLE): records
  // what the table is now, or that it is gone, and waits like a command. `what` is the statement, for the
  // audit.
  Result<CommandResult> record_table(const shardmap::Table& table, const std::string& what, const Actor& actor,
                                     const CommandRun& run);
  Result<CommandResult> forget_table(const std::string& schema, const std::string& name,
                                     const std::string& what, const Actor& actor, const CommandRun& run);

  // For what is done elsewhere and belongs into the audit trail; a store that is away is no reason not to do
  // it, and the log has it in any case.
  void note(const std::string& what, const Actor& actor, const Error* error);

 private:
  using Work = std::function<Result<CommandResult>(shardmap::MapStore& store)>;
  Result<shardmap::MapStore*> store(Deadline deadline);
  // Runs a change with all that belongs around it.
  Result<CommandResult> change(const std::string& what, const Actor& actor, const CommandRun& run,
                               const Work& work);
  Result<CommandResult> look(const Command& command, const Actor& actor, const CommandRun& run);
  void wait_for_routers(shardmap::MapStore& store, Deadline deadline, CommandResult& result) const;

  std::shared_ptr<const Surroundings> surroundings_;
  std::unique_ptr<shardmap::MapStore> store_;
};

}  // namespace kintsugi::admin
