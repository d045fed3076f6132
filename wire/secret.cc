#include "wire/secret.h"

#include <openssl/crypto.h>

namespace kintsugi::wire {

void Secret::wipe(std::string& text) {
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

}  // namespace kintsugi::wire
