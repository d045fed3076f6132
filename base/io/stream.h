// A connected socket, plain or TLS, in a loop. Reads and writes are tried at once and never block; what to wait
// for is said with want(). Belongs to the loop's thread; may be detached and attached to another loop.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/io/loop.h"
#include "base/io/socket.h"
#include "base/io/task.h"
#include "base/io/tls.h"

struct ssl_st;

namespace kintsugi::io {

struct IoResult {
  enum Kind : std::uint8_t { kOk, kWouldBlock, kClosed, kError } kind = kOk;
  std::size_t bytes = 0;
  int error = 0;  // errno of kError
};

class Stream final : public EventTarget, private SendBatch::Sender {
 public:
  Stream() = default;
  explicit Stream(UniqueFd fd) : fd_(std::move(fd)) {}
  ~Stream() override { close(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void adopt(UniqueFd fd);
  // `target` is told of every event that is wanted, after the stream has noted it.
  void attach(Loop& loop, EventTarget* target);
  void detach();
  void set_target(EventTarget* target) { target_ = target; }
  void on_event(Watch& watch, std::uint32_t ready) override;
  // An event has said so and nothing has drained it since; reading or writing without it costs a system call.
  [[nodiscard]] bool readable() const { return (ready_ & kReadable) != 0 || has_buffered(); }
  [[nodiscard]] bool writable() const { return (ready_ & kWritable) != 0; }
  void close();
  // Both directions, behind what has been written; the peer and whoever waits here see the end.
  void shut_down();
  [[nodiscard]] bool open() const { return static_cast<bool>(fd_); }
  [[nodiscard]] int fd() const { return fd_.get(); }

  IoResult read(char* into, std::size_t size);
  // A few bytes may go with those of other streams at the end of the loop's round (send_batch.h); they count as
  // written.
  IoResult write(std::string_view bytes);
  void want(bool readable, bool writable);
  // Decrypted bytes that no epoll will announce.
  [[nodiscard]] bool has_buffered() const;

  // Plain sockets only: true when the peer has closed or something unexpected waits to be read.
  [[nodiscard]] bool has_unread_or_closed() const;

  // The handshakes. The waiter must be the stream's target.
  Task<Status> accept_tls(std::shared_ptr<const TlsContext> context, Waiter* waiter, Deadline deadline);
  Task<Status> connect_tls(std::shared_ptr<const TlsContext> context, std::string host, bool verify_host,
                           Waiter* waiter, Deadline deadline);
  [[nodiscard]] bool encrypted() const { return ssl_ != nullptr; }
  [[nodiscard]] std::string peer_certificate_der() const;
  [[nodiscard]] const TlsContext* tls_context() const { return context_.get(); }

  // Everything or nothing within the deadline, for logins and other small talk.
  Task<Status> write_all(std::string bytes, Waiter* waiter, Deadline deadline);
  // At least one byte appended to `into`.
  Task<Status> read_some(std::string* into, Waiter* waiter, Deadline deadline);

 private:
  Task<Status> handshake(bool server, Waiter* waiter, Deadline deadline);
  IoResult tls_result(int returned, bool reading);
  IoResult send_now(std::string_view bytes);
  IoResult send_unsent();
  void flush_batch();
  void on_sent(std::string_view unsent, int error) override;

  UniqueFd fd_;
  ssl_st* ssl_ = nullptr;
  std::shared_ptr<const TlsContext> context_;
  bool read_needs_write_ = false, write_needs_read_ = false;
  EventTarget* target_ = nullptr;
  std::uint32_t ready_ = 0;
  bool hung_up_ = false;  // the end is received, or stands behind what is
  std::string unsent_;    // of a batch, because the socket was full; goes out before anything else
  int send_error_ = 0;    // of a batch: the next write says it
  Watch watch_;
};

}  // namespace kintsugi::io
