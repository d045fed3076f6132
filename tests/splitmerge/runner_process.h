// A runner of jobs in a process of its own, to be killed or frozen at a named point: the test's own program,
// asked to do nothing but the one "test" of chaos_pgtest.cc that is named below.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace kintsugi::splitmerge {

class RunnerProcess {
 public:
  RunnerProcess(const std::string& store, const std::string& failpoint) {
    std::vector<std::string> variables{"KINTSUGI_TEST_STORE=" + store, "KINTSUGI_FAILPOINT=" + failpoint,
                                       "KINTSUGI_TEST_PARENT=" + std::to_string(getpid())};
    for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe";
    std::string filter = "--gtest_filter=AProcessThat.DISABLED_RunsJobsUntilItIsKilled";
    std::string disabled = "--gtest_also_run_disabled_tests";
    std::string quiet = "--gtest_brief=1";
    char* arguments[] = {program.data(), filter.data(), disabled.data(), quiet.data(), nullptr};
    if (posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environment.data()) != 0)
      throw std::runtime_error("cannot start a runner");
  }
  ~RunnerProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  RunnerProcess(const RunnerProcess&) = delete;
  RunnerProcess& operator=(const RunnerProcess&) = delete;

  // Whether it died by its failpoint in time.
  bool died(std::chrono::milliseconds within) {
    for (const auto end = std::chrono::steady_clock::now() + within; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) != pid_) continue;
      pid_ = 0;
      return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    return false;
  }
  void freeze() const { kill(pid_, SIGSTOP); }
  void thaw() const { kill(pid_, SIGCONT); }

 private:
  pid_t pid_ = 0;
};

}  // namespace kintsugi::splitmerge
