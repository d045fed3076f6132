#include "base/io/stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kintsugi::io {
namespace {

std::string describe(const IoResult& result) {
  return result.kind == IoResult::kClosed ? "the peer closed the connection" : std::strerror(result.error);
}

std::string handshake_error(SSL* ssl) {
  const long verified = SSL_get_verify_result(ssl);
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (verified != X509_V_OK) return X509_verify_cert_error_string(verified);
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "the peer closed the connection";
}

}  // namespace

void Stream::adopt(UniqueFd fd) {
  close();
  fd_ = std::move(fd);
}

void Stream::attach(Loop& loop, EventTarget* target) {
  target_ = target;
  ready_ = 0;
  hung_up_ = false;
  watch_.attach(loop, fd_.get(), this, Watch::kEdges);
}

void Stream::detach() {
  flush_batch();
  watch_.detach();
}

void Stream::flush_batch() {
  if (slot_ >= 0) watch_.loop()->flush_sends();
}

void Stream::on_event(Watch& watch, std::uint32_t ready) {
  hung_up_ |= (ready & kHungUp) != 0;
  if ((ready & kWritable) != 0 && !unsent_.empty() && send_unsent().kind == IoResult::kWouldBlock) {
    ready &= ~kWritable;
  }
  ready_ |= ready & (kReadable | kWritable);
  // A TLS read may wait for a writable socket and the other way round: whoever waits tries again.
  if (read_needs_write_ || write_needs_read_) ready_ |= kReadable | kWritable;
  ready &= watch.wanted();
  if (ready != 0 && target_ != nullptr) target_->on_event(watch, ready);
}

void Stream::close() {
  detach();
  unsent_.clear();
  send_error_ = 0;
  if (ssl_ != nullptr) {
    if (SSL_is_init_finished(ssl_) != 0) SSL_shutdown(ssl_);
    ERR_clear_error();
    SSL_free(ssl_);
    ssl_ = nullptr;
  }
  context_.reset();
  fd_.reset();
}

void Stream::shut_down() {
  flush_batch();
  if (fd_) ::shutdown(fd_.get(), SHUT_RDWR);
}

IoResult Stream::read(char* into, std::size_t size) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    return tls_result(SSL_read(ssl_, into, static_cast<int>(std::min<std::size_t>(size, 1 << 30))), true);
  }
  for (;;) {
    ssize_t got = ::recv(fd_.get(), into, size, 0);
    if (got > 0) {
      // A short read has drained the socket: the next one waits for an event. The end has had its event.
      if (static_cast<std::size_t>(got) < size && !hung_up_) ready_ &= ~kReadable;
      return {IoResult::kOk, static_cast<std::size_t>(got), 0};
    }
    if (got == 0) return {IoResult::kClosed, 0, 0};
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      ready_ &= ~kReadable;
      return {IoResult::kWouldBlock, 0, 0};
    }
    if (errno != EINTR) return {IoResult::kError, 0, errno};
  }
}

IoResult Stream::write(std::string_view bytes) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    return tls_result(
        SSL_write(ssl_, bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 30))), false);
  }
  if (SendBatch* batch = watch_.attached() ? watch_.loop()->sends() : nullptr; batch != nullptr) {
    if (unsent_.empty() && send_error_ == 0 && batch->add(*this, fd_.get(), bytes)) {
      return {IoResult::kOk, bytes.size(), 0};
    }
  }
  return send_now(bytes);
}

IoResult Stream::send_now(std::string_view bytes) {
  flush_batch();
  if (send_error_ != 0) return {IoResult::kError, 0, send_error_};
  if (!unsent_.empty()) {
    if (const IoResult earlier = send_unsent(); earlier.kind != IoResult::kOk) return earlier;
  }
  for (;;) {
    ssize_t put = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put >= 0) return {IoResult::kOk, static_cast<std::size_t>(put), 0};
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      ready_ &= ~kWritable;
      return {IoResult::kWouldBlock, 0, 0};
    }
    if (errno != EINTR) return {IoResult::kError, 0, errno};
  }
}

IoResult Stream::send_unsent() {
  std::string left = std::exchange(unsent_, {});
  const IoResult result = send_now(left);
  if (result.kind == IoResult::kError) {
    send_error_ = result.error;
    return result;
  }
  left.erase(0, result.bytes);
  if (left.empty()) return {};
  unsent_ = std::move(left);
  ready_ &= ~kWritable;
  return {IoResult::kWouldBlock, 0, 0};
}

void Stream::on_sent(std::string_view unsent, int error) {
  send_error_ = error;  // the loop tells it too: a broken connection is readable
  if (error != 0 || unsent.empty()) return;
  unsent_ = unsent;
  ready_ &= ~kWritable;
  watch_.want(watch_.wanted() | kWritable);
}

