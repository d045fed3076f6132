// httplib's server with connections of our own: it parses requests and writes answers, and who may be how slow,
// and who has to go when too many are there, is for PeerStream and Guests. Started and ended by one thread.
#pragma once

#include <httplib.h>

#include <memory>
#include <string>

#include "admin/guests.h"
#include "admin/rest_tls.h"
#include "base/error.h"

namespace kintsugi::admin {

class HttpListener final : public httplib::Server {
 public:
  // At most so many connections at once. `certificate` null: no TLS.
  HttpListener(std::size_t guests_max, std::unique_ptr<RestCertificate> certificate);

  // Port 0 takes a free one; the port, or -1.
  int bind(const std::string& host, int port);
  [[nodiscard]] RestCertificate* certificate() { return certificate_.get(); }

 private:
  bool process_and_close_socket(socket_t socket) override;

  std::unique_ptr<RestCertificate> certificate_;
  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> tls_;
  Guests guests_;
};

}  // namespace kintsugi::admin
