// What the demo remembers between starts, in demo.json of its data folder (mode 0600), and the lock on that
// folder.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kintsugi::app {

struct DemoState {
  struct Shard {
    std::string name;
    int port = 0;
    friend bool operator==(const Shard&, const Shard&) = default;
  };
  std::vector<Shard> shards;
  std::string password;        // of user app, at the router and on the shards
  std::string admin_password;  // of role postgres on the shards
  bool loaded = false;         // the sample is there
  int spread = 0;              // over so many shards, the first ones, by tenant; 0: all of it is on the first
  friend bool operator==(const DemoState&, const DemoState&) = default;
};

// Nothing remembered yet: a state without shards.
[[nodiscard]] Result<DemoState> read_demo_state(const std::string& path);
[[nodiscard]] Status write_demo_state(const std::string& path, const DemoState& state);

// A file that only its owner may read, there as a whole or not at all.
[[nodiscard]] Status write_private_file(const std::string& path, const std::string& text);

// 24 letters and digits from the kernel.
[[nodiscard]] std::string random_password();

// Held as long as the object lives; the kernel lets go of it whatever happens to the process.
class FolderLock {
 public:
  // 55006 when another process holds it.
  static Result<FolderLock> take(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace kintsugi::app
