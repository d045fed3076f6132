// Operations on jobs, routers, statistics, recovery, and the map as a file.
#include <charconv>

#include "admin/operation_handlers.h"
#include "admin/request_body.h"
#include "base/log.h"

namespace kintsugi::admin::handlers {
namespace {

using command::Show;

Result<std::uint64_t> job_id(RestRequest& request) {
  const std::string& text = request.path["id"];
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(sqlstate::kUndefinedObject, "job \"" + text.substr(0, 60) + "\" does not exist");
  }
  return id;
}

Answer control(RestRequest& request, bool resume) {
  KG_TRY(const std::uint64_t id, job_id(request));
  return run_one(request, command::ControlJob{id, resume}, 202);
}

Answer list(RestRequest& request, Show::What what) {
  KG_TRY(const Show show, show_page(request, what));
  return run_list(request, show);
}

}  // namespace

Answer list_jobs(RestRequest& request) {
  return list(request, Show::What::kJobs);
}

Answer start_job(RestRequest& request) {
  KG_TRY(auto job, splitmerge::job_request_from_json(request.body));
  const std::string dry_run = request.in_query("dry_run");
  if (dry_run == "true") return run_list(request, command::StartJob{std::move(job), false, true});
  if (!dry_run.empty() && dry_run != "false") {
    return fail(sqlstate::kInvalidParameter, "dry_run is true or false");
  }
  return run_one(request, command::StartJob{std::move(job), false, false}, 202);
}

Answer get_job(RestRequest& request) {
  KG_TRY(const std::uint64_t id, job_id(request));
  Show show;
  show.what = Show::What::kJobs;
  show.name = std::to_string(id);
  return run_one(request, show);
}

Answer cancel_job(RestRequest& request) {
  return control(request, false);
}

Answer resume_job(RestRequest& request) {
  return control(request, true);
}

Answer list_routers(RestRequest& request) {
  return list(request, Show::What::kRouters);
}

Answer list_statistics(RestRequest& request) {
  return list(request, Show::What::kStats);
}

Answer list_pools(RestRequest& request) {
  return list(request, Show::What::kPools);
}

Answer list_audit(RestRequest& request) {
  return list(request, Show::What::kAudit);
}

Answer list_slow(RestRequest& request) {
  return list(request, Show::What::kSlow);
}

Answer explain(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  const std::string statement = body.text("statement");
  KG_CHECK(body.finish());
  if (!request.surroundings.route) return fail(sqlstate::kCannotConnectNow, "the router does not route yet");
  KG_TRY(const auto lines, request.surroundings.route(statement, request.actor.name));
  RestAnswer answer;
  answer.body = {{"lines", lines}};
  return answer;
}

namespace {

Json user_json(const TokenOwner& owner) {
  return {{"name", owner.name}, {"role", std::string(name_of(owner.role))}, {"created", owner.created}};
}

}  // namespace

// Who may do what is not the shard map's matter: no command, but a line in the log.
Answer list_users(RestRequest& request) {
  KG_TRY(const auto owners, request.users.list());
  RestAnswer answer;
  answer.body = {{"items", Json::array()}, {"next", nullptr}};
  for (const TokenOwner& owner : owners) answer.body["items"].push_back(user_json(owner));
  return answer;
}

Answer add_user(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  const std::string name = body.text("name");
  const auto role = role_named(body.text("role"));
  if (!role) body.complain("\"role\" is viewer, operator or admin");
  KG_CHECK(body.finish());
  KG_TRY(const std::string token, request.users.add(name, *role));
  log::info("a user was added", {{"user", name}, {"role", name_of(*role)}, {"by", request.actor.name}});
  RestAnswer answer;
  answer.status = 201;
  answer.body = {{"name", name}, {"role", std::string(name_of(*role))}, {"token", token}};
  return answer;
}

Answer remove_user(RestRequest& request) {
  const std::string& name = request.path["user"];
  KG_CHECK(request.users.remove(name));
  log::info("a user was removed", {{"user", name}, {"by", request.actor.name}});
  RestAnswer answer;
  answer.status = 204;
  return answer;
}

Answer get_epoch(RestRequest& request) {
  const shardmap::MapPtr map = request.surroundings.map();
  RestAnswer answer;
  answer.body = {{"epoch", map->epoch()}, {"store_id", map->store_id()}};
  answer.epoch = map->epoch();
  return answer;
}

Answer check(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  const command::Check command{body.truth_if("rows").value_or(true)};
  KG_CHECK(body.finish());
  return run_list(request, command);
}

Answer resolve(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  const std::string from = body.text("from");
  if (from != "store" && from != "shards") body.complain("\"from\" is store or shards: the side that is right");
  const command::Resolve command{from == "shards", body.truth_if("dry_run").value_or(false)};
  KG_CHECK(body.finish());
  return run_list(request, command);
}

Answer rebuild(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  const command::Rebuild command{body.texts("dsns")};
  KG_CHECK(body.finish());
  return run_list(request, command);
}

Answer export_map(RestRequest& request) {
  KG_TRY(CommandResult result, request.layer.run(command::Export{}, request.actor, request.run));
  RestAnswer answer;
  answer.text = std::move(result.text);
  return answer;
}

Answer import_map(RestRequest& request) {
  KG_TRY(const CommandResult done,
         request.layer.run(command::Import{std::string(request.body)}, request.actor, request.run));
  RestAnswer answer;
  answer.body = {{"epoch", done.epoch}};
  answer.epoch = done.epoch;
  answer.notices = done.notices;
  return answer;
}

}  // namespace kintsugi::admin::handlers
