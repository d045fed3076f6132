#include "tests/pg/cluster.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/pg/port.h"

namespace kintsugi::pgtest {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const std::string kBin = "/usr/lib/postgresql/15/bin/";
constexpr auto kStartDeadline = 60s;
constexpr auto kStopDeadline = 10s;

[[noreturn]] void give_up(const std::string& what) {
  throw std::runtime_error("pgtest: " + what);
}

std::string contents(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// In the child: PostgreSQL refuses to run as root.
void become_postgres() {
  if (geteuid() != 0) return;
  const passwd* user = getpwnam("postgres");
  if (user == nullptr || initgroups("postgres", user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
      setuid(user->pw_uid) != 0) {
    _exit(126);
  }
}

pid_t spawn(const std::vector<std::string>& command, const std::string& output, const std::string& input = "",
            bool dies_with_us = false) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) give_up("fork failed");
  if (child != 0) return child;
  setpgid(0, 0);
  become_postgres();
  if (dies_with_us) {
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent) _exit(125);
  }
  const int in = open(input.empty() ? "/dev/null" : input.c_str(), O_RDONLY);
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (in < 0 || out < 0) _exit(124);
  dup2(in, 0);
  dup2(out, 1);
  dup2(out, 2);
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  if (chdir("/") != 0) _exit(123);
  execv(arguments[0], arguments.data());
  _exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void run(const std::vector<std::string>& command, const std::string& log) {
  if (const int code = wait_for(spawn(command, log)); code != 0) {
    give_up(command[0] + " ended with " + std::to_string(code) + "\n" + contents(log));
  }
}

void give_to_postgres(const std::string& path) {
  if (geteuid() != 0) return;
  const passwd* user = getpwnam("postgres");
  if (user == nullptr || chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) give_up("cannot chown " + path);
}

std::string make_directory() {
  std::string path = (fs::temp_directory_path() / "kg-pg-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) give_up("mkdtemp failed");
  give_to_postgres(path);
  return path;
}

// A killed server leaves its System V segment, named in the seventh line of its pid file; the kernel has 4096
// of them.
void remove_shared_memory(const std::string& pid_file) {
  std::ifstream lines(pid_file);
  std::string line;
  for (int number = 1; number <= 7; ++number) std::getline(lines, line);
  unsigned long key = 0;
  int id = 0;
  if (std::istringstream(line) >> key >> id) shmctl(id, IPC_RMID, nullptr);
}

// One initdb a machine and user; guarded by a lock file, for tests run side by side.
std::string template_directory() {
  const std::string base =
      (fs::temp_directory_path() / ("kg-pg-template-15-" + std::to_string(geteuid()))).string();
  const int lock = open((base + ".lock").c_str(), O_RDWR | O_CREAT, 0600);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) give_up("cannot lock " + base);
  if (!fs::exists(base + "/data/PG_VERSION") || !fs::exists(base + "/complete")) {
    fs::remove_all(base);
    fs::create_directory(base);
    give_to_postgres(base);
    run({kBin + "initdb", "-D", base + "/data", "-U", "postgres", "-A", "trust", "-E", "UTF8",
         "--locale=C.UTF-8", "--no-sync"},
        base + "/log");
    std::ofstream(base + "/complete") << "1\n";
  }
  close(lock);
  return base + "/data";
}

}  // namespace

Cluster::Cluster(const ClusterOptions& options) : directory_(make_directory()), port_(free_port()) {
  run({"/bin/cp", "-a", template_directory(), directory_ + "/data"}, directory_ + "/log");
  std::ofstream conf(directory_ + "/data/postgresql.conf", std::ios::app);
  conf << "listen_addresses = '127.0.0.1'\nunix_socket_directories = '" << directory_ << "'\n"
       << "wal_level = logical\nmax_prepared_transactions = 50\nmax_connections = 100\nshared_buffers = 16MB\n"
       << "fsync = off\nmax_wal_senders = 10\nmax_replication_slots = 10\nhot_standby_feedback = on\n"
       << "dynamic_shared_memory_type = mmap\nwal_retrieve_retry_interval = 200ms\ncluster_name = "
          "'kintsugi-test'\n";
  for (const std::string& line : options.settings) conf << line << "\n";
  conf.close();
  start();
}

