#include "app/demo_cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "app/child_process.h"
#include "base/log.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

// Enough for what shards do (moves by logical replication, two-phase commits), little enough for four on a
// laptop.
constexpr const char* kSettings = R"(# Written by `kintsugi demo` at every start.
listen_addresses = '127.0.0.1'
max_connections = 100
shared_buffers = 32MB
max_wal_size = 256MB
wal_level = logical
max_wal_senders = 10
max_replication_slots = 10
max_worker_processes = 12
max_logical_replication_workers = 8
max_prepared_transactions = 100
wal_retrieve_retry_interval = 200ms
logging_collector = off
)";

std::string tail_of(const std::string& path) {
  std::ifstream in(path, std::ios::ate);
  if (!in) return "";
  std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - 1000));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// As postgresql.conf wants it.
std::string quoted_setting(const std::string& text) {
  std::string out = "'";
  for (char c : text)
    out += c == '\'' ? std::string("''") : c == '\\' ? std::string("\\\\") : std::string(1, c);
  return out + "'";
}

}  // namespace

DemoCluster::DemoCluster(const PostgresPrograms& programs, Options options)
    : programs_(programs), options_(std::move(options)) {}

bool DemoCluster::exists() const {
  return fs::exists(data() + "/PG_VERSION");
}

Status DemoCluster::run(const std::vector<std::string>& line, const std::string& input,
                        const char* what) const {
  KG_TRY(Outcome outcome,
         run_program({.arguments = line, .input = input, .patience = std::chrono::seconds(120)}));
  if (outcome.exit_code == 0) return {};
  return fail("58000", std::string(what) + " of shard " + options_.name + " failed", "", outcome.output);
}

Status DemoCluster::create() const {
  if (exists()) return {};
  // A name of its own: the initdb of a demo that was killed may still be writing to the one it was given.
  std::string fresh = data() + ".new." + std::to_string(getpid());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    std::error_code ignored;
    if (entry.path().string().starts_with(data() + ".new.")) fs::remove_all(entry.path(), ignored);
  }
  KG_CHECK(run(
      programs_.as_server("initdb", {"--pgdata", fresh, "--username", "postgres", "--pwfile", "/dev/stdin",
                                     "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8"}),
      options_.admin_password + "\n", "initdb"));
  std::ofstream(fresh + "/postgresql.conf", std::ios::app) << "\ninclude 'kintsugi.conf'\n";
  fs::rename(fresh, data(), error);
  if (error) return fail("58000", "cannot name the new cluster " + data() + ": " + error.message());
  return {};
}

Status DemoCluster::configure(int port) const {
  std::ofstream out(data() + "/kintsugi.conf", std::ios::trunc);
  out << kSettings << "port = " << port
      << "\nunix_socket_directories = " << quoted_setting(options_.socket_folder) << "\n";
  out.close();
  chmod((data() + "/kintsugi.conf").c_str(), 0644);  // within a folder that only PostgreSQL's user may enter
  if (!out) return fail("58000", "cannot write " + data() + "/kintsugi.conf");
  return {};
}

Status DemoCluster::start(int port) const {
  Status started;
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (!processes().empty()) {
      log::info("stopping a shard that an earlier demo left running", {{"shard", options_.name}});
      stop();
    }
    remove_stale_pid_files(port);
    KG_CHECK(configure(port));
    if (!port_is_free(port)) return fail("55006", "port " + std::to_string(port) + " is taken");
    started = start_once();
    // A demo that was killed within its own start: its pg_ctl was faster.
    if (started || started.error().sqlstate == "55006" || processes().empty()) break;
  }
  return started;
}

Status DemoCluster::start_once() const {
  Status started = run(programs_.as_server("pg_ctl", {"start", "--pgdata", data(), "--log", log_file(),
                                                      "--silent", "--wait", "--timeout", "60"}),
                       "", "the start");
  if (started) return {};
  Error error = started.error();
  error.detail += tail_of(log_file());
  error.hint = "Its whole log: " + log_file();
  if (error.detail.find("Address already in use") != std::string::npos) error.sqlstate = "55006";
  return fail(error);
}

void DemoCluster::stop() const {
  for (const char* mode : {"fast", "immediate"}) {
    if (processes().empty()) return;
    auto line = programs_.as_server(
        "pg_ctl", {"stop", "--pgdata", data(), "--silent", "--mode", mode, "--wait", "--timeout", "20"});
    if (auto stopped = run(line, "", "the stop"); !stopped) {
      log::warning("a shard did not stop", {{"shard", options_.name}, {"mode", mode}});
    }
  }
  // Without a postmaster its children end by themselves, soon; those that do not are made to.
  for (int tenths = 0; tenths < 100; ++tenths) {
    std::vector<int> left = processes();
    if (left.empty()) return;
    if (tenths >= 50) {
      for (int pid : left) kill(pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

std::vector<int> DemoCluster::processes() const {
  std::vector<int> found;
  std::error_code error;
  std::string here = fs::weakly_canonical(data(), error).string();
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code gone;
    fs::path folder = fs::read_symlink(entry.path() / "cwd", gone);
    if (gone || folder.string() != here) continue;
    std::string command;
    std::ifstream(entry.path() / "comm") >> command;
    if (command == "postgres") found.push_back(std::stoi(name));
  }
  return found;
}

// After a kill -9 or a reboot the number in a pid file may belong to somebody else by now (or to a zombie), and
// PostgreSQL would take that process for its own. Called when no process works in the folder.
void DemoCluster::remove_stale_pid_files(int port) const {
  std::error_code error;
  if (!options_.socket_folder.empty()) {
    std::string socket = options_.socket_folder + "/.s.PGSQL." + std::to_string(port);
    fs::remove(socket, error);
    fs::remove(socket + ".lock", error);
  }
  std::string path = data() + "/postmaster.pid";
  int pid = 0;
  std::ifstream(path) >> pid;
  if (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH)) return;  // PostgreSQL sees itself that nobody has it
  fs::remove(path, error);
}

bool port_is_free(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

}  // namespace kintsugi::app
