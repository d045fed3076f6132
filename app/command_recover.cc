// kintsugi recover check|resolve|rebuild, kintsugi router list, kintsugi audit
#include <iostream>

#include "app/client_command.h"

namespace kintsugi::app {
namespace {

struct Values {
  std::string from;
  bool dry_run = false, no_rows = false;
  std::vector<std::string> dsns;
};

int check(Talk& talk, const Values& values) {
  auto reply = talk.client().call("POST", "/v1/recovery/check", {{"rows", !values.no_rows}});
  if (!reply) return talk.failed(reply.error());
  const Json& items = reply->body["items"];
  if (items.empty() && !talk.json()) {
    std::cout << "Store, shards and rows agree.\n";
  } else {
    talk.print(items, {"kind", "shard", "what"});
  }
  return items.empty() ? kDone : kFailed;
}

int resolve_from(Talk& talk, const Values& values) {
  auto reply =
      talk.client().call("POST", "/v1/recovery/resolve", {{"from", values.from}, {"dry_run", values.dry_run}});
  if (!reply) return talk.failed(reply.error());
  const Json& items = reply->body["items"];
  if (talk.json()) {
    talk.print(items, {"done"});
  } else if (items.empty()) {
    std::cout << "Nothing is to be done.\n";
  } else {
    for (const Json& item : items) std::cout << item.value("done", "") << "\n";
  }
  return kDone;
}

}  // namespace

void add_recover(CLI::App& root, int& exit_code) {
  CLI::App* group = add_group(root, "recover", "find and repair what store, shards and rows disagree about");
  auto values = std::make_shared<Values>();

  auto checked = add_client_command(*group, "check", "every difference; exit code 1 when there is one",
                                    exit_code, [values](Talk& talk) { return check(talk, *values); });
  checked.app->add_flag("--no-rows", values->no_rows, "do not read the keys of the tables");

  auto resolve = add_client_command(
      *group, "resolve", "make one side say what the other says; rows are not touched", exit_code,
      [values](Talk& talk) -> int {
        if (!values->dry_run &&
            !talk.confirmed(values->from == "store" ? "Make the shards say what the store says?"
                                                    : "Make the store say what the shards say?"))
          return kWrongUsage;
        return resolve_from(talk, *values);
      });
  resolve.app->add_option("--from", values->from, "the side that is right")
      ->required()
      ->check(CLI::IsMember({"store", "shards"}));
  resolve.app->add_flag("--dry-run", values->dry_run, "only say what would be done");
  add_yes(resolve);

  auto rebuild =
      add_client_command(*group, "rebuild", "fill an empty map store from what its shards know", exit_code,
                         [values](Talk& talk) -> int {
                           if (!talk.confirmed("Rebuild the map store from these shards?")) return kWrongUsage;
                           return talk.call("POST", "/v1/recovery/rebuild", {{"dsns", values->dsns}}, {"done"});
                         });
  rebuild.app->add_option("DSN", values->dsns, "each shard")->required();
  add_yes(rebuild);
}

void add_router(CLI::App& root, int& exit_code) {
  CLI::App* group = add_group(root, "router", "the routers of this map store");
  (void)add_client_command(*group, "list", "all routers, with the epoch that each has taken", exit_code,
                           [](Talk& talk) {
                             return talk.list("/v1/routers", {"name", "epoch", "age_ms", "alive", "this"});
                           });
}

void add_audit(CLI::App& root, int& exit_code) {
  (void)add_client_command(root, "audit", "who has asked for what, the newest first", exit_code,
                           [](Talk& talk) {
                             return talk.list("/v1/audit", {"at", "who", "face", "what", "result"});
                           });
}

}  // namespace kintsugi::app
