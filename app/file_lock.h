// A file that one process has to itself, until it ends, however it ends.
#pragma once

#include <string>

#include "base/error.h"

namespace kintsugi::app {

class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

  // By a file beside it, `path`.lock, which holds the number of the process. 55006 when another one has it.
  static Result<FileLock> take(const std::string& path);

 private:
  int fd_ = -1;
};

}  // namespace kintsugi::app
