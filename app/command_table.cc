// kintsugi table list|shard|replicate|unshard
#include "app/client_command.h"

namespace kintsugi::app {
namespace {

const std::vector<std::string> kColumns = {"name", "map", "key", "replicated"};

struct Values {
  std::string name, map;
  std::vector<std::string> key;
};

}  // namespace

void add_table(CLI::App& root, int& exit_code) {
  CLI::App* group = add_group(root, "table", "the tables, and how they are placed");
  auto values = std::make_shared<Values>();

  (void)add_client_command(*group, "list", "the tables that are sharded or replicated", exit_code,
                           [](Talk& talk) { return talk.list("/v1/tables", kColumns); });

  auto shard = add_client_command(
      *group, "shard", "take a table that the shards have into a map", exit_code, [values](Talk& talk) {
        return talk.call("POST", "/v1/tables",
                         {{"name", values->name}, {"map", values->map}, {"key", values->key}}, kColumns);
      });
  shard.app->add_option("TABLE", values->name, "its name, with its schema when that is not public")->required();
  shard.app->add_option("--map", values->map, "the shard map")->required();
  shard.app->add_option("--key", values->key, "its key columns, in the order of the map's: tenant_id")
      ->required()
      ->delimiter(',');

  auto replicate = add_client_command(
      *group, "replicate", "say that every shard has all of a table", exit_code, [values](Talk& talk) {
        return talk.call("POST", "/v1/tables", {{"name", values->name}, {"replicated", true}}, kColumns);
      });
  replicate.app->add_option("TABLE", values->name)->required();

  auto unshard =
      add_client_command(*group, "unshard", "forget how a table is placed; its rows stay where they are",
                         exit_code, [values](Talk& talk) -> int {
                           if (!talk.confirmed("Forget how table " + values->name + " is placed?"))
                             return kWrongUsage;
                           return talk.done("DELETE", "/v1/tables/" + url_encoded(values->name), {},
                                            "Table " + values->name + " is a home table.");
                         });
  unshard.app->add_option("TABLE", values->name)->required();
  add_yes(unshard);
}

}  // namespace kintsugi::app
