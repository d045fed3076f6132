#include "app/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace kintsugi::app {

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Result<FileLock> FileLock::take(const std::string& path) {
  FileLock lock;
  const std::string file = path + ".lock";
  lock.fd_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock.fd_ < 0) return fail("58000", "cannot open the file " + file + ": " + std::strerror(errno));
  if (flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    const ssize_t size = pread(lock.fd_, text, sizeof text - 1, 0);
    const std::string who =
        size > 1 ? " (process " + std::string(text, static_cast<std::size_t>(size - 1)) + ")" : "";
    return fail("55006", path + " is used by another router" + who,
                "Each router has a replica of its own, and a SQLite store is one router's: give it its own "
                "--data, and for "
                "several routers put the map store into a PostgreSQL.");
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(lock.fd_, 0) == 0) (void)!pwrite(lock.fd_, pid.data(), pid.size(), 0);
  return lock;
}

}  // namespace kintsugi::app
