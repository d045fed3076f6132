// kintsugi shard list|add|set|remove
#include "app/client_command.h"

namespace kintsugi::app {
namespace {

const std::vector<std::string> kColumns = {"name", "state", "home", "entries", "dsn"};

struct Values {
  std::string name, dsn, state, new_name;
};

}  // namespace

void add_shard(CLI::App& root, int& exit_code) {
  CLI::App* group = add_group(root, "shard", "the shards: PostgreSQL databases that hold data");
  auto values = std::make_shared<Values>();

  (void)add_client_command(*group, "list", "all shards", exit_code,
                           [](Talk& talk) { return talk.list("/v1/shards", kColumns); });

  auto add = add_client_command(*group, "add", "make a database a shard", exit_code, [values](Talk& talk) {
    return talk.call("POST", "/v1/shards", {{"name", values->name}, {"dsn", values->dsn}}, kColumns);
  });
  add.app->add_option("NAME", values->name, "its name, as s1")->required();
  add.app->add_option("DSN", values->dsn, "how to reach it: 'host=10.0.0.5 dbname=app user=app'")->required();

  auto set = add_client_command(
      *group, "set", "change how a shard is reached, its state or name", exit_code, [values](Talk& talk) {
        Json body = Json::object();
        if (!values->dsn.empty()) body["dsn"] = values->dsn;
        if (!values->state.empty()) body["state"] = values->state;
        if (!values->new_name.empty()) body["name"] = values->new_name;
        if (body.empty()) return talk.misused("say what is to be changed: --dsn, --state or --name");
        return talk.call("PATCH", "/v1/shards/" + url_encoded(values->name), body, kColumns);
      });
  set.app->add_option("NAME", values->name)->required();
  set.app->add_option("--dsn", values->dsn, "the same database at another address");
  set.app->add_option("--state", values->state, "what it is to be")
      ->check(CLI::IsMember({"online", "draining", "offline"}));
  set.app->add_option("--name", values->new_name, "another name");

  auto remove = add_client_command(*group, "remove", "give a shard's database back; it must have no shardlets",
                                   exit_code, [values](Talk& talk) -> int {
                                     if (!talk.confirmed("Remove shard " + values->name + "?"))
                                       return kWrongUsage;
                                     return talk.done("DELETE", "/v1/shards/" + url_encoded(values->name), {},
                                                      "Shard " + values->name + " is removed.");
                                   });
  remove.app->add_option("NAME", values->name)->required();
  add_yes(remove);
}

}  // namespace kintsugi::app
