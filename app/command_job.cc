// kintsugi split, merge, move, drain, rebalance, job list|show|watch|cancel|resume
#include "app/client_command.h"
#include "app/job_watch.h"

namespace kintsugi::app {
namespace {

const std::vector<std::string> kColumns = {"id", "type", "target", "state", "progress", "error"};
const std::vector<std::string> kPlanColumns = {"map", "shardlet", "from", "to", "rows", "bytes"};

struct Values {
  std::vector<std::string> shardlets, at, into;
  std::string to, move, map, mode = "online", max_rate, id, by;
  bool detach = false, dry_run = false;
};

int start(Talk& talk, Json body, const Values& values) {
  body["mode"] = values.mode;
  if (!values.max_rate.empty()) body["max_rate"] = values.max_rate;
  if (values.dry_run) return talk.call("POST", "/v1/jobs?dry_run=true", body, kPlanColumns);
  auto job = talk.client().call("POST", "/v1/jobs", body);
  if (!job) return talk.failed(job.error());
  if (values.detach) {
    talk.print(job->body, kColumns);
    return kDone;
  }
  return watch_job(talk, job->body);
}

void add_job_options(ClientCommand& command, const std::shared_ptr<Values>& values) {
  command.app->add_flag("--detach", values->detach, "do not wait for the job's end");
  command.app
      ->add_option("--mode", values->mode, "online: while it is written to; offline: writes wait for the copy")
      ->check(CLI::IsMember({"online", "offline"}))
      ->capture_default_str();
  command.app->add_option("--max-rate", values->max_rate, "the most that is copied, as 50MB/s");
}

void add_split(CLI::App& root, int& exit_code, const std::shared_ptr<Values>& values) {
  auto split = add_client_command(root, "split", "a shardlet in two", exit_code, [values](Talk& talk) {
    Json body = {{"type", "split"}, {"shardlet", values->shardlets.at(0)}};
    if (!values->at.empty()) body["at"] = values->at;
    if (!values->into.empty()) body["into"] = values->into;
    if (!values->to.empty()) body["to"] = values->to;
    if (!values->move.empty()) body["move"] = values->move;
    return start(talk, std::move(body), *values);
  });
  split.app->add_option("SHARDLET", values->shardlets)->required()->expected(1);
  split.app
      ->add_option("--at", values->at, "the first key of the right part; without it the middle of the data")
      ->delimiter(',');
  split.app->add_option("--into", values->into, "the names of the two parts: l,r")->delimiter(',');
  split.app->add_option("--to", values->to, "the shard that one part moves to");
  split.app->add_option("--move", values->move, "which part moves; the right one when not said");
  add_job_options(split, values);
}

void add_merge(CLI::App& root, int& exit_code, const std::shared_ptr<Values>& values) {
  auto merge =
      add_client_command(root, "merge", "neighbouring shardlets into one", exit_code, [values](Talk& talk) {
        Json body = {{"type", "merge"}, {"shardlets", values->shardlets}};
        if (!values->into.empty()) body["into"] = values->into[0];
        if (!values->to.empty()) body["to"] = values->to;
        return start(talk, std::move(body), *values);
      });
  merge.app->add_option("SHARDLETS", values->shardlets)->required()->expected(2);
  merge.app->add_option("--into", values->into, "its name")->expected(1);
  merge.app->add_option("--on", values->to, "the shard that has it");
  add_job_options(merge, values);
}

void add_move(CLI::App& root, int& exit_code, const std::shared_ptr<Values>& values) {
  auto move = add_client_command(
      root, "move", "a shardlet to another shard, while it is used", exit_code, [values](Talk& talk) {
        return start(talk, {{"type", "move"}, {"shardlet", values->shardlets.at(0)}, {"to", values->to}},
                     *values);
      });
  move.app->add_option("SHARDLET", values->shardlets)->required()->expected(1);
  move.app->add_option("--to", values->to, "the shard")->required();
  add_job_options(move, values);
}

void add_drain_and_rebalance(CLI::App& root, int& exit_code, const std::shared_ptr<Values>& values) {
  auto drain = add_client_command(root, "drain", "all shardlets of a shard to the others", exit_code,
                                  [values](Talk& talk) {
                                    return start(talk, {{"type", "drain"}, {"shard", values->to}}, *values);
                                  });
  drain.app->add_option("SHARD", values->to)->required();
  drain.app->add_flag("--dry-run", values->dry_run, "only say what would be moved");
  add_job_options(drain, values);

  auto rebalance = add_client_command(root, "rebalance", "the fewest moves that make the shards about equal",
                                      exit_code, [values](Talk& talk) {
                                        Json body = {{"type", "rebalance"}};
                                        if (!values->map.empty()) body["map"] = values->map;
                                        if (!values->by.empty()) body["by"] = values->by;
                                        return start(talk, std::move(body), *values);
                                      });
  rebalance.app->add_option("--map", values->map, "one map; all when not said");
  rebalance.app->add_option("--by", values->by,
                            "what is to be about equal: bytes (unless said otherwise) or rows");
  rebalance.app->add_flag("--dry-run", values->dry_run, "only say what would be moved");
  add_job_options(rebalance, values);
}

int watch(Talk& talk, const std::string& id) {
  auto job = talk.client().call("GET", "/v1/jobs/" + url_encoded(id));
  return job ? watch_job(talk, job->body) : talk.failed(job.error());
}

}  // namespace

void add_jobs(CLI::App& root, int& exit_code) {
  const auto values = std::make_shared<Values>();
  add_split(root, exit_code, values);
  add_merge(root, exit_code, values);
  add_move(root, exit_code, values);
  add_drain_and_rebalance(root, exit_code, values);

  CLI::App* group = add_group(root, "job", "what is moving and what has moved");
  (void)add_client_command(*group, "list", "all jobs", exit_code,
                           [](Talk& talk) { return talk.list("/v1/jobs", kColumns); });
  const auto one = [&](const char* name, const char* help, const std::function<int(Talk&)>& run) {
    auto command = add_client_command(*group, name, help, exit_code, run);
    command.app->add_option("ID", values->id)->required();
  };
  one("show", "one job",
      [values](Talk& talk) { return talk.call("GET", "/v1/jobs/" + url_encoded(values->id), {}, kColumns); });
  one("watch", "wait for a job's end", [values](Talk& talk) { return watch(talk, values->id); });
  one("cancel", "stop a job and undo what it did", [values](Talk& talk) {
    return talk.call("POST", "/v1/jobs/" + url_encoded(values->id) + "/cancel", {}, kColumns);
  });
  one("resume", "start a failed or canceled job again", [values](Talk& talk) {
    return talk.call("POST", "/v1/jobs/" + url_encoded(values->id) + "/resume", {}, kColumns);
  });
}

}  // namespace kintsugi::app
