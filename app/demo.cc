#include "app/demo.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "app/config_file.h"
#include "app/config_value.h"
#include "app/demo_map.h"
#include "app/demo_shards.h"
#include "app/demo_state.h"
#include "app/postgres_programs.h"
#include "app/run_server.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

constexpr int kDefaultShards = 4;
constexpr const char* kWherePostgresCanGo = "/var/lib/kintsugi-demo";
constexpr const char* kInterrupted = "interrupted";

void say(const std::string& line) {
  std::cout << line << std::endl;  // a reader at the other end of a pipe waits for it
}

// Empty counts, and what a demo that was killed at its very beginning has left.
bool is_a_demos(const std::string& folder) {
  if (fs::exists(folder + "/demo.json")) return true;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name != "lock" && name != "shards" && name != "demo.json.new") return false;
  }
  return true;
}

// Makes the folder and the one within it that belongs to the user that PostgreSQL runs as.
Status make_folders(const std::string& folder, const PostgresPrograms& programs) {
  std::error_code error;
  bool fresh = !fs::exists(folder, error);
  fs::create_directories(folder, error);
  if (error || access(folder.c_str(), W_OK) != 0) {
    return fail("58000", "cannot write in " + folder + ": " + (error ? error.message() : std::strerror(errno)),
                "Give a folder that you may write in with --data.");
  }
  if (!is_a_demos(folder)) {
    return fail("58000", folder + " holds something else than a demo",
                "Give an empty or a new folder with --data.");
  }
  if (fresh) chmod(folder.c_str(), programs.as_other_user() ? 0711 : 0700);
  std::string shards = folder + "/shards";
  fs::create_directory(shards, error);
  KG_CHECK(programs.hand_over(shards));
  chmod(shards.c_str(), 0700);
  if (programs.can_enter(shards)) return {};
  return fail(
      "58000", "PostgreSQL runs as user postgres, who cannot enter " + folder,
      "Give a folder that every user may enter with --data, as " + std::string(kWherePostgresCanGo) + ".");
}

// demo-data here. As root in a home folder that only root may enter, a place that PostgreSQL's user can reach.
std::string default_folder(const PostgresPrograms& programs) {
  std::string here = fs::absolute("demo-data").string();
  if (!programs.as_other_user() || programs.can_enter(fs::current_path().string())) return here;
  say("User postgres, as whom PostgreSQL runs, cannot enter " + fs::current_path().string() + ".");
  return kWherePostgresCanGo;
}

// The major version of the clusters that are there already; 0 when there are none.
int version_there(const std::string& folder) {
  int major = 0;
  std::ifstream(folder + "/shards/s1/PG_VERSION") >> major;
  return major;
}

Status decide_shards(DemoState& state, int wanted) {
  if (state.shards.empty()) {
    state.password = random_password();
    state.admin_password = random_password();
  }
  int there = static_cast<int>(state.shards.size());
  int shards = wanted != 0 ? wanted : there != 0 ? there : kDefaultShards;
  if (shards < there) {
    return fail("22023",
                "there are " + std::to_string(there) + " shards already, and --shards " +
                    std::to_string(wanted) + " are fewer",
                "Leave --shards out, or give a new folder with --data.");
  }
  for (int i = there; i < shards; ++i) state.shards.push_back({"s" + std::to_string(i + 1), 0});
  return {};
}

std::string configuration(const DemoOptions& options, const DemoState& state) {
  std::string text =
      "# Written by `kintsugi demo` at every start. The passwords in it are of this demo only.\n\n";
  text += "[server]\nlisten = \"127.0.0.1:" + std::to_string(options.port) + "\"\n\n";
  text += "[admin]\nlisten = \"127.0.0.1:" + std::to_string(options.admin_port) + "\"\n\n";
  text += "[database]\nname = \"app\"\n\n";
  text += "[[user]]\nname = \"app\"\npassword = " + toml_string(state.password) + "\nadmin = true\n";
  return text;
}

