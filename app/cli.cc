#include "app/cli.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/examples.h"
#include "base/error.h"
#include "base/suggest.h"

namespace kintsugi::app {
namespace {

constexpr AddCommand kCommands[] = {add_serve,   add_demo,     add_check_config, add_version, add_shard,
                                    add_map,     add_shardlet, add_table,        add_lookup,  add_jobs,
                                    add_recover, add_router,   add_audit,        add_look,    add_user};

// The innermost command that was named, and the first word after it that it does not know.
const CLI::App& named_command(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

std::vector<std::string> known_words(const CLI::App& app, bool options) {
  std::vector<std::string> words;
  if (options) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
  } else {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      words.push_back(command->get_name());
    }
  }
  return words;
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

constexpr std::string_view kWithValue[] = {"--admin", "--token-file", "--ca"};

bool is_for_clients(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return name == "--json" ||
         std::find(std::begin(kWithValue), std::end(kWithValue), name) != std::end(kWithValue);
}

// What is odd about the arguments of the command that `path` names, in one sentence.
std::string odd_usage(const CLI::App& root, const std::string& path, const CLI::ParseError& error,
                      const std::vector<std::string>& arguments) {
  const CLI::App& app = named_command(root);
  const std::vector<std::string> commands = known_words(app, false);
  std::vector<std::string> extras = root.remaining(true);
  std::string odd = extras.empty() ? "" : extras.front();
  // Without a command nothing is left over: the first word that is not an option should have been one.
  if (&app == &root && odd.empty() && !arguments.empty()) odd = arguments.front();
  // kintsugi shard --json: what is missing is which.
  if (is_for_clients(odd) && !commands.empty()) odd.clear();
  if (odd.empty()) return path + ": " + (commands.empty() ? error.what() : "which? " + listed(commands));
  if (odd.starts_with("-")) {
    const std::string name = odd.substr(0, odd.find('='));
    return path + ": there is no option " + name + did_you_mean(name, known_words(app, true));
  }
  if (!commands.empty()) return path + ": '" + odd + "' is not a command" + did_you_mean(odd, commands);
  return path + ": '" + odd + "' is one word too many";
}

// With --json anywhere an error is an object on standard error, also one of usage.
bool wants_json(const std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

int complain_about_usage(const CLI::App& root, const CLI::ParseError& error,
                         const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::cerr << root.help();
    return kWrongUsage;
  }
  std::string path = "kintsugi";
  for (const CLI::App* at = &root; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  const std::string sentence = odd_usage(root, path, error, arguments), hint = "See " + path + " --help";
  if (wants_json(arguments)) {
    complain_in_json({.sqlstate = std::string(sqlstate::kInvalidParameter), .message = sentence, .hint = hint});
  } else {
    std::cerr << sentence << "\n" << hint << "\n";
  }
  return kWrongUsage;
}

void add_examples(CLI::App& app, const std::string& path) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
    command->footer(examples_of(name));
    add_examples(*command, name);
  }
}

// kintsugi help move is kintsugi move --help.
std::vector<std::string> without_help_word(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

// kintsugi help moev, kintsugi moev --help: there is no such command.
int wrong_help(const CLI::App& root, const std::vector<std::string>& given) {
  const bool helps = !given.empty() && given.front() == "help";
  const CLI::App* app = &root;
  for (std::size_t i = helps ? 1 : 0; i < given.size() && !given[i].starts_with("-"); ++i) {
    if (known_words(*app, false).empty()) break;  // what follows are its arguments
    const auto next = app->get_subcommands([&](const CLI::App* each) { return each->get_name() == given[i]; });
    if (next.empty()) {
      if (!helps && std::ranges::find(given, "--help") == given.end() &&
          std::ranges::find(given, "-h") == given.end())
        return kDone;  // the parser complains of it
      std::cerr << (helps ? "kintsugi help: '" : "kintsugi: '") << given[i] << "' is not a command"
                << did_you_mean(given[i], known_words(*app, false)) << "\nSee kintsugi --help\n";
      return kWrongUsage;
    }
    app = next.front();
  }
  return kDone;
}

// What every command that talks to a router takes may stand anywhere: kintsugi --json shard list.
std::vector<std::string> client_options_last(const std::vector<std::string>& arguments) {
  std::vector<std::string> rest, moved;
  std::size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    const std::string name = word.substr(0, word.find('='));
    const bool with_value =
        std::find(std::begin(kWithValue), std::end(kWithValue), name) != std::end(kWithValue);
    if (!with_value && word != "--json") {
      rest.push_back(word);
      continue;
    }
    moved.push_back(word);
    if (with_value && name == word && i + 1 < arguments.size()) moved.push_back(arguments[++i]);
  }
  if (rest.empty()) return arguments;
  rest.insert(rest.end(), moved.begin(), moved.end());
  rest.insert(rest.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  return rest;
}

}  // namespace

void complain(const Error& error) {
  std::cerr << "kintsugi: " << error.message << "\n";
  if (!error.detail.empty()) std::cerr << "  " << error.detail << "\n";
  if (!error.hint.empty()) std::cerr << "  " << error.hint << "\n";
}

void complain_in_json(const Error& error) {
  nlohmann::ordered_json json = {{"sqlstate", error.sqlstate}, {"message", error.message}};
  if (!error.detail.empty()) json["detail"] = error.detail;
  if (!error.hint.empty()) json["hint"] = error.hint;
  const nlohmann::ordered_json whole = {{"error", json}};
  std::cerr << whole.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

int run_command_line(const std::vector<std::string>& given) {
  const bool version = given == std::vector<std::string>{"--version"};
  const std::vector<std::string> arguments =
      version ? std::vector<std::string>{"version"} : client_options_last(without_help_word(given));
  int exit_code = kDone;
  CLI::App root("Kintsugi: many PostgreSQL servers, one database.", "kintsugi");
  root.require_subcommand(1);
  root.set_help_flag("-h,--help", "this text");
  for (AddCommand add : kCommands) add(root, exit_code);
  add_examples(root, "");
  root.footer(
      "Commands talk to a router at --admin URL (KINTSUGI_ADMIN, default http://127.0.0.1:8432), with the "
      "token in\n"
      "--token-file FILE or in KINTSUGI_TOKEN; --json prints JSON. kintsugi help COMMAND has examples.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by the state of things, 4 no router answers.");
  if (const int wrong = wrong_help(root, given); wrong != kDone) return wrong;
  try {
    root.parse(
        std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the back
  } catch (const CLI::CallForHelp&) {
    // What stands before the command's own name in its usage: kintsugi shard.
    std::string before;
    const CLI::App* app = &root;
    for (; !app->get_subcommands().empty(); app = app->get_subcommands().front())
      before += (before.empty() ? "" : " ") + app->get_name();
    std::cout << app->help(before);
    return kDone;
  } catch (const CLI::ParseError& error) {
    return complain_about_usage(root, error, arguments);
  }
  return exit_code;
}

}  // namespace kintsugi::app
