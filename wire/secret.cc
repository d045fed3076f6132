#include "wire/secret.h"

#include <openssl/crypto.h>

namespace kintsugi::wire {

void Secret::wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // no further than what is there, so it never allocates
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

}  // namespace kintsugi::wire
