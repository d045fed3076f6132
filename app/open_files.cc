#include "app/open_files.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/log.h"

namespace kintsugi::app {
namespace {
constexpr rlim_t kOwnFiles = 256;  // libraries, logs, listeners, the map's databases, what threads wait on
}

void raise_open_files(int clients, int backends) {
  rlim_t needed = static_cast<rlim_t>(clients) + static_cast<rlim_t>(backends) + kOwnFiles;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  rlimit wanted = {needed, std::max(needed, limit.rlim_max)};
  if (setrlimit(RLIMIT_NOFILE, &wanted) == 0) return;
  wanted = {std::min(needed, limit.rlim_max), limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &wanted);
  if (wanted.rlim_cur >= needed) return;
  rlim_t others = static_cast<rlim_t>(backends) + kOwnFiles;
  log::warning("fewer files may be open than max_clients needs",
               {{"limit", wanted.rlim_cur},
                {"needed", needed},
                {"clients_that_fit", wanted.rlim_cur > others ? wanted.rlim_cur - others : 0},
                {"hint", "raise the hard limit (ulimit -Hn, LimitNOFILE=) or lower server.max_clients"}});
}

}  // namespace kintsugi::app
