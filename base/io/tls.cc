#include "base/io/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace kintsugi::io {
namespace {

std::string openssl_error() {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

std::string to_der(X509* certificate) {
  unsigned char* bytes = nullptr;
  int size = i2d_X509(certificate, &bytes);
  if (size <= 0) return {};
  std::string der(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

void set_common(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(
      context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

Status load_pair(SSL_CTX* context, const std::string& cert_file, const std::string& key_file) {
  if (SSL_CTX_use_certificate_chain_file(context, cert_file.c_str()) != 1) {
    return fail(sqlstate::kInvalidParameter,
                "cannot use the TLS certificate " + cert_file + ": " + openssl_error(),
                "It must be a readable PEM file with the certificate first and its chain behind it.");
  }
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fail(sqlstate::kInvalidParameter, "cannot use the TLS key " + key_file + ": " + openssl_error(),
                "It must be a readable PEM file without a passphrase.");
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return fail(sqlstate::kInvalidParameter,
                "the TLS key " + key_file + " does not belong to " + cert_file + ": " + openssl_error());
  }
  return {};
}

}  // namespace

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::server(const std::string& cert_file,
                                                             const std::string& key_file) {
  std::shared_ptr<TlsContext> made(new TlsContext(SSL_CTX_new(TLS_server_method())));
  set_common(made->context_);
  // PostgreSQL does not resume sessions either: a ticket would only cost bytes.
  SSL_CTX_set_session_cache_mode(made->context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(made->context_, SSL_OP_NO_TICKET);
  KG_CHECK(load_pair(made->context_, cert_file, key_file));
  made->certificate_der_ = to_der(SSL_CTX_get0_certificate(made->context_));
  return std::shared_ptr<const TlsContext>(made);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::client(const ClientOptions& options) {
  std::shared_ptr<TlsContext> made(new TlsContext(SSL_CTX_new(TLS_client_method())));
  set_common(made->context_);
  if (options.verify_chain) {
    const int loaded =
        options.root_cert_file.empty()
            ? SSL_CTX_set_default_verify_paths(made->context_)
            : SSL_CTX_load_verify_locations(made->context_, options.root_cert_file.c_str(), nullptr);
    if (loaded != 1) {
      return fail(sqlstate::kInvalidParameter,
                  "cannot use the root certificates " + options.root_cert_file + ": " + openssl_error(),
                  "sslrootcert must name a readable PEM file.");
    }
    SSL_CTX_set_verify(made->context_, SSL_VERIFY_PEER, nullptr);
  }
  if (!options.cert_file.empty()) KG_CHECK(load_pair(made->context_, options.cert_file, options.key_file));
  return std::shared_ptr<const TlsContext>(made);
}

}  // namespace kintsugi::io
