// The bearer token of a router: a file that only its owner may read, made when it is not there. Used at the
// start, by one thread.
#pragma once

#include <string>

#include "base/error.h"

namespace kintsugi::admin {

// The token in the file; made with 256 random bits when there is no such file. 58000 when it cannot be written,
// or may be read by others.
Result<std::string> read_or_make_token(const std::string& path);

// Takes as long for a wrong token as for the right one.
[[nodiscard]] bool same_token(const std::string& a, const std::string& b);

}  // namespace kintsugi::admin
