// A PostgreSQL cluster of a test's own, and a blocking connection to it that is made of nothing but wire/ and a
// socket.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/client_messages.h"
#include "wire/scram.h"
#include "wire/server_messages.h"

namespace kintsugi::wire {

// Started on a free port with TLS on, stopped and removed at the end. One for the whole program: shared().
class RealPostgres {
 public:
  static RealPostgres& shared();
  ~RealPostgres();
  RealPostgres(const RealPostgres&) = delete;
  RealPostgres& operator=(const RealPostgres&) = delete;

  [[nodiscard]] int port() const { return port_; }
  // A certificate from `openssl req` with these arguments, in use when this returns.
  void use_certificate(const std::string& openssl_arguments);

 private:
  RealPostgres();
  void run(const std::string& command) const;  // as the user who owns the cluster
  std::string directory_;
  int port_ = 0;
};

// A frame that owns its bytes.
struct OwnedFrame {
  char type = 0;
  std::string body;
};

class BlockingPeer {
 public:
  explicit BlockingPeer(int port);                     // to 127.0.0.1
  BlockingPeer(int accepted_fd, SSL_CTX* server_tls);  // the server's end; TLS begins when start_tls() says so
  ~BlockingPeer();
  BlockingPeer(const BlockingPeer&) = delete;
  BlockingPeer& operator=(const BlockingPeer&) = delete;

  // The client's: SSLRequest and the handshake. The server's: the handshake alone.
  void start_tls();
  [[nodiscard]] std::string peer_certificate_der() const;

  void send(std::string_view bytes);
  std::optional<OwnedFrame> receive();  // nothing when the other end has closed
  std::optional<InitialPacketRead> receive_initial();

 private:
  bool fill();
  int fd_ = -1;
  SSL_CTX* context_ = nullptr;
  bool is_server_ = false;
  SSL* tls_ = nullptr;
  std::string in_;
};

struct Login {
  std::string user = "postgres";
  std::string password = {};
  std::string database = "postgres";
  bool tls = false;
  std::string encoding = "UTF8";
  std::optional<ScramKeys> keys = {};             // instead of the password
  std::optional<std::string> wrong_binding = {};  // instead of the certificate's
};
struct LoggedIn {
  std::unique_ptr<BlockingPeer> peer;
  std::string method;  // trust, password, md5 or the SASL mechanism
};
// The server's error when it refuses, or ours when we refuse the server.
Result<LoggedIn> log_in(int port, const Login& login);

// The first column of the first row, "" when there is none.
Result<std::string> ask(BlockingPeer& peer, std::string_view sql);

}  // namespace kintsugi::wire
