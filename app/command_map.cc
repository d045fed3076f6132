// kintsugi map list|create|drop|show|export|import, kintsugi lookup
#include <sys/stat.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "app/client_command.h"

namespace kintsugi::app {
namespace {

const std::vector<std::string> kColumns = {"name", "kind", "key", "shardlets", "shards", "tables"};
const std::vector<std::string> kShardletColumns = {"name", "from", "to", "values", "shard", "state"};

struct Values {
  std::string name, kind, file = "-";
  std::vector<std::string> key, shards;
  int shardlets = 0;
};

int show(Talk& talk, const Values& values) {
  const std::string path = "/v1/maps/" + url_encoded(values.name);
  auto map = talk.client().call("GET", path);
  if (!map) return talk.failed(map.error());
  auto shardlets = talk.client().list(path + "/shardlets");
  if (!shardlets) return talk.failed(shardlets.error());
  if (talk.json()) {
    map->body["shardlets"] = *shardlets;
    talk.print(map->body, kColumns);
    return kDone;
  }
  talk.print(map->body, kColumns);
  std::cout << "\n";
  const bool list = map->body.value("kind", "") == "list";
  talk.print(*shardlets, list ? std::vector<std::string>{"name", "values", "shard", "state"}
                              : std::vector<std::string>{"name", "from", "to", "shard", "state"});
  return kDone;
}

int export_file(Talk& talk, const Values& values) {
  auto reply = talk.client().call("GET", "/v1/export");
  if (!reply) return talk.failed(reply.error());
  if (values.file == "-") {
    std::cout << reply->text;
    return kDone;
  }
  const mode_t before = umask(077);  // it holds passwords
  std::ofstream out(values.file, std::ios::trunc);
  umask(before);
  out << reply->text;
  out.close();
  if (!out) return talk.failed({.sqlstate = "58000", .message = "cannot write " + values.file});
  return kDone;
}

int import_file(Talk& talk, const Values& values) {
  std::stringstream text;
  if (values.file == "-") {
    text << std::cin.rdbuf();
  } else {
    std::ifstream in(values.file);
    if (!in) return talk.failed({.sqlstate = "58000", .message = "cannot read " + values.file});
    text << in.rdbuf();
  }
  auto reply = talk.client().send_file("/v1/import", text.str());
  if (!reply) return talk.failed(reply.error());
  talk.print(reply->body, {"epoch"});
  return kDone;
}

}  // namespace

void add_map(CLI::App& root, int& exit_code) {
  CLI::App* group = add_group(root, "map", "the shard maps: which key is on which shard");
  auto values = std::make_shared<Values>();

  (void)add_client_command(*group, "list", "all maps", exit_code,
                           [](Talk& talk) { return talk.list("/v1/maps", kColumns); });

  auto create = add_client_command(*group, "create", "a new map", exit_code, [values](Talk& talk) {
    Json body = {{"name", values->name}, {"kind", values->kind}, {"key", values->key}};
    if (values->shardlets > 0) body["shardlets"] = values->shardlets;
    if (!values->shards.empty()) body["shards"] = values->shards;
    return talk.call("POST", "/v1/maps", body, kColumns);
  });
  create.app->add_option("NAME", values->name, "its name, as tenants")->required();
  create.app->add_option("--by", values->kind, "how keys are told apart")
      ->required()
      ->check(CLI::IsMember({"range", "list", "hash"}));
  create.app->add_option("--key", values->key, "the key's type: bigint; or the types of its columns: text,int")
      ->required()
      ->delimiter(',');
  create.app->add_option("--shardlets", values->shardlets, "hash: how many shardlets to begin with")
      ->check(CLI::Range(1, 65536));
  create.app->add_option("--on,--shards", values->shards, "hash: the shards that get them: s1,s2")
      ->delimiter(',');

  auto drop = add_client_command(*group, "drop", "drop a map that no table uses", exit_code,
                                 [values](Talk& talk) -> int {
                                   if (!talk.confirmed("Drop shard map " + values->name + "?"))
                                     return kWrongUsage;
                                   return talk.done("DELETE", "/v1/maps/" + url_encoded(values->name), {},
                                                    "Shard map " + values->name + " is dropped.");
                                 });
  drop.app->add_option("NAME", values->name)->required();
  add_yes(drop);

  auto shown = add_client_command(*group, "show", "one map with its shardlets", exit_code,
                                  [values](Talk& talk) { return show(talk, *values); });
  shown.app->add_option("NAME", values->name)->required();

  auto exported = add_client_command(*group, "export", "everything as a file, with the shards' passwords",
                                     exit_code, [values](Talk& talk) { return export_file(talk, *values); });
  exported.app->add_option("FILE", values->file, "default: standard output");

  auto imported = add_client_command(*group, "import", "fill an empty map store from such a file", exit_code,
                                     [values](Talk& talk) { return import_file(talk, *values); });
  imported.app->add_option("FILE", values->file, "- is standard input")->required();
}

void add_lookup(CLI::App& root, int& exit_code) {
  auto values = std::make_shared<Values>();
  auto lookup = add_client_command(root, "lookup", "where a key is", exit_code, [values](Talk& talk) {
    std::string path = "/v1/maps/" + url_encoded(values->name) + "/lookup";
    for (std::size_t i = 0; i < values->key.size(); ++i)
      path += (i == 0 ? "?key=" : "&key=") + url_encoded(values->key[i]);
    return talk.call("GET", path, {}, {"map", "key", "shardlet", "shard", "state"});
  });
  lookup.app->add_option("MAP", values->name)->required();
  lookup.app->add_option("KEY", values->key, "a value for each column of the key")->required();
}

void add_shardlet(CLI::App& root, int& exit_code) {
  struct Shardlet {
    std::string name, map, shard, state, new_name;
    std::vector<std::string> from, to, values;
  };
  CLI::App* group = add_group(root, "shardlet", "the shardlets of a map: keys, and the shard that has them");
  auto values = std::make_shared<Shardlet>();
  const auto path = [values](bool one) {
    return "/v1/maps/" + url_encoded(values->map) + "/shardlets" + (one ? "/" + url_encoded(values->name) : "");
  };
  auto list = add_client_command(*group, "list", "the shardlets of a map", exit_code,
                                 [path](Talk& talk) { return talk.list(path(false), kShardletColumns); });
  list.app->add_option("MAP", values->map)->required();

  auto add = add_client_command(*group, "add", "a new shardlet", exit_code, [values, path](Talk& talk) {
    Json body = {{"name", values->name}, {"shard", values->shard}};
    if (!values->values.empty()) {
      body["values"] = values->values;
    } else {
      if (values->from.empty() || values->to.empty())
        return talk.misused("say which keys are its: --from and --to, or --values");
      body["from"] = values->from;
      body["to"] = values->to;
    }
    return talk.call("POST", path(false), body, kShardletColumns);
  });
  add.app->add_option("MAP", values->map)->required();
  add.app->add_option("NAME", values->name)->required();
  add.app->add_option("--from", values->from, "range, hash: its first key, or MINVALUE")->delimiter(',');
  add.app->add_option("--to", values->to, "the first key that is no longer its, or MAXVALUE")->delimiter(',');
  add.app->add_option("--values", values->values, "list: its keys: de,fr")->delimiter(',');
  add.app->add_option("--on", values->shard, "the shard that has it")->required();

  auto set = add_client_command(*group, "set", "another state or name", exit_code, [values, path](Talk& talk) {
    Json body = Json::object();
    if (!values->state.empty()) body["state"] = values->state;
    if (!values->new_name.empty()) body["name"] = values->new_name;
    if (body.empty()) return talk.misused("say what is to be changed: --state or --name");
    return talk.call("PATCH", path(true), body, kShardletColumns);
  });
  set.app->add_option("MAP", values->map)->required();
  set.app->add_option("NAME", values->name)->required();
  set.app->add_option("--state", values->state, "what it is to be")
      ->check(CLI::IsMember({"online", "read only", "offline"}));
  set.app->add_option("--name", values->new_name, "another name");

  auto remove = add_client_command(
      *group, "remove", "drop a shardlet without rows", exit_code, [values, path](Talk& talk) -> int {
        if (!talk.confirmed("Drop shardlet " + values->name + "?")) return kWrongUsage;
        return talk.done("DELETE", path(true), {}, "Shardlet " + values->name + " is dropped.");
      });
  remove.app->add_option("MAP", values->map)->required();
  remove.app->add_option("NAME", values->name)->required();
  add_yes(remove);
}

}  // namespace kintsugi::app
