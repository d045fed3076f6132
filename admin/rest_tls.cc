#include "admin/rest_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace kintsugi::admin {

Status RestCertificate::load() {
  std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  ERR_clear_error();
  const bool good = made != nullptr &&
                    SSL_CTX_use_certificate_chain_file(made.get(), certificate_.c_str()) == 1 &&
                    SSL_CTX_use_PrivateKey_file(made.get(), key_.c_str(), SSL_FILETYPE_PEM) == 1 &&
                    SSL_CTX_check_private_key(made.get()) == 1;
  if (!good) {
    char text[256] = "they do not fit";
    if (const unsigned long error = ERR_get_error(); error != 0) ERR_error_string_n(error, text, sizeof text);
    return fail(sqlstate::kInvalidParameter,
                "cannot use admin.tls_cert " + certificate_ + " and admin.tls_key " + key_ + ": " + text);
  }
  const std::lock_guard lock(mutex_);
  loaded_ = std::move(made);
  return {};
}

bool RestCertificate::set_up(ssl_ctx_st& context) {
  SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
  SSL_CTX_set_cert_cb(&context, choose, this);
  return true;
}

int RestCertificate::choose(ssl_st* connection, void* self) {
  auto& mine = *static_cast<RestCertificate*>(self);
  std::shared_ptr<SSL_CTX> loaded;
  {
    const std::lock_guard lock(mine.mutex_);
    loaded = mine.loaded_;
  }
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(loaded.get(), &chain);
  return SSL_use_cert_and_key(connection, SSL_CTX_get0_certificate(loaded.get()),
                              SSL_CTX_get0_privatekey(loaded.get()), chain, 1);
}

}  // namespace kintsugi::admin
