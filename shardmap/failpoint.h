// A named place between two steps where a test may kill the process: the one named in KINTSUGI_FAILPOINT dies
// there by SIGKILL, as if the machine had gone. Costs a look at the environment; used in changes of the map
// only.
#pragma once

#include <signal.h>

#include <cstdlib>
#include <cstring>

namespace kintsugi::shardmap {

inline void failpoint(const char* name) {
  const char* wanted = std::getenv("KINTSUGI_FAILPOINT");
  if (wanted != nullptr && std::strcmp(wanted, name) == 0) raise(SIGKILL);
}

}  // namespace kintsugi::shardmap
