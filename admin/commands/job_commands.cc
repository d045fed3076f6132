#include "admin/commands/job_commands.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include "admin/commands/show_page.h"
#include "splitmerge/jobs.h"

namespace kintsugi::admin {
namespace {

using splitmerge::JobInfo;
using splitmerge::Jobs;
using splitmerge::JobState;

constexpr std::uint32_t kBigint = 20;
constexpr std::chrono::milliseconds kWaitStep{250};  // how soon a wait notices that nobody waits any more
constexpr std::chrono::seconds kMapPatience{2};

std::string shown_progress(const JobInfo& job) {
  const splitmerge::JobProgress& progress = job.progress;
  if (progress.rows == 0 && progress.total == 0) return "";
  std::string text = std::to_string(progress.rows);
  if (progress.total > 0) text += " of " + std::to_string(progress.total);
  text += " rows";
  if (progress.bytes > 0) text += ", " + splitmerge::bytes_text(progress.bytes);
  if (progress.eta_s) text += ", " + std::to_string(static_cast<long>(*progress.eta_s)) + " s left";
  return text;
}

// A split's border with the types of its map's key, as long as a shardlet of it is known there.
void give_types(Json& json, const splitmerge::JobRequest& request, const shardmap::ShardMap& map) {
  std::vector<std::string> names = request.shardlets;
  names.insert(names.end(), request.into.begin(), request.into.end());
  for (const std::string& name : names) {
    const auto there = map.shardlet(name);
    if (!there) continue;
    json["at"] = bound_json(map.mapping(there->map)->bound_types(), *request.at);
    return;
  }
}

Json object_of(const JobInfo& job, Face face, const shardmap::ShardMap& map) {
  if (face != Face::kSql) {
    Json json = Json::parse(splitmerge::to_json(job), nullptr, false);
    if (job.request.at) give_types(json, job.request, map);
    return json;
  }
  Json json = Json::object();
  json["id"] = job.id;
  json["type"] = std::string(splitmerge::name_of(job.request.type));
  json["target"] = splitmerge::target_of(job.request);
  json["state"] = std::string(splitmerge::name_of(job.state));
  json["progress"] = shown_progress(job);
  json["error"] = job.error ? Json(job.error->to_string()) : Json();
  return json;
}

CommandResult one(const JobInfo& job, Face face, const shardmap::ShardMap& map) {
  CommandResult result;
  result.columns = job_columns();
  result.objects.push_back(object_of(job, face, map));
  return result;
}

Result<CommandResult> plan(Jobs& jobs, const command::StartJob& request, Deadline deadline) {
  KG_TRY(const auto moves, jobs.plan(request.request, deadline));
  CommandResult result;
  result.columns = plan_columns();
  for (const splitmerge::PlannedMove& move : moves) {
    result.objects.push_back({{"map", move.map},
                              {"shardlet", move.shardlet},
                              {"from", move.from},
                              {"to", move.to},
                              {"rows", move.rows},
                              {"bytes", move.bytes}});
  }
  return result;
}

// Until the job has ended, or nobody waits any more: then the job goes on.
Result<JobInfo> wait(Jobs& jobs, std::uint64_t id, const CommandRun& run) {
  for (;;) {
    auto ended = jobs.wait(id, run.deadline.sooner(Deadline::in(kWaitStep)));
    if (ended || ended.error().sqlstate != sqlstate::kQueryCanceled || run.deadline.passed()) return ended;
    if (run.canceled && *run.canceled) {
      return fail(sqlstate::kQueryCanceled, "canceling statement due to user request",
                  "Job " + std::to_string(id) + " goes on; CANCEL JOB stops it.");
    }
  }
}

// Until this router's map is no older than the job that was read from the store. What ends a job changes the
// map in the same commit, and whoever is told that it is done and then asks where the rows are must not be
// shown how it was before.
void catch_up(shardmap::MapStore& store, const Surroundings& surroundings, Deadline deadline) {
  const Deadline end = deadline.sooner(Deadline::in(kMapPatience));
  while (!end.passed()) {
    const auto newer = store.wait(surroundings.map()->epoch(), Deadline::in(std::chrono::milliseconds(0)));
    if (!newer || !*newer) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

std::vector<ResultColumn> job_columns() {
  return {{"id", "", kBigint}, {"type"}, {"target"}, {"state"}, {"progress"}, {"error"}};
}

std::vector<ResultColumn> plan_columns() {
  return {{"map"}, {"shardlet"}, {"from"}, {"to"}, {"rows", "", kBigint}, {"bytes", "", kBigint}};
}

Result<CommandResult> start_job(shardmap::MapStore& store, const command::StartJob& request, Face face,
                                const CommandRun& run, const Surroundings& surroundings) {
  Jobs jobs(store);
  if (request.dry_run) return plan(jobs, request, run.deadline);
  KG_TRY(JobInfo job, jobs.submit(request.request, run.deadline));
  if (surroundings.look_for_jobs) surroundings.look_for_jobs();
  if (!request.wait) return one(job, face, *surroundings.map());
  KG_TRY(job, wait(jobs, job.id, run));
  catch_up(store, surroundings, run.deadline);
  if (job.state == JobState::kDone) {
    const shardmap::MapPtr map = surroundings.map();
    CommandResult result = one(job, face, *map);
    result.epoch = map->epoch();
    return result;
  }
  Error error = job.error.value_or(Error{.sqlstate = std::string(sqlstate::kQueryCanceled),
                                         .message = "job " + std::to_string(job.id) + " was canceled"});
  error.detail +=
      (error.detail.empty() ? "" : "\n") + ("Job " + std::to_string(job.id)) + " has undone what it did.";
  return fail(std::move(error));
}

Status provision_shard(shardmap::MapStore& store, const std::string& shard, const CommandRun& run,
                       const std::function<void()>& look_for_jobs, CommandResult& result) {
  splitmerge::JobRequest request;
  request.type = splitmerge::JobType::kProvision;
  request.shard = shard;
  KG_TRY(const JobInfo job, Jobs(store).submit(request, run.deadline));
  if (look_for_jobs) look_for_jobs();
  result.notices.push_back("job " + std::to_string(job.id) + " gives shard \"" + shard +
                           "\" the tables of the others; it may be given shardlets when that is done");
  return {};
}

Result<CommandResult> control_job(shardmap::MapStore& store, const command::ControlJob& request, Face face,
                                  const CommandRun& run, const shardmap::ShardMap& map) {
  Jobs jobs(store);
  KG_TRY(const JobInfo job,
         request.resume ? jobs.resume(request.id, run.deadline) : jobs.cancel(request.id, run.deadline));
  return one(job, face, map);
}

Status show_jobs(shardmap::MapStore& store, const command::Show& request, Face face,
                 const Surroundings& surroundings, Deadline deadline, CommandResult& result) {
  Jobs jobs(store);
  std::vector<JobInfo> all;
  if (request.name) {
    std::uint64_t id = 0;
    std::from_chars(request.name->data(), request.name->data() + request.name->size(), id);
    KG_TRY(all.emplace_back(), jobs.show(id, deadline));
  } else {
    KG_TRY(all, jobs.list(deadline));
  }
  if (std::any_of(all.begin(), all.end(), [](const JobInfo& job) { return splitmerge::is_final(job.state); }))
    catch_up(store, surroundings, deadline);
  const shardmap::MapPtr map = surroundings.map();
  result.epoch = map->epoch();
  if (request.name) {
    result.objects.push_back(object_of(all[0], face, *map));
    return {};
  }
  if (request.newest_first) std::reverse(all.begin(), all.end());
  KG_TRY(const std::uint64_t after, counted_place(request.after));
  for (const JobInfo& job : all) {
    if (after != 0 && (request.newest_first ? job.id >= after : job.id <= after)) continue;
    if (!request.state.empty() && splitmerge::name_of(job.state) != request.state) continue;
    if (!request.type.empty() && splitmerge::name_of(job.request.type) != request.type) continue;
    if (request.limit != 0 && result.objects.size() == request.limit) {
      result.next = std::to_string(result.objects.back()["id"].get<std::uint64_t>());
      break;
    }
    result.objects.push_back(object_of(job, face, *map));
  }
  return {};
}

}  // namespace kintsugi::admin
