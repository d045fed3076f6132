#include <openssl/evp.h>

#include "wire/scram.h"

namespace kintsugi::wire {

namespace {
std::string md5_hex(std::string_view data) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(data.data(), data.size(), digest, &size, EVP_md5(), nullptr) != 1) return {};
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex.push_back(kDigits[digest[i] >> 4]);
    hex.push_back(kDigits[digest[i] & 15]);
  }
  return hex;
}
}  // namespace

std::string md5_response(std::string_view user, std::string_view password, std::string_view salt) {
  std::string text;
  text.reserve(password.size() + user.size());  // so that no half of it stays behind in an outgrown buffer
  text.append(password).append(user);
  Secret both(std::move(text));
  std::string inner = md5_hex(both.reveal());
  if (inner.empty()) return {};
  return "md5" + md5_hex(inner.append(salt));
}

}  // namespace kintsugi::wire
