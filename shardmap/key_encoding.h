// Keys as bytes: comparing two encoded keys with memcmp is comparing the keys as PostgreSQL does (text under
// "C").
//
// A key is its columns one after the other. A column is one tag byte (MINVALUE, a value, MAXVALUE) and, for a
// value, a payload that is prefix-free, so that a tuple compares column by column.
// docs/decisions/0030-shard-map.md has the payload of each type. Appending allocates nothing when `key` has the
// room (numeric excepted); any thread may call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "shardmap/key_type.h"

namespace kintsugi::shardmap {

// One column of a bound, as a person writes it: a value in PostgreSQL's text form, MINVALUE or MAXVALUE.
struct BoundColumn {
  enum class Kind : std::uint8_t { kMin, kValue, kMax };
  Kind kind = Kind::kValue;
  std::string text;

  static BoundColumn value(std::string text_form) { return {Kind::kValue, std::move(text_form)}; }
  static BoundColumn min() { return {Kind::kMin, {}}; }
  static BoundColumn max() { return {Kind::kMax, {}}; }
  friend bool operator==(const BoundColumn&, const BoundColumn&) = default;
};
// One a key column.
using Bound = std::vector<BoundColumn>;

// Each of these appends one column to `key`; when it fails, `key` is as it was.
//
// From PostgreSQL's text form of the type. 22P02 when it is not one, 22003 or 22008 when out of range, 0A000
// when the form depends on the session (a timestamptz without its offset, 'now') or is not read here.
Status append_text(KeyType type, std::string_view text, std::string& key);
// From the binary form of a value of type `oid` (0: of `type` itself). The integer types and numeric may stand
// for each other where the value is the same. 22P03 for bytes that are not such a value.
Status append_binary(KeyType type, std::uint32_t oid, std::string_view bytes, std::string& key);
void append_bigint(std::int64_t value, std::string& key);
void append_min(std::string& key);
void append_max(std::string& key);

// A whole key or bound from text, column by column. MINVALUE and MAXVALUE are as in PostgreSQL's partition
// bounds: what follows one of them must be the same again.
Result<std::string> encode_bound(const KeyTypes& types, const Bound& bound);
// A key has no MINVALUE or MAXVALUE.
Result<std::string> encode_key(const KeyTypes& types, const std::vector<std::string>& texts);

// Back to PostgreSQL's text form (dates ISO, timestamptz in UTC, bytea hex, numeric without trailing zeros).
// XX001 for bytes that are no such key.
Result<Bound> decode_bound(const KeyTypes& types, std::string_view key);

// "(1000, MINVALUE)" for messages, SHOW and logs; values of text-like types in single quotes.
[[nodiscard]] std::string describe_key(const KeyTypes& types, std::string_view key);

namespace key_tag {
inline constexpr char kMin = 0;
inline constexpr char kValue = 1;
inline constexpr char kMax = 2;
}  // namespace key_tag

}  // namespace kintsugi::shardmap
