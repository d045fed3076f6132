// Values whose text PostgreSQL writes as the session's settings say, with fewer digits (extra_float_digits) or
// a zone that reads as another (DateStyle): asked for in binary, they get a text that every session reads as
// the same value. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::executor {

// real, double precision, timestamptz and arrays of them, by pg_type OID. All other types may be asked for as
// text.
[[nodiscard]] bool needs_exact_text(std::uint32_t type);

// Of a value in binary; nothing when it is not of that type.
[[nodiscard]] std::optional<std::string> exact_text(std::uint32_t type, std::string_view binary);

}  // namespace kintsugi::executor
