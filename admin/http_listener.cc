#include "admin/http_listener.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include "admin/peer_stream.h"

namespace kintsugi::admin {
namespace {

using namespace std::chrono_literals;

constexpr int kBacklog = 512;
// Between two requests of a connection. Longer than browsers and scrapers take to come again: who asks just
// when we close has an error to show, and who sits here idle gives way to others anyway.
constexpr std::chrono::seconds kIdle = 75s;
constexpr int kRequestsMax = 1000;  // of one connection

struct Door final : httplib::TaskQueue {
  explicit Door(Guests& its) : guests(its) {}
  void enqueue(std::function<void()> serve) override { guests.enqueue(std::move(serve)); }
  void shutdown() override { guests.shutdown(); }
  Guests& guests;
};

}  // namespace

HttpListener::HttpListener(std::size_t guests_max, std::unique_ptr<RestCertificate> certificate)
    : certificate_(std::move(certificate)), tls_(nullptr, SSL_CTX_free), guests_(guests_max) {
  if (certificate_ != nullptr) {
    tls_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    certificate_->set_up(*tls_);
  }
  new_task_queue = [this] { return new Door(guests_); };
  set_tcp_nodelay(true);
  set_keep_alive_timeout(kIdle.count());  // what answers say of it
  set_keep_alive_max_count(kRequestsMax);
  // Without SO_REUSEPORT, which would let a second router take the same address.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

int HttpListener::bind(const std::string& host, int port) {
  const int bound = port == 0 ? bind_to_any_port(host) : (bind_to_port(host, port) ? port : -1);
  if (bound > 0) ::listen(svr_sock_, kBacklog);  // httplib's own is 5
  return bound;
}

bool HttpListener::process_and_close_socket(socket_t socket) {
  PeerStream stream(io::UniqueFd(socket), tls_.get());
  const Guests::Stay stay(guests_, stream);
  bool good = stream.shake_hands(), last = false;
  for (int left = kRequestsMax; good && !last && left > 0 && Guests::wants_another(); --left) {
    if (!stream.next_request(kIdle)) break;
    good = process_request(stream, left == 1, last, nullptr);
  }
  stream.say_goodbye();
  return good;
}

}  // namespace kintsugi::admin
