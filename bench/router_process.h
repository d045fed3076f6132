// The program itself, `kintsugi serve` on a store of a bench's own, ended with it.
#pragma once

#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/pg/port.h"

extern char** environ;

namespace kintsugi::bench {

class RouterProcess {
 public:
  RouterProcess(std::string program, const std::string& store)
      : port_(pgtest::free_port()), directory_(temporary()) {
    const std::string config = directory_ + "/kintsugi.toml";
    std::ofstream(config) << "[server]\nlisten = \"127.0.0.1:" << port_
                          << "\"\n[admin]\nlisten = \"127.0.0.1:" << pgtest::free_port()
                          << "\"\n[map]\nstore = \"" << store
                          << "\"\n[[user]]\nname = \"bench\"\npassword = \"bench\"\n";
    std::string serve = "serve";
    std::string option = "--config";
    std::string data = "--data";
    std::string file = config;
    char* arguments[] = {program.data(), serve.data(),      option.data(), file.data(),
                         data.data(),    directory_.data(), nullptr};
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 2, (directory_ + "/log").c_str(), O_WRONLY | O_CREAT, 0600);
    const int failed = posix_spawn(&pid_, program.c_str(), &quiet, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&quiet);
    if (failed != 0) throw std::runtime_error("cannot start " + program);
    wait_until_ready();
  }
  ~RouterProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(directory_);
  }
  RouterProcess(const RouterProcess&) = delete;
  RouterProcess& operator=(const RouterProcess&) = delete;

  [[nodiscard]] std::string dsn() const {
    return "host=127.0.0.1 port=" + std::to_string(port_) + " dbname=app user=bench password=bench";
  }

 private:
  static std::string temporary() {
    std::string path = (std::filesystem::temp_directory_path() / "kg-bench-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    return path;
  }
  void wait_until_ready() const {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);;) {
      PGconn* probe = PQconnectdb(dsn().c_str());
      const bool ready = PQstatus(probe) == CONNECTION_OK;
      const std::string why = PQerrorMessage(probe);
      PQfinish(probe);
      if (ready) return;
      if (std::chrono::steady_clock::now() > end || waitpid(pid_, nullptr, WNOHANG) == pid_) {
        std::ifstream log(directory_ + "/log");
        throw std::runtime_error("the router does not start: " + why +
                                 std::string(std::istreambuf_iterator<char>(log), {}));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  int port_;
  std::string directory_;
  pid_t pid_ = 0;
};

}  // namespace kintsugi::bench
