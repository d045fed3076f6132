// One connection of the admin listener, plain or TLS, as httplib reads and writes it. The other side may be as
// slow as it likes for ten seconds a request, and for a second more with each 32 kB that pass: who reads or
// sends drop by drop is cut off. Owned and used by the thread that serves it; cut_off() may be called by any.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "base/io/socket.h"

namespace kintsugi::admin {

class PeerStream final : public httplib::Stream {
 public:
  // `tls` null: plain. The context outlives the stream.
  PeerStream(io::UniqueFd fd, ssl_ctx_st* tls);
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  bool shake_hands();                                     // of TLS; true when there is none
  bool next_request(std::chrono::milliseconds patience);  // its first byte is there, or comes within that time
  void head_is_read() { in_head_ = false; }               // what comes now is a body
  void say_goodbye();    // and wait a second at most for what the other side still sends
  void cut_off() const;  // whoever waits for the other side waits no longer

  [[nodiscard]] bool is_readable() const override;
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* into, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return fd_.get(); }

 private:
  enum class Way : std::uint8_t { kIn, kOut };
  bool wait(Way way) const;
  ssize_t read_some(char* into, std::size_t size);
  ssize_t passed(ssize_t bytes);
  template <typename Attempt>
  ssize_t through_tls(Attempt attempt);

  io::UniqueFd fd_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
  std::array<char, 16384> buffer_{};
  std::size_t begin_ = 0, end_ = 0;  // what of the buffer is not read yet
  bool in_head_ = true, broken_ = false;
  std::size_t head_ = 0, passed_ = 0;            // bytes of this request
  mutable std::chrono::milliseconds waited_{0};  // for the other side, in this request
};

}  // namespace kintsugi::admin
