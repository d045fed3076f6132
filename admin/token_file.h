// The bearer token of a router: a file that only its owner may read, made when it is not there. Used at the
// start, by one thread.
#pragma once

#include <string>

#include "base/error.h"

namespace kintsugi::admin {

// What the file holds: a token, or "sha256:" and the SHA-256 of one. A token is made with 256 random bits when
// there is no such file. 58000 when it cannot be written, or may be read by others.
Result<std::string> read_or_make_token(const std::string& path);

[[nodiscard]] std::string random_token();                           // 256 bits, hex
[[nodiscard]] std::string hash_of_token(const std::string& token);  // SHA-256, hex

// Whether `given` is the token that the file holds, itself or as its hash.
[[nodiscard]] bool is_token(const std::string& given, const std::string& held);

// Takes as long for a wrong token as for the right one.
[[nodiscard]] bool same_token(const std::string& a, const std::string& b);

}  // namespace kintsugi::admin
