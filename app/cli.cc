#include "app/cli.h"

#include <iostream>

#include "app/commands.h"
#include "app/examples.h"
#include "app/suggest.h"
#include "base/error.h"

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

int complain_about_usage(const CLI::App& root, const CLI::ParseError& error,
                         const std::vector<std::string>& arguments) {
  const CLI::App& app = named_command(root);
  std::string path = "kintsugi";
  for (const CLI::App* at = &root; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  std::vector<std::string> extras = root.remaining(true);
  std::string odd = extras.empty() ? "" : extras.front();
  // Without a command nothing is left over: the first word that is not an option should have been one.
  if (&app == &root && odd.empty() && !arguments.empty()) odd = arguments.front();
  if (arguments.empty()) {
    std::cerr << root.help();
    return kWrongUsage;
  }
  bool is_option = odd.starts_with("-");
  bool expects_command = !is_option && !known_words(app, false).empty();
  if (odd.empty()) {
    std::cerr << path << ": " << error.what() << "\n";
  } else if (is_option) {
    std::string name = odd.substr(0, odd.find('='));
    std::cerr << path << ": there is no option " << name << did_you_mean(name, known_words(app, true)) << "\n";
  } else if (expects_command) {
    std::cerr << path << ": '" << odd << "' is not a command" << did_you_mean(odd, known_words(app, false))
              << "\n";
  } else {
    std::cerr << path << ": '" << odd << "' is one word too many\n";
  }
  std::cerr << "See " << path << " --help\n";
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

}  // namespace

void complain(const Error& error) {
  std::cerr << "kintsugi: " << error.message << "\n";
  if (!error.detail.empty()) std::cerr << "  " << error.detail << "\n";
  if (!error.hint.empty()) std::cerr << "  " << error.hint << "\n";
}

int run_command_line(const std::vector<std::string>& given) {
  const std::vector<std::string> arguments = without_help_word(given);
  int exit_code = kDone;
  CLI::App root("Kintsugi: many PostgreSQL servers, one database.", "kintsugi");
  root.require_subcommand(1);
  root.set_help_flag("-h,--help", "this text");
  for (AddCommand add : kCommands) add(root, exit_code);
  add_examples(root, "");
  try {
    root.parse(
        std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the back
  } catch (const CLI::CallForHelp&) {
    const CLI::App& app = named_command(root);
    std::cout << app.help(&app == &root ? "" : "kintsugi");
    return kDone;
  } catch (const CLI::ParseError& error) {
    return complain_about_usage(root, error, arguments);
  }
  return exit_code;
}

}  // namespace kintsugi::app
