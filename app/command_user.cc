// kintsugi user add|list|remove: who may use REST, the command line and the console with a token of their own.
// Users of the database are in the configuration.
#include <iostream>

#include "app/client_command.h"

namespace kintsugi::app {

void add_user(CLI::App& root, int& exit_code) {
  CLI::App* group = add_group(root, "user", "who may administer this router, by a token of their own");
  struct Values {
    std::string name, role = "viewer";
  };
  auto values = std::make_shared<Values>();

  (void)add_client_command(*group, "list", "all users, without their tokens", exit_code, [](Talk& talk) {
    return talk.list("/v1/users", {"name", "role", "created"});
  });

  auto add = add_client_command(
      *group, "add", "a user with a new token, which is printed this once", exit_code,
      [values](Talk& talk) -> int {
        auto reply = talk.client().call("POST", "/v1/users", {{"name", values->name}, {"role", values->role}});
        if (!reply) return talk.failed(reply.error());
        if (talk.json())
          talk.print(reply->body, {"name", "role", "token"});
        else
          std::cout << reply->body["token"].get<std::string>() << "\n";
        return kDone;
      });
  add.app->add_option("NAME", values->name, "letters, digits, and . - _ @")->required();
  add.app->add_option("--role", values->role, "viewer: look; operator: also jobs; admin: everything")
      ->check(CLI::IsMember({"viewer", "operator", "admin"}))
      ->capture_default_str();

  auto remove = add_client_command(*group, "remove", "the token is good for nothing from now on", exit_code,
                                   [values](Talk& talk) -> int {
                                     if (!talk.confirmed("Remove user " + values->name + "?"))
                                       return kWrongUsage;
                                     return talk.done("DELETE", "/v1/users/" + url_encoded(values->name), {},
                                                      "User " + values->name + " is removed.");
                                   });
  remove.app->add_option("NAME", values->name, "the user")->required();
  add_yes(remove);
}

}  // namespace kintsugi::app
