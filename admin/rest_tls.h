// The certificate of the admin listener, which can be exchanged while it serves. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"

struct ssl_ctx_st;
struct ssl_st;

namespace kintsugi::admin {

class RestCertificate {
 public:
  RestCertificate(std::string certificate, std::string key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}
  // 22023 with what is wrong; what was loaded before stays.
  Status load();
  // Each handshake of this context has the certificate that was loaded last.
  bool set_up(ssl_ctx_st& context);

 private:
  static int choose(ssl_st* connection, void* self);
  std::string certificate_, key_;
  std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> loaded_;
};

}  // namespace kintsugi::admin
