#include "wire/saslprep.h"

#include <openssl/crypto.h>
#include <unicode/usprep.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace kintsugi::wire {

namespace {
// UTF-16, ICU's tongue, wiped like the secret it is.
struct Utf16 {
  std::vector<UChar> units;
  explicit Utf16(std::size_t size) : units(size) {}
  Utf16(const Utf16&) = delete;
  Utf16& operator=(const Utf16&) = delete;
  ~Utf16() { OPENSSL_cleanse(units.data(), units.size() * sizeof(UChar)); }
  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(units.size()); }
};

struct CloseProfile {
  void operator()(UStringPrepProfile* profile) const { usprep_close(profile); }
};

// Nothing grows by more than this under NFKC: one unit becomes at most 18.
constexpr std::size_t kGrowth = 18;
// PostgreSQL has no bound; a longer password than this is hashed as it is rather than multiplied in memory.
constexpr std::size_t kLongest = 64 * 1024;
}  // namespace

Secret saslprep(std::string_view password) {
  Secret raw(password);
  bool ascii =
      std::all_of(password.begin(), password.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
  if (ascii || password.size() > kLongest) return raw;

  UErrorCode status = U_ZERO_ERROR;
  Utf16 source(password.size()), prepared(password.size() * kGrowth);
  std::int32_t source_size = 0, prepared_size = 0;
  u_strFromUTF8(source.units.data(), source.size(), &source_size, password.data(),
                static_cast<std::int32_t>(password.size()), &status);
  std::unique_ptr<UStringPrepProfile, CloseProfile> profile(
      usprep_openByType(USPREP_RFC4013_SASLPREP, &status));
  if (U_FAILURE(status)) return raw;
  prepared_size = usprep_prepare(profile.get(), source.units.data(), source_size, prepared.units.data(),
                                 prepared.size(), USPREP_DEFAULT, nullptr, &status);
  if (U_FAILURE(status) || prepared_size == 0) return raw;

  std::string utf8(static_cast<std::size_t>(prepared_size) * 3, '\0');
  std::int32_t utf8_size = 0;
  u_strToUTF8(utf8.data(), static_cast<std::int32_t>(utf8.size()), &utf8_size, prepared.units.data(),
              prepared_size, &status);
  if (U_FAILURE(status)) return raw;
  utf8.resize(static_cast<std::size_t>(utf8_size));
  return Secret(std::move(utf8));
}

}  // namespace kintsugi::wire
