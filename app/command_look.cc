// kintsugi stats, slow, explain: what a router counts and what it would do.
#include <iostream>

#include "app/client_command.h"

namespace kintsugi::app {

void add_look(CLI::App& root, int& exit_code) {
  (void)add_client_command(root, "stats", "what the router counts", exit_code, [](Talk& talk) {
    return talk.list("/v1/stats", {"name", "value"});
  });
  (void)add_client_command(
      root, "slow", "statements that took long, the newest first", exit_code, [](Talk& talk) {
        return talk.list("/v1/slow",
                         {"at", "user", "tier", "shards", "ms", "waited_ms", "held_ms", "statement"});
      });
  auto statement = std::make_shared<std::string>();
  auto explain = add_client_command(
      root, "explain", "where a statement would go; runs nothing", exit_code, [statement](Talk& talk) -> int {
        auto reply = talk.client().call("POST", "/v1/explain", {{"statement", *statement}});
        if (!reply) return talk.failed(reply.error());
        if (talk.json()) {
          talk.print(reply->body, {"lines"});
          return kDone;
        }
        for (const Json& line : reply->body["lines"]) std::cout << line.get<std::string>() << "\n";
        return kDone;
      });
  explain.app->add_option("STATEMENT", *statement, "as 'SELECT * FROM orders WHERE tenant_id = 42'")
      ->required();
}

}  // namespace kintsugi::app
