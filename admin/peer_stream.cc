#include "admin/peer_stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>

namespace kintsugi::admin {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSlowness = 10s;
constexpr std::size_t kBytesASecond = 32 << 10;
constexpr std::size_t kHeadMax = 256 << 10;
constexpr std::chrono::milliseconds kGoodbye = 1s;

bool ready(int fd, short events, std::chrono::milliseconds patience) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  const auto end = Clock::now() + patience;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    const int found = poll(&one, 1, static_cast<int>(std::max(left, 0ms).count()));
    if (found >= 0 || errno != EINTR) return found > 0;
  }
}

void told_of(const sockaddr_storage& address, std::string& ip, int& port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    port = ntohs(v6.sin6_port);
  }
  ip = text.data();
}

}  // namespace

PeerStream::PeerStream(io::UniqueFd fd, ssl_ctx_st* tls)
    : fd_(std::move(fd)), tls_(tls == nullptr ? nullptr : SSL_new(tls), SSL_free) {
  fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  if (tls_ != nullptr) SSL_set_fd(tls_.get(), fd_.get());
  broken_ = tls != nullptr && tls_ == nullptr;
}

// Closing while the other side still sends would take the answer away from it: of a body that is too large.
void PeerStream::say_goodbye() {
  if (tls_ != nullptr && !broken_) SSL_shutdown(tls_.get());
  ::shutdown(fd_.get(), SHUT_WR);
  const auto end = Clock::now() + kGoodbye;
  while (ready(fd_.get(), POLLIN, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()))) {
    if (::recv(fd_.get(), buffer_.data(), buffer_.size(), 0) <= 0 || Clock::now() > end) break;
  }
}

bool PeerStream::shake_hands() {
  if (broken_ || tls_ == nullptr) return !broken_;
  return through_tls([this] { return SSL_accept(tls_.get()); }) > 0;
}

bool PeerStream::next_request(std::chrono::milliseconds patience) {
  in_head_ = true;
  head_ = passed_ = 0;
  waited_ = 0ms;
  if (broken_) return false;
  if (begin_ < end_ || (tls_ != nullptr && SSL_pending(tls_.get()) > 0)) return true;
  return ready(fd_.get(), POLLIN, patience);
}

void PeerStream::cut_off() const {
  ::shutdown(fd_.get(), SHUT_RDWR);
}

bool PeerStream::wait(Way way) const {
  const auto from = Clock::now();
  const std::chrono::milliseconds allowed = kSlowness + 1000ms * passed_ / kBytesASecond;
  if (waited_ >= allowed) return false;
  const bool there = ready(fd_.get(), way == Way::kIn ? POLLIN : POLLOUT, allowed - waited_);
  waited_ += std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - from);
  return there;
}

bool PeerStream::is_readable() const {
  return begin_ < end_ || wait(Way::kIn);
}

bool PeerStream::is_writable() const {
  return !broken_ && wait(Way::kOut);
}

ssize_t PeerStream::passed(ssize_t bytes) {
  if (bytes > 0) passed_ += static_cast<std::size_t>(bytes);
  if (bytes < 0) broken_ = true;
  return bytes;
}

template <typename Attempt>
ssize_t PeerStream::through_tls(Attempt attempt) {
  while (true) {
    ERR_clear_error();
    const int done = attempt();
    if (done > 0) return passed(done);
    switch (SSL_get_error(tls_.get(), done)) {
      case SSL_ERROR_WANT_READ:
        if (!wait(Way::kIn)) return passed(-1);
        break;
      case SSL_ERROR_WANT_WRITE:
        if (!wait(Way::kOut)) return passed(-1);
        break;
      case SSL_ERROR_ZERO_RETURN: return 0;
      default: return passed(-1);
    }
  }
}

ssize_t PeerStream::read_some(char* into, std::size_t size) {
  if (tls_ != nullptr) return through_tls([&] { return SSL_read(tls_.get(), into, static_cast<int>(size)); });
  while (true) {
    const ssize_t got = ::recv(fd_.get(), into, size, 0);
    if (got >= 0) return passed(got);
    if (errno == EINTR) continue;
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait(Way::kIn)) return passed(-1);
  }
}

ssize_t PeerStream::read(char* into, std::size_t size) {
  if (broken_) return -1;
  if (begin_ == end_) {
    const ssize_t got = read_some(buffer_.data(), buffer_.size());
    if (got <= 0) return got;
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
  }
  const std::size_t taken = std::min(size, end_ - begin_);
  std::memcpy(into, buffer_.data() + begin_, taken);
  begin_ += taken;
  if (in_head_ && (head_ += taken) > kHeadMax) return passed(-1);
  return static_cast<ssize_t>(taken);
}

ssize_t PeerStream::write(const char* from, std::size_t size) {
  if (broken_) return -1;
  if (size == 0) return 0;
  if (tls_ != nullptr) {
    const int most = static_cast<int>(std::min<std::size_t>(size, 1 << 20));
    return through_tls([&] { return SSL_write(tls_.get(), from, most); });
  }
  while (true) {
    const ssize_t sent = ::send(fd_.get(), from, size, MSG_NOSIGNAL);
    if (sent >= 0) return passed(sent);
    if (errno == EINTR) continue;
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait(Way::kOut)) return passed(-1);
  }
}

void PeerStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0) told_of(address, ip, port);
}

void PeerStream::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0) told_of(address, ip, port);
}

}  // namespace kintsugi::admin
