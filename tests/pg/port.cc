#include "tests/pg/port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <random>
#include <set>
#include <stdexcept>

namespace kintsugi::pgtest {
namespace {

// As tests/clients/ports.py, which says why.
constexpr const char* kLocks = "/tmp/kintsugi-ports.lock";
constexpr int kFirst = 18000;
constexpr int kLast = 29999;

// Never closed: closing it would unlock.
int open_locks() {
  for (const int flags : {O_RDWR, O_RDWR | O_CREAT | O_EXCL, O_RDWR}) {
    const int fd = open(kLocks, flags | O_CLOEXEC, 0666);
    if (fd < 0) continue;
    if ((flags & O_CREAT) != 0) fchmod(fd, 0666);
    return fd;
  }
  throw std::runtime_error(std::string("pgtest: cannot open ") + kLocks);
}

bool lock(int fd, int port) {
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = port;
  byte.l_len = 1;
  return fcntl(fd, F_SETLK, &byte) == 0;
}

bool nobody_listens_on(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool free = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  return free;
}

}  // namespace

int free_port() {
  static std::mutex one_at_a_time;
  static std::set<int> taken;  // by this process, which its own locks would not keep from taking them again
  static const int locks = open_locks();
  const std::lock_guard guard(one_at_a_time);
  std::random_device random;
  std::uniform_int_distribution<int> port_of(kFirst, kLast);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int port = port_of(random);
    if (taken.contains(port) || !lock(locks, port)) continue;
    taken.insert(port);
    if (nobody_listens_on(port)) return port;
  }
  throw std::runtime_error("pgtest: no free port found");
}

}  // namespace kintsugi::pgtest
