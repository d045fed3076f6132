#include "wire/scram_crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>

#include "base/invariant.h"

namespace kintsugi::wire::scram {

namespace {
const unsigned char* unsigned_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* unsigned_bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}
}  // namespace

std::string sha256(std::string_view data) {
  std::string digest(kKeyBytes, '\0');
  SHA256(unsigned_bytes(data), data.size(), unsigned_bytes(digest));
  return digest;
}

std::string hmac(std::string_view key, std::string_view data) {
  std::string mac(kKeyBytes, '\0');
  unsigned size = 0;
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), unsigned_bytes(data),
                                   data.size(), unsigned_bytes(mac), &size);
  INVARIANT(done && size == kKeyBytes, "OpenSSL has HMAC-SHA-256");
  return mac;
}

Secret salted_password(std::string_view password, std::string_view salt, std::uint32_t iterations) {
  std::string key(kKeyBytes, '\0');
  int done = PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()), unsigned_bytes(salt),
                               static_cast<int>(salt.size()), static_cast<int>(iterations), EVP_sha256(),
                               kKeyBytes, unsigned_bytes(key));
  INVARIANT(done == 1, "OpenSSL has PBKDF2 with SHA-256");
  return Secret(std::move(key));
}

std::string exclusive_or(std::string_view a, std::string_view b) {
  INVARIANT(a.size() == b.size(), "keys of one size are combined");
  std::string out(a);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(out[i] ^ b[i]);
  return out;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t n) {
  std::string bytes(n, '\0');
  INVARIANT(RAND_bytes(unsigned_bytes(bytes), static_cast<int>(n)) == 1, "the system gives random bytes");
  return bytes;
}

std::string fresh_nonce() {
  return base64(random_bytes(18));
}

std::string base64(std::string_view raw) {
  std::string text((raw.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock adds a zero
  int size = EVP_EncodeBlock(unsigned_bytes(text), unsigned_bytes(raw), static_cast<int>(raw.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string raw(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(unsigned_bytes(raw), unsigned_bytes(text), static_cast<int>(text.size())) < 0)
    return std::nullopt;
  std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  for (; padding > 0; --padding) raw.pop_back();
  // OpenSSL forgives white space and stray bits; nothing that we compare may have two spellings.
  if (base64(raw) != text) return std::nullopt;
  return raw;
}

tl::unexpected<Error> malformed(std::string detail) {
  return fail(sqlstate::kProtocolViolation, "malformed SCRAM message", {}, std::move(detail));
}

Result<Attributes::Any> Attributes::any() {
  if (rest_.empty()) return malformed("Attribute expected, but found end of string.");
  char name = rest_[0];
  if (!((name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z')))
    return malformed("Attribute expected, but found an invalid character.");
  if (rest_.size() < 2 || rest_[1] != '=') return malformed("Expected character \"=\" for an attribute.");
  std::size_t end = std::min(rest_.find(','), rest_.size());
  Any attribute{name, rest_.substr(2, end - 2)};
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  return attribute;
}

Result<std::string_view> Attributes::next(char name) {
  KG_TRY(auto attribute, any());
  if (attribute.name != name)
    return malformed(std::string("Expected attribute \"") + name + "\" but found \"" + attribute.name + "\".");
  return attribute.value;
}

bool is_printable_nonce(std::string_view nonce) {
  return !nonce.empty() &&
         std::all_of(nonce.begin(), nonce.end(), [](char c) { return c >= 0x21 && c <= 0x7e && c != ','; });
}

std::string channel_binding_attribute(std::string_view gs2_header, std::string_view binding) {
  std::string data(gs2_header);
  if (gs2_header == kEndPointHeader) data.append(binding);
  return base64(data);
}

}  // namespace kintsugi::wire::scram