// As it stands between double quotes in a shell.
std::string for_shell(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

// The passfile keeps the password out of the command line, of the history and of the list of processes.
std::string psql_line(const std::string& address, const std::string& passfile) {
  std::string value = passfile;
  if (value.find_first_of(" '\\") != std::string::npos) {
    std::string escaped;
    for (char c : value) escaped += (c == '\'' || c == '\\') ? std::string("\\") + c : std::string(1, c);
    value = "'" + escaped + "'";
  }
  std::string port = address.substr(address.rfind(':') + 1);
  return "psql \"host=127.0.0.1 port=" + port + " dbname=app user=app passfile=" + for_shell(value) + "\"";
}

// As a shell takes it: whoever has built it need not have installed it.
std::string this_program() {
  std::error_code none;
  const fs::path path = fs::read_symlink("/proc/self/exe", none);
  return none ? "kintsugi" : "\"" + for_shell(path.string()) + "\"";
}

void invite(const Listening& at, const std::string& folder) {
  say("\nReady. From another terminal:\n\n  " + psql_line(at.clients, folder + "/passfile") + "\n");
  const std::string admin = "http://" + at.admin;
  std::string token;
  std::ifstream(folder + "/admin.token") >> token;
  say("The console:\n\n  " + admin + "/#token=" + token + "\n");
  say("The command line, and REST at " + admin + " with the token in " + folder + "/admin.token:\n\n  " +
      this_program() + " shard list --admin " + admin + " --token-file \"" +
      for_shell(folder + "/admin.token") + "\"\n");
  say("Ctrl-C stops the router and the shards. The data stays in " + folder + ".");
}

Result<Ended> serve_demo(const DemoOptions& options, const std::string& folder, DemoState& state,
                         DemoShards& shards) {
  say("Starting " + std::to_string(state.shards.size()) + " PostgreSQL shards in " + folder);
  KG_CHECK(shards.start());
  for (const DemoState::Shard& shard : state.shards)
    say("  " + shard.name + " on port " + std::to_string(shard.port));
  KG_CHECK(write_demo_state(folder + "/demo.json", state));
  if (end_was_asked()) return fail("57P01", kInterrupted);
  bool first = !state.loaded;
  KG_CHECK(shards.prepare());
  if (first) {
    KG_TRY(std::string counts, shards.count_sample());
    say("Loaded the sample: " + counts);
  }
  if (end_was_asked()) return fail("57P01", kInterrupted);

  std::string file = folder + "/kintsugi.toml";
  KG_CHECK(write_private_file(file, configuration(options, state)));
  KG_CHECK(write_private_file(folder + "/passfile", "127.0.0.1:*:app:app:" + state.password + "\n"));
  KG_TRY(LoadedConfig loaded,
         load_config(
             {.file = file,
              .data = folder,
              .environment = process_environment(),
              .flags = {{"--port", "server.listen", "127.0.0.1:" + std::to_string(options.port)},
                        {"--admin-port", "admin.listen", "127.0.0.1:" + std::to_string(options.admin_port)}}}));
  std::vector<DemoMapShard> in_map;
  for (const DemoState::Shard& shard : state.shards) in_map.push_back({shard.name, shards.dsn(shard)});
  KG_CHECK(prepare_demo_map(loaded.config.map.store, in_map, state.spread));
  if (end_was_asked()) return fail("57P01", kInterrupted);
  return run_server(loaded.config, [&](const Listening& at) { invite(at, folder); });
}

}  // namespace

Result<Ended> run_demo(const DemoOptions& options) {
  for (const auto& [port, option] :
       {std::pair(options.port, "--port"), std::pair(options.admin_port, "--admin-port")}) {
    if (port != 0 && !port_is_free(port)) {
      return fail(
          "55006", "port " + std::to_string(port) + " on 127.0.0.1 is taken",
          std::string("Stop what listens there, or give another with ") + option + "; 0 takes a free one.");
    }
  }
  std::string folder = options.data.empty() ? "" : fs::absolute(options.data).lexically_normal().string();
  if (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  KG_TRY(PostgresPrograms programs, PostgresPrograms::find(folder.empty() ? 0 : version_there(folder)));
  if (folder.empty()) folder = default_folder(programs);
  if (int major = version_there(folder); major != 0) {
    KG_TRY(programs, PostgresPrograms::find(major));
  }
  KG_CHECK(make_folders(folder, programs));
  KG_TRY(FolderLock lock, FolderLock::take(folder));
  KG_TRY(DemoState state, read_demo_state(folder + "/demo.json"));
  KG_CHECK(decide_shards(state, options.shards));
  KG_CHECK(write_demo_state(folder + "/demo.json", state));

  Result<Ended> ended = fail("57P01", kInterrupted);
  {
    DemoShards shards(programs, folder, state);
    ended = serve_demo(options, folder, state, shards);
    say("Stopping the shards");
  }
  if (!ended && ended.error().message == kInterrupted) return Ended::kInGoodOrder;
  return ended;
}

}  // namespace kintsugi::app
