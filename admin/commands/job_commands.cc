#include "admin/commands/job_commands.h"

namespace kintsugi::admin {

std::vector<ResultColumn> job_columns() {
  return {{"id", "", 20}, {"type"}, {"target"}, {"state"}, {"progress"}, {"error"}};
}

std::vector<ResultColumn> plan_columns() {
  return {{"map"}, {"shardlet"}, {"from"}, {"to"}, {"rows", "", 20}, {"bytes", "", 20}};
}

Result<CommandResult> start_job(shardmap::MapStore&, const command::StartJob&, Face, const CommandRun&) {
  return fail(sqlstate::kNotSupported, "there are no jobs in this version");
}

Result<CommandResult> control_job(shardmap::MapStore&, const command::ControlJob&, Face, const CommandRun&) {
  return fail(sqlstate::kNotSupported, "there are no jobs in this version");
}

Status show_jobs(shardmap::MapStore&, const command::Show&, Face, Deadline, CommandResult&) {
  return {};
}

}  // namespace kintsugi::admin
