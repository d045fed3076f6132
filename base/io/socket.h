// Addresses and plain sockets: parsing, listening, connecting. Every descriptor is non-blocking and
// close-on-exec.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace kintsugi::io {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  void reset();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct HostPort {
  std::string host;
  int port = 0;

  [[nodiscard]] std::string to_string() const;  // IPv6 hosts in brackets
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// "127.0.0.1:6432", "[::1]:6432", "localhost:0".
Result<HostPort> parse_host_port(std::string_view text);

// Listens so that each thread of this program may have a queue of its own at the same address: the first of
// them takes the address alone, the others join it. An address that is taken, also by another router, is an
// error. `host` is a name or a number.
enum class Listening : std::uint8_t { kFirst, kJoining };
Result<UniqueFd> listen_tcp(const HostPort& at, Listening how, int backlog = 1024);

// The port a listener really has.
[[nodiscard]] int local_port(int fd);

// A resolved address: the bytes of a sockaddr.
struct SocketAddress {
  alignas(8) char bytes[128];
  unsigned size = 0;
  int family = 0;
};

// A unix socket when `host` begins with a slash (then <host>/.s.PGSQL.<port>), else nothing but a number is
// taken without asking the resolver.
Result<SocketAddress> unix_address(const std::string& directory, int port);
Result<SocketAddress> numeric_address(const HostPort& at);
// Asks the resolver and blocks: not for a loop's thread.
Result<std::vector<SocketAddress>> resolve_blocking(const HostPort& at);

// Starts connecting; the socket becomes writable when that has ended, and connect_error tells how.
Result<UniqueFd> start_connect(const SocketAddress& to);
[[nodiscard]] int connect_error(int fd);
[[nodiscard]] bool connected(int fd);

void set_no_delay(int fd);
void set_keep_alive(int fd);

}  // namespace kintsugi::io
