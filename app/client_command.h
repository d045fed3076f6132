// What the commands that talk to a router have in common: where it is, the token, how the answer is printed and
// which exit code an error is. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/rest_client.h"

namespace kintsugi::app {

struct ClientOptions {
  std::string admin = "http://127.0.0.1:8432";
  std::string token_file;
  std::string ca;
  bool json = false;
  bool yes = false;  // of commands that destroy
};

// A command with its options; `run` is called when it was named.
struct ClientCommand {
  CLI::App* app = nullptr;
  std::shared_ptr<ClientOptions> options;
};
class Talk;
[[nodiscard]] ClientCommand add_client_command(CLI::App& parent, const std::string& name,
                                               const std::string& help, int& exit_code,
                                               const std::function<int(Talk&)>& run);
// A group of commands: `kintsugi shard list|add|...`
[[nodiscard]] CLI::App* add_group(CLI::App& root, const std::string& name, const std::string& help);
// --yes, for a command that destroys something.
void add_yes(ClientCommand& command);

// One command's conversation with its router. Each function prints and gives back the exit code.
class Talk {
 public:
  explicit Talk(const ClientOptions& options);

  int list(const std::string& path, const std::vector<std::string>& columns);
  // One object or, of a POST that answers with items, a list.
  int call(const std::string& method, const std::string& path, const Json& body,
           const std::vector<std::string>& columns);
  // Done, and says so.
  int done(const std::string& method, const std::string& path, const Json& body, const std::string& sentence);
  // "Drop shard map tenants?" True when --yes was given or a person at the terminal has said yes.
  bool confirmed(const std::string& question);

  int failed(const Error& given);
  // The command line itself is wrong: says so.
  int misused(const std::string& sentence) const;
  void complain(const Error& error) const;
  void print(const Json& json, const std::vector<std::string>& columns) const;
  [[nodiscard]] bool json() const { return options_.json; }
  [[nodiscard]] RestClient& client() { return *client_; }
  // Why it cannot even begin: no token.
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }

 private:
  const ClientOptions& options_;
  std::optional<Error> problem_;
  std::unique_ptr<RestClient> client_;
};

}  // namespace kintsugi::app
