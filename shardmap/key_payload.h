// The payload of one value inside an encoded key, a type at a time. Private to shardmap/.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "shardmap/key_type.h"

namespace kintsugi::shardmap {

inline void put_be(std::uint64_t value, int bytes, std::string& out) {
  char text[8];
  for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(value >> (8 * (7 - i)));
  out.append(text + 8 - bytes, static_cast<std::size_t>(bytes));  // at once: keys are made for each statement
}
inline std::uint64_t get_be(std::string_view bytes) {
  std::uint64_t value = 0;
  for (unsigned char c : bytes) value = (value << 8) | c;
  return value;
}

// Integers: big-endian with the sign bit turned over.
inline void put_signed(std::int64_t value, int bytes, std::string& out) {
  put_be(static_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << (8 * bytes - 1)), bytes, out);
}
inline std::int64_t get_signed(std::string_view bytes) {
  const int unused = 64 - 8 * static_cast<int>(bytes.size());
  const std::uint64_t turned = get_be(bytes) ^ (std::uint64_t{1} << (8 * bytes.size() - 1));
  return static_cast<std::int64_t>(turned << unused) >> unused;
}

// A numeric in PostgreSQL's own terms: base-10000 digits without zeros at either end, the first worth
// 10000^weight.
struct NumericValue {
  enum class Class : std::uint8_t { kMinusInfinity = 1, kNegative, kZero, kPositive, kInfinity, kNaN };
  Class kind = Class::kZero;
  int weight = 0;
  std::vector<std::uint16_t> digits;
};

Result<NumericValue> numeric_from_text(std::string_view text);
Result<NumericValue> numeric_from_binary(std::string_view bytes);
NumericValue numeric_from_integer(std::int64_t value);
// The integer that it is, if it is one and fits.
std::optional<std::int64_t> numeric_to_integer(const NumericValue& value);
std::string numeric_to_text(const NumericValue& value);
void put_numeric(const NumericValue& value, std::string& out);
// Takes the payload off the front of `bytes`; nothing when it is damaged.
std::optional<NumericValue> take_numeric(std::string_view& bytes);

// Days and microseconds since 2000-01-01, with PostgreSQL's two infinities at the ends of the integer's range.
Result<std::int32_t> date_from_text(std::string_view text);
Result<std::int64_t> timestamp_from_text(std::string_view text, bool with_zone);
std::string date_to_text(std::int32_t days);
std::string timestamp_to_text(std::int64_t microseconds, bool with_zone);
bool date_in_range(std::int32_t days);
bool timestamp_in_range(std::int64_t microseconds);

// The number of bytes a type's payload always has; 0 when it varies.
int fixed_payload_bytes(KeyType type);

// Takes one column's payload (without the tag) off the front of `bytes`; nothing when it is damaged.
std::optional<std::string_view> take_payload(KeyType type, std::string_view& bytes);
// The bytes of a bytea payload.
std::string unescape_bytea(std::string_view payload);

std::string_view trim_spaces(std::string_view text);
// As PostgreSQL takes it: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace kintsugi::shardmap
