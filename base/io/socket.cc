#include "base/io/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace kintsugi::io {
namespace {

SocketAddress copy_address(const void* address, std::size_t size, int family) {
  SocketAddress result;
  std::memcpy(result.bytes, address, size);
  result.size = static_cast<unsigned>(size);
  result.family = family;
  return result;
}

struct AddrInfo {
  addrinfo* list = nullptr;
  ~AddrInfo() {
    if (list != nullptr) freeaddrinfo(list);
  }
};

Result<std::vector<SocketAddress>> lookup(const HostPort& at, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  AddrInfo found;
  const std::string port = std::to_string(at.port);
  int code = getaddrinfo(at.host.empty() ? nullptr : at.host.c_str(), port.c_str(), &hints, &found.list);
  if (code != 0) {
    return fail(sqlstate::kConnectionFailure, "could not find the address of host \"" + at.host + "\"",
                "Check the host name and the name server.", gai_strerror(code));
  }
  std::vector<SocketAddress> result;
  for (addrinfo* a = found.list; a != nullptr; a = a->ai_next) {
    result.push_back(copy_address(a->ai_addr, a->ai_addrlen, a->ai_family));
  }
  return result;
}

std::string system_error() {
  return std::strerror(errno);
}

}  // namespace

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string HostPort::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<HostPort> parse_host_port(std::string_view text) {
  const auto wrong = [&] {
    return fail(sqlstate::kInvalidParameter, "\"" + std::string(text) + "\" is not an address",
                "Write host:port, for example 127.0.0.1:6432 or [::1]:6432.");
  };
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::string_view host = text.substr(0, colon);
  std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong();
  }
  HostPort result{std::string(host), 0};
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc() || end != port.data() + port.size() || result.port < 0 || result.port > 65535) {
    return wrong();
  }
  if (result.host.empty()) return wrong();
  return result;
}

Result<UniqueFd> listen_tcp(const HostPort& at, Listening how, int backlog) {
  KG_TRY(auto addresses, lookup(at, AI_PASSIVE));
  std::string why = "no address";
  for (const SocketAddress& address : addresses) {
    UniqueFd fd(socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) {
      why = system_error();
      continue;
    }
    int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const auto share = [&] { return setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0; };
    // With SO_REUSEPORT at its bind a second router of the same user would get a part of the first one's
    // clients. The first socket gets it afterwards: those who bind with it may join, others may not.
    const bool first = how == Listening::kFirst;
    if ((first || share()) &&
        bind(fd.get(), reinterpret_cast<const sockaddr*>(address.bytes), address.size) == 0 &&
        (!first || share()) && listen(fd.get(), backlog) == 0) {
      return fd;
    }
    why = system_error();
  }
  return fail(sqlstate::kConnectionFailure, "cannot listen on " + at.to_string() + ": " + why,
              "Is another program (or another router) using this port? Choose another with --listen.");
}

int local_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  return 0;
}

Result<SocketAddress> unix_address(const std::string& directory, int port) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = directory + "/.s.PGSQL." + std::to_string(port);
  if (path.size() >= sizeof address.sun_path) {
    return fail(sqlstate::kConnectionFailure, "the socket path \"" + path + "\" is too long",
                "Use a directory with a shorter name, or connect over TCP.");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return copy_address(&address, sizeof address, AF_UNIX);
}

Result<SocketAddress> numeric_address(const HostPort& at) {
  KG_TRY(auto addresses, lookup(at, AI_NUMERICHOST));
  return addresses.front();
}

Result<std::vector<SocketAddress>> resolve_blocking(const HostPort& at) {
  return lookup(at, AI_ADDRCONFIG);
}

Result<UniqueFd> start_connect(const SocketAddress& to) {
  UniqueFd fd(socket(to.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail(sqlstate::kConnectionFailure, "cannot make a socket: " + system_error());
  if (to.family != AF_UNIX) {
    set_no_delay(fd.get());
    set_keep_alive(fd.get());
  }
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(to.bytes), to.size) == 0 || errno == EINPROGRESS) {
    return fd;
  }
  return fail(sqlstate::kConnectionFailure, system_error());
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

bool connected(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
}

void set_no_delay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void set_keep_alive(int fd) {
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  int idle_seconds = 60, interval_seconds = 10, probes = 6;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace kintsugi::io
