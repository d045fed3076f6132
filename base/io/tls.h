// TLS contexts over OpenSSL 3. Immutable once made and shared by all threads; a reload makes a new one.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"

struct ssl_ctx_st;

namespace kintsugi::io {

class TlsContext {
 public:
  // For the listener. The files are PEM; the certificate file may hold a chain.
  static Result<std::shared_ptr<const TlsContext>> server(const std::string& cert_file,
                                                          const std::string& key_file);

  struct ClientOptions {
    bool verify_chain = false;   // sslmode verify-ca, verify-full
    std::string root_cert_file;  // empty: the system's
    std::string cert_file, key_file;
  };
  static Result<std::shared_ptr<const TlsContext>> client(const ClientOptions& options);

  ~TlsContext();
  [[nodiscard]] ssl_ctx_st* native() const { return context_; }
  // The server's own certificate in DER, for channel binding; empty for clients.
  [[nodiscard]] const std::string& certificate_der() const { return certificate_der_; }

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
  std::string certificate_der_;
};

}  // namespace kintsugi::io
