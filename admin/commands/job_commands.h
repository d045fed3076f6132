// Commands about jobs: started, watched, stopped. The work itself is splitmerge/'s. Private to admin/commands/.
#pragma once

#include "admin/commands/command.h"
#include "admin/commands/command_layer.h"
#include "admin/commands/command_result.h"
#include "admin/commands/surroundings.h"

namespace kintsugi::admin {

[[nodiscard]] std::vector<ResultColumn> job_columns();

[[nodiscard]] std::vector<ResultColumn> plan_columns();  // of a dry run

// The job as it is now, or as it has ended with `wait`; a job that failed is an error then. With dry_run the
// moves that would be made.
Result<CommandResult> start_job(shardmap::MapStore& store, const command::StartJob& request, Face face,
                                const CommandRun& run, const Surroundings& surroundings);
// Starts the job that makes a new shard like the others, and says so in a notice.
Status provision_shard(shardmap::MapStore& store, const std::string& shard, const CommandRun& run,
                       const std::function<void()>& look_for_jobs, CommandResult& result);
Result<CommandResult> control_job(shardmap::MapStore& store, const command::ControlJob& request, Face face,
                                  const CommandRun& run, const shardmap::ShardMap& map);
// What the jobs that it shows as ended have done is in this router's map when it returns.
Status show_jobs(shardmap::MapStore& store, const command::Show& request, Face face,
                 const Surroundings& surroundings, Deadline deadline, CommandResult& result);

}  // namespace kintsugi::admin