IoResult Stream::tls_result(int returned, bool reading) {
  bool& crossed = reading ? read_needs_write_ : write_needs_read_;
  crossed = false;
  if (returned > 0) return {IoResult::kOk, static_cast<std::size_t>(returned), 0};
  const int system = errno;
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
      ready_ &= ~kReadable;
      crossed = !reading;
      return {IoResult::kWouldBlock, 0, 0};
    case SSL_ERROR_WANT_WRITE:
      ready_ &= ~kWritable;
      crossed = reading;
      return {IoResult::kWouldBlock, 0, 0};
    case SSL_ERROR_ZERO_RETURN: return {IoResult::kClosed, 0, 0};
    case SSL_ERROR_SYSCALL:
      ERR_clear_error();
      return system == 0 ? IoResult{IoResult::kClosed, 0, 0} : IoResult{IoResult::kError, 0, system};
    default: ERR_clear_error(); return {IoResult::kError, 0, EPROTO};
  }
}

void Stream::want(bool readable, bool writable) {
  std::uint32_t events = 0;
  if (readable) events |= kReadable | (read_needs_write_ ? kWritable : 0);
  if (writable || !unsent_.empty()) events |= kWritable | (write_needs_read_ ? kReadable : 0);
  watch_.want(events);
  if ((events & ready_) != 0) watch_.tell_again();  // it was told when nobody wanted it
}

bool Stream::has_buffered() const {
  return ssl_ != nullptr && SSL_pending(ssl_) > 0;
}

bool Stream::has_unread_or_closed() const {
  char byte = 0;
  ssize_t got = ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

Task<Status> Stream::accept_tls(std::shared_ptr<const TlsContext> context, Waiter* waiter, Deadline deadline) {
  context_ = std::move(context);
  ssl_ = SSL_new(context_->native());
  if (ssl_ == nullptr || SSL_set_fd(ssl_, fd_.get()) != 1) {
    co_return fail(sqlstate::kConnectionFailure, "cannot start TLS: out of memory");
  }
  SSL_set_accept_state(ssl_);
  co_return co_await handshake(true, waiter, deadline);
}

Task<Status> Stream::connect_tls(std::shared_ptr<const TlsContext> context, std::string host, bool verify_host,
                                 Waiter* waiter, Deadline deadline) {
  context_ = std::move(context);
  ssl_ = SSL_new(context_->native());
  if (ssl_ == nullptr || SSL_set_fd(ssl_, fd_.get()) != 1) {
    co_return fail(sqlstate::kConnectionFailure, "cannot start TLS: out of memory");
  }
  SSL_set_connect_state(ssl_);
  X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl_);
  const bool numeric = X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str()) == 1;
  if (!verify_host) {
    X509_VERIFY_PARAM_set1_ip(parameters, nullptr, 0);
  } else if (!numeric) {
    X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), host.size());
  }
  if (!numeric) SSL_set_tlsext_host_name(ssl_, host.c_str());
  ERR_clear_error();
  co_return co_await handshake(false, waiter, deadline);
}

Task<Status> Stream::handshake(bool server, Waiter* waiter, Deadline deadline) {
  for (;;) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_);
    if (done == 1) co_return Status{};
    const int why = SSL_get_error(ssl_, done);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
      const std::string reason = handshake_error(ssl_);
      co_return fail(sqlstate::kConnectionFailure, std::string(server ? "could not accept" : "could not make") +
                                                       " a TLS connection: " + reason);
    }
    const std::uint32_t awaited = why == SSL_ERROR_WANT_READ ? kReadable : kWritable;
    ready_ &= ~awaited;
    watch_.want(awaited);
    const bool in_time = co_await waiter->wait(deadline);
    if (!in_time) co_return fail(sqlstate::kConnectionFailure, "the TLS handshake took too long");
  }
}

std::string Stream::peer_certificate_der() const {
  X509* certificate = ssl_ != nullptr ? SSL_get0_peer_certificate(ssl_) : nullptr;
  if (certificate == nullptr) return {};
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate, &bytes);
  if (size <= 0) return {};
  std::string der(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

Task<Status> Stream::write_all(std::string bytes, Waiter* waiter, Deadline deadline) {
  std::string_view left = bytes;
  for (;;) {
    const IoResult result = ssl_ != nullptr ? write(left) : send_now(left);
    if (result.kind == IoResult::kOk) {
      left.remove_prefix(result.bytes);
      if (left.empty()) co_return Status{};
      continue;
    }
    if (result.kind != IoResult::kWouldBlock) {
      co_return fail(sqlstate::kConnectionFailure, "could not send: " + describe(result));
    }
    want(false, true);
    const bool in_time = co_await waiter->wait(deadline);
    if (!in_time) co_return fail(sqlstate::kConnectionFailure, "the peer took too long to accept data");
  }
}

Task<Status> Stream::read_some(std::string* into, Waiter* waiter, Deadline deadline) {
  char buffer[8192];
  for (;;) {
    const IoResult result = read(buffer, sizeof buffer);
    if (result.kind == IoResult::kOk) {
      into->append(buffer, result.bytes);
      co_return Status{};
    }
    if (result.kind != IoResult::kWouldBlock) {
      co_return fail(sqlstate::kConnectionFailure, "could not receive: " + describe(result));
    }
    want(true, false);
    const bool in_time = co_await waiter->wait(deadline);
    if (!in_time) co_return fail(sqlstate::kConnectionFailure, "the peer took too long to answer");
  }
}

}  // namespace kintsugi::io
