#include "app/demo_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/invariant.h"

namespace kintsugi::app {

Result<DemoState> read_demo_state(const std::string& path) {
  std::ifstream in(path);
  DemoState state;
  if (!in) return state;
  try {
    nlohmann::json json = nlohmann::json::parse(in);
    for (const auto& shard : json.at("shards")) state.shards.push_back({shard.at("name"), shard.at("port")});
    state.password = json.at("password");
    state.admin_password = json.at("admin_password");
    state.loaded = json.at("loaded");
    state.spread = json.value("spread", 0);
  } catch (const nlohmann::json::exception& error) {
    return fail("58000", path + " is not what the demo wrote: " + error.what(),
                "Remove the folder to start anew, or give another one with --data.");
  }
  return state;
}

Status write_demo_state(const std::string& path, const DemoState& state) {
  nlohmann::json shards = nlohmann::json::array();
  for (const DemoState::Shard& shard : state.shards)
    shards.push_back({{"name", shard.name}, {"port", shard.port}});
  nlohmann::json json = {{"shards", shards},
                         {"password", state.password},
                         {"admin_password", state.admin_password},
                         {"loaded", state.loaded},
                         {"spread", state.spread}};
  return write_private_file(path, json.dump(2) + "\n");
}

Status write_private_file(const std::string& path, const std::string& text) {
  std::string fresh = path + ".new";
  unlink(fresh.c_str());
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool whole =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  int error = errno;
  if (fd >= 0) close(fd);
  if (whole && rename(fresh.c_str(), path.c_str()) == 0) return {};
  return fail("58000", "cannot write " + path + ": " + std::strerror(whole ? errno : error));
}

std::string random_password() {
  static constexpr char kLetters[] = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789";
  constexpr unsigned kCount = sizeof kLetters - 1;
  std::string text;
  while (text.size() < 24) {
    unsigned char byte = 0;
    INVARIANT(getrandom(&byte, 1, 0) == 1, "the kernel gives random bytes");
    if (byte < 256 / kCount * kCount) text += kLetters[byte % kCount];
  }
  return text;
}

Result<FolderLock> FolderLock::take(const std::string& folder) {
  std::string path = folder + "/lock";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return fail("58000", "cannot write in " + folder + ": " + std::strerror(errno),
                "Give another folder with --data.");
  FolderLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
    return fail("55006",
                "another kintsugi demo (pid " + std::string(pid, n > 0 ? static_cast<std::size_t>(n) : 0) +
                    ") is running in " + folder,
                "Stop it, or give another folder with --data.");
  }
  std::string pid = std::to_string(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0)
    return fail("58000", "cannot write " + path);
  return lock;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace kintsugi::app