Cluster Cluster::standby_of(const Cluster& primary) {
  Cluster standby{Empty{}};
  standby.directory_ = make_directory();
  standby.port_ = free_port();
  run({kBin + "pg_basebackup", "-D", standby.directory_ + "/data", "-d", primary.dsn(), "-R", "-X", "stream",
       "-c", "fast", "--no-sync"},
      standby.directory_ + "/log");
  // The socket directory in the copied file is the primary's.
  std::ofstream(standby.directory_ + "/data/postgresql.conf", std::ios::app)
      << "unix_socket_directories = '" << standby.directory_ << "'\n";
  standby.start();
  return standby;
}

Cluster::~Cluster() {
  if (directory_.empty()) return;
  stop_at_once();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

Cluster::Cluster(Cluster&& other) noexcept
    : directory_(std::exchange(other.directory_, {})), port_(other.port_), pid_(std::exchange(other.pid_, 0)) {}

Cluster& Cluster::operator=(Cluster&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(port_, other.port_);
  std::swap(pid_, other.pid_);
  return *this;
}

std::string Cluster::dsn(const std::string& database) const {
  return "host=127.0.0.1 port=" + std::to_string(port_) + " dbname=" + database + " user=postgres";
}

void Cluster::start() {
  pid_ = spawn({kBin + "postgres", "-D", directory_ + "/data", "-p", std::to_string(port_)},
               directory_ + "/log", "", true);
  wait_until_ready();
}

void Cluster::wait_until_ready() {
  const auto end = std::chrono::steady_clock::now() + kStartDeadline;
  while (std::chrono::steady_clock::now() < end) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      give_up("the server ended while starting\n" + contents(directory_ + "/log"));
    }
    const std::string state = contents(directory_ + "/data/postmaster.pid");
    if (state.find("\nready") != std::string::npos) return;
    std::this_thread::sleep_for(10ms);
  }
  give_up("the server did not become ready\n" + contents(directory_ + "/log"));
}

// The postmaster's group is its own only for itself: every backend makes a session of its own, so look them up.
std::vector<pid_t> Cluster::processes() const {
  std::vector<pid_t> found{pid_};
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = contents(entry.path() / "stat");
    const std::size_t after_name = stat.rfind(')');
    if (after_name == std::string::npos) continue;
    std::stringstream fields(stat.substr(after_name + 1));
    std::string state;
    pid_t parent = 0;
    fields >> state >> parent;
    if (parent == pid_) found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

void Cluster::stop() {
  if (!running()) return;
  ::kill(pid_, SIGINT);
  wait_for(std::exchange(pid_, 0));
}

// As a server that is wanted no longer: it clears away what it has from the kernel, which kill() cannot make it
// do.
void Cluster::stop_at_once() {
  if (!running()) return;
  thaw();
  ::kill(pid_, SIGQUIT);
  const auto end = std::chrono::steady_clock::now() + kStopDeadline;
  while (std::chrono::steady_clock::now() < end) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      return;
    }
    std::this_thread::sleep_for(1ms);
  }
  kill();
}

void Cluster::kill() {
  if (!running()) return;
  for (pid_t process : processes()) ::kill(process, SIGKILL);
  wait_for(std::exchange(pid_, 0));
  remove_shared_memory(directory_ + "/data/postmaster.pid");
  std::error_code ignored;
  fs::remove(directory_ + "/data/postmaster.pid", ignored);
}

void Cluster::freeze() {
  for (pid_t process : processes()) ::kill(process, SIGSTOP);
}

void Cluster::thaw() {
  for (pid_t process : processes()) ::kill(process, SIGCONT);
}

void Cluster::promote() {
  psql(dsn(), "SELECT pg_promote(true, 30)");
}

std::string psql(const std::string& dsn, const std::string& sql) {
  const std::string directory = make_directory();
  const std::string input = directory + "/in.sql";
  const std::string output = directory + "/out";
  std::ofstream(input) << sql << "\n";
  const int code =
      wait_for(spawn({kBin + "psql", "-X", "-At", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn}, output, input));
  std::string printed = contents(output);
  std::error_code ignored;
  fs::remove_all(directory, ignored);
  if (code != 0) give_up("psql ended with " + std::to_string(code) + ": " + printed);
  if (!printed.empty() && printed.back() == '\n') printed.pop_back();
  return printed;
}

}  // namespace kintsugi::pgtest
