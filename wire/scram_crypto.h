// The handful of functions that SCRAM is made of, over OpenSSL. Within wire/ only. All strings are raw bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "wire/secret.h"

namespace kintsugi::wire::scram {

inline constexpr std::size_t kKeyBytes = 32;
// Longer messages than PostgreSQL takes are no SCRAM: its server's bound is 1024, its client's 2000.
inline constexpr std::size_t kMaxClientMessage = 1024, kMaxServerMessage = 2000;

[[nodiscard]] std::string sha256(std::string_view data);
[[nodiscard]] std::string hmac(std::string_view key, std::string_view data);
// RFC 5802's Hi(): PBKDF2.
[[nodiscard]] Secret salted_password(std::string_view password, std::string_view salt,
                                     std::uint32_t iterations);
[[nodiscard]] std::string exclusive_or(std::string_view a, std::string_view b);  // of equal lengths
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b);
[[nodiscard]] std::string random_bytes(std::size_t n);
[[nodiscard]] std::string fresh_nonce();  // 18 random bytes in base64, as PostgreSQL
[[nodiscard]] std::string base64(std::string_view raw);
// Strict: the one spelling that base64() gives, or nothing.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

// "a=value,b=value,...": the attributes of a SCRAM message, in their order.
class Attributes {
 public:
  explicit Attributes(std::string_view message) : rest_(message) {}

  // The value of the next attribute, which has to be `name`.
  Result<std::string_view> next(char name);
  // The next attribute, whichever it is.
  struct Any {
    char name;
    std::string_view value;
  };
  Result<Any> any();
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] const char* position() const { return rest_.data(); }

 private:
  std::string_view rest_;
};

// 08P01 "malformed SCRAM message" with the circumstances.
[[nodiscard]] tl::unexpected<Error> malformed(std::string detail);
[[nodiscard]] bool is_printable_nonce(std::string_view nonce);

inline constexpr std::string_view kEndPointHeader = "p=tls-server-end-point,,";
// What the c= attribute of the client's last message has to be.
[[nodiscard]] std::string channel_binding_attribute(std::string_view gs2_header, std::string_view binding);

}  // namespace kintsugi::wire::scram
