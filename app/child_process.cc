#include "app/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

namespace kintsugi::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A file in memory: no pipe can fill up, and whoever inherits it keeps nobody waiting.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content) : fd_(memfd_create("kintsugi", MFD_CLOEXEC)) {
    std::size_t done = 0;
    while (fd_ >= 0 && done < content.size()) {
      ssize_t n = write(fd_, content.data() + done, content.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (fd_ >= 0) lseek(fd_, 0, SEEK_SET);
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string content() const {
    std::string text;
    char part[4096];
    for (off_t at = 0;; at += static_cast<off_t>(sizeof part)) {
      ssize_t n = pread(fd_, part, sizeof part, at);
      if (n <= 0) return text;
      text.append(part, static_cast<std::size_t>(n));
    }
  }

 private:
  int fd_;
};

std::vector<std::string> environment_of(const Program& program) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    if (!text.starts_with("PG")) entries.emplace_back(text);
  }
  for (const auto& [name, value] : program.environment) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// 0, or the error number.
int spawn(const Program& program, int input, int output, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, 0);
  posix_spawn_file_actions_adddup2(&files, output, 1);
  posix_spawn_file_actions_adddup2(&files, output, 2);
  posix_spawn_file_actions_addchdir_np(&files, "/");
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> environment = environment_of(program);
  int error = posix_spawn(&pid, program.arguments.front().c_str(), &files, &attributes,
                          pointers_to(program.arguments).data(), pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

Result<Outcome> run_program(const Program& program) {
  const std::string& name = program.arguments.front();
  MemoryFile input(program.input), output("");
  if (input.fd() < 0 || output.fd() < 0)
    return fail("58000", "no memory file: " + std::string(std::strerror(errno)));
  pid_t pid = 0;
  if (int error = spawn(program, input.fd(), output.fd(), pid); error != 0) {
    return fail("58000", "cannot run " + name + ": " + std::strerror(error));
  }
  auto until = steady_clock::now() + program.patience;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (steady_clock::now() > until) {
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      return fail("57014", name + " did not end within " + std::to_string(program.patience.count()) + " ms", "",
                  output.content());
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return Outcome{.exit_code = code, .output = output.content()};
}

}  // namespace kintsugi::app
