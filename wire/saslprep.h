// SASLprep (RFC 4013), as PostgreSQL prepares passwords for SCRAM.
#pragma once

#include <string_view>

#include "wire/secret.h"

namespace kintsugi::wire {

// The password as both sides hash it. ASCII passes as it is, and so does, like in PostgreSQL, everything that
// SASLprep refuses: bytes that are not UTF-8, prohibited or (in Unicode 3.2) unassigned characters, mixed
// directions, a password that is nothing but characters that are mapped to nothing.
//
// One difference is known: ICU normalises by Unicode 3.2, as the RFC says, PostgreSQL by the Unicode version it
// was built with. They part only for the five compatibility ideographs whose decomposition Unicode 4.0
// corrected (U+2F868, U+2F874, U+2F91F, U+2F95F, U+2F9BF).
[[nodiscard]] Secret saslprep(std::string_view password);

}  // namespace kintsugi::wire
