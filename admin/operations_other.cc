// Operations on jobs, routers, statistics, recovery, and the map as a file.
#include <charconv>

#include "admin/operation_handlers.h"
#include "admin/request_body.h"

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
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  KG_CHECK(body.finish());  // there is nothing to say
  return run_one(request, command::ControlJob{id, resume}, 202);
}

Answer list(RestRequest& request, Show::What what) {
  KG_TRY(const Show show, show_page(request, what));
  return run_list(request, show);
}

}  // namespace

Answer list_jobs(RestRequest& request) {
  KG_TRY(Show show, show_page(request, Show::What::kJobs));
  show.state = request.in_query("state");
  show.type = request.in_query("type");
  if (!show.state.empty() && !splitmerge::job_state_named(show.state))
    return fail(sqlstate::kInvalidParameter, "\"" + show.state.substr(0, 60) + "\" is no state of a job",
                "queued, preparing, copying, catching_up, fenced, committed, cleaning, done, failed, canceled");
  if (!show.type.empty() && !splitmerge::job_type_named(show.type))
    return fail(sqlstate::kInvalidParameter, "\"" + show.type.substr(0, 60) + "\" is no type of job",
                "move, split, merge, drain, rebalance, provision");
  const std::string order = request.in_query("order");
  if (!order.empty() && order != "newest" && order != "oldest")
    return fail(sqlstate::kInvalidParameter, "order is newest or oldest");
  show.newest_first = order == "newest";
  return run_list(request, show);
}

Answer start_job(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  KG_TRY(const std::string text, body.text_with_bound("at"));
  KG_TRY(auto job, splitmerge::job_request_from_json(text));
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
  KG_TRY(Show show, show_page(request, Show::What::kPools));
  show.shard = request.in_query("shard");
  return run_list(request, show);
}

Answer list_audit(RestRequest& request) {
  KG_TRY(Show show, show_page(request, Show::What::kAudit));
  show.who = request.in_query("who");
  return run_list(request, show);
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

// Who may do what is not the shard map's matter, and a token can be revoked while the store is away: no command
// of the layer, but audited like one.
Answer list_users(RestRequest& request) {
  KG_TRY(const Show page, show_page(request, Show::What::kAudit));  // of it only where it begins and ends
  KG_TRY(const auto owners, request.users.list());
  std::size_t at = 0;
  std::from_chars(page.after.data(), page.after.data() + page.after.size(), at);
  RestAnswer answer;
  answer.body = {{"items", Json::array()}, {"next", nullptr}};
  for (; at < owners.size() && answer.body["items"].size() < page.limit; ++at)
    answer.body["items"].push_back(user_json(owners[at]));
  if (at < owners.size()) answer.body["next"] = std::to_string(at);
  return answer;
}

Answer add_user(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  const std::string name = body.text("name");
  const auto role = role_named(body.text("role"));
  if (!role) body.complain("\"role\" is viewer, operator or admin");
  KG_CHECK(body.finish());
  const auto token = request.users.add(name, *role);
  request.layer.note("user add " + name.substr(0, 80) + " --role " + std::string(name_of(*role)), request.actor,
                     token ? nullptr : &token.error());
  if (!token) return fail(token.error());
  RestAnswer answer;
  answer.status = 201;
  answer.body = {{"name", name}, {"role", std::string(name_of(*role))}, {"token", *token}};
  return answer;
}

Answer remove_user(RestRequest& request) {
  const std::string& name = request.path["user"];
  const Status removed = request.users.remove(name);
  request.layer.note("user remove " + name.substr(0, 80), request.actor, removed ? nullptr : &removed.error());
  KG_CHECK(removed);
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
