#include "app/client_command.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "app/print_table.h"

namespace kintsugi::app {
namespace {

constexpr const char* kTokenHere = "admin.token";  // what serve makes in its data folder

Result<std::string> token_in(const std::string& path) {
  std::ifstream in(path);
  std::string token;
  if (!in || !(in >> token)) return fail("58000", "cannot read a token from " + path);
  if (token.starts_with("sha256:")) {
    return fail("28000", path + " holds the hash of a token, with which nobody can ask",
                "Give the token itself in KINTSUGI_TOKEN, or another --token-file.");
  }
  return token;
}

Result<std::string> find_token(const ClientOptions& options) {
  if (!options.token_file.empty()) return token_in(options.token_file);
  if (const char* token = std::getenv("KINTSUGI_TOKEN"); token != nullptr && *token != '\0')
    return std::string(token);
  if (access(kTokenHere, R_OK) == 0) return token_in(kTokenHere);
  return fail(
      "28000", "no token was given",
      "Give --token-file with the file that the router made (admin.token in its data folder), or the token "
      "in KINTSUGI_TOKEN.");
}

int exit_code_of(const Error& error, int status) {
  if (status == 0) return error.sqlstate == sqlstate::kConnectionFailure ? kUnreachable : kFailed;
  return status == 409 || status == 412 || status == 422 ? kRefused : kFailed;
}

// A job's progress and its error for people, as SHOW JOBS has them.
void in_words(Json& row) {
  if (!row.is_object()) return;
  if (const auto at = row.find("progress"); at != row.end() && at->is_object()) {
    const auto number = [&](const char* member) { return at->value(member, Json(0)); };
    const Json rows = number("rows"), total = number("total"), left = number("eta_s");
    std::string text;
    if (rows != 0 || total != 0) text = rows.dump() + (total != 0 ? " of " + total.dump() : "") + " rows";
    if (left.is_number() && left != 0) text += ", " + std::to_string(left.get<long>()) + " s left";
    *at = text;
  }
  if (const auto at = row.find("error"); at != row.end() && at->is_object()) *at = at->value("message", "");
}

}  // namespace

ClientCommand add_client_command(CLI::App& parent, const std::string& name, const std::string& help,
                                 int& exit_code, const std::function<int(Talk&)>& run) {
  ClientCommand command{parent.add_subcommand(name, help), std::make_shared<ClientOptions>()};
  auto& options = command.options;
  command.app->add_option("--admin", options->admin, "the router's admin address")
      ->envname("KINTSUGI_ADMIN")
      ->capture_default_str();
  command.app->add_option("--token-file", options->token_file,
                          "the file with its token; or the token itself in KINTSUGI_TOKEN");
  command.app->add_option("--ca", options->ca, "the certificate that signs the router's, for https:// (PEM)")
      ->envname("KINTSUGI_CA");
  command.app->add_flag("--json", options->json, "print JSON");
  command.app->callback([options, run, &exit_code] {
    Talk talk(*options);
    exit_code = talk.problem() ? talk.failed(*talk.problem()) : run(talk);
  });
  return command;
}

CLI::App* add_group(CLI::App& root, const std::string& name, const std::string& help) {
  CLI::App* group = root.add_subcommand(name, help);
  group->require_subcommand(1);
  return group;
}

void add_yes(ClientCommand& command) {
  command.app->add_flag("--yes", command.options->yes, "do not ask");
}

Talk::Talk(const ClientOptions& options) : options_(options) {
  auto token = find_token(options);
  if (!token) {
    problem_ = token.error();
    // That no router answers comes before what is wanted to ask it.
    client_ = std::make_unique<RestClient>(RestTarget{options.admin, "", options.ca});
    const auto answer = client_->call("GET", "/v1/epoch");
    if (!answer && client_->last_status() == 0) problem_ = answer.error();
    return;
  }
  client_ = std::make_unique<RestClient>(RestTarget{options.admin, *token, options.ca});
}

int Talk::failed(const Error& error) {
  complain(error);
  return exit_code_of(error, client_ ? client_->last_status() : 400);
}

int Talk::misused(const std::string& sentence) const {
  complain({.sqlstate = std::string(sqlstate::kInvalidParameter), .message = sentence});
  return kWrongUsage;
}

// With --json an error is an object too, on standard error.
void Talk::complain(const Error& error) const {
  options_.json ? complain_in_json(error) : app::complain(error);
}

void Talk::print(const Json& json, const std::vector<std::string>& columns) const {
  if (options_.json) {
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    Json rows = json.is_array() ? json : Json::array({json});
    for (Json& row : rows) in_words(row);
    std::cout << table_text(rows, columns);
  }
}

int Talk::list(const std::string& path, const std::vector<std::string>& columns) {
  auto items = client_->list(path);
  if (!items) return failed(items.error());
  print(*items, columns);
  return kDone;
}

int Talk::call(const std::string& method, const std::string& path, const Json& body,
               const std::vector<std::string>& columns) {
  auto reply = client_->call(method, path, body);
  if (!reply) return failed(reply.error());
  for (const Json& notice : reply->body.value("notices", Json::array()))
    std::cerr << value_text(notice) << "\n";
  print(reply->body.contains("items") ? reply->body["items"] : reply->body, columns);
  return kDone;
}

int Talk::done(const std::string& method, const std::string& path, const Json& body,
               const std::string& sentence) {
  auto reply = client_->call(method, path, body);
  if (!reply) return failed(reply.error());
  if (options_.json) {
    std::cout << (reply->body.is_null() ? Json::object() : reply->body).dump(2) << "\n";
  } else {
    std::cout << sentence << "\n";
  }
  return kDone;
}

bool Talk::confirmed(const std::string& question) {
  if (options_.yes) return true;
  if (isatty(STDIN_FILENO) == 0) {
    (void)misused(question + " Say so with --yes.");
    return false;
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

}  // namespace kintsugi::app
