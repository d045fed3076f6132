// A named place between two steps where a test may kill the process: the one named in KINTSUGI_FAILPOINT dies
// there by SIGKILL, as if the machine had gone. With "stop " before the name it is frozen there, by SIGSTOP,
// until somebody wakes it; once, since a job that goes on may come by again. Costs a look at the environment;
// used in changes of the map only.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace kintsugi::shardmap {

inline void failpoint(const char* name) {
  const char* wanted = std::getenv("KINTSUGI_FAILPOINT");
  if (wanted == nullptr) return;
  const bool stop = std::strncmp(wanted, "stop ", 5) == 0;
  if (std::strcmp(stop ? wanted + 5 : wanted, name) != 0) return;
  static std::atomic<bool> stopped = false;
  if (!stop) raise(SIGKILL);
  if (!stopped.exchange(true)) raise(SIGSTOP);
}

}  // namespace kintsugi::shardmap
