// The types a sharding key may have. Pure values; any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kintsugi::shardmap {

enum class KeyType : std::uint8_t {
  kSmallint,
  kInt,
  kBigint,
  kNumeric,
  kUuid,
  kText,  // varchar too: the same comparison, the same hash
  kBytea,
  kDate,
  kTimestamp,
  kTimestamptz,
  kBoolean,  // in LIST maps only
};

// The types of a key, one a column: most keys have one, a tuple has several.
using KeyTypes = std::vector<KeyType>;

inline constexpr std::size_t kKeyColumnsMax = 16;

// PostgreSQL's name: "bigint", "timestamp with time zone".
[[nodiscard]] std::string_view name_of(KeyType type);

// Knows PostgreSQL's names and their usual aliases, in any case. 42704 for a type that cannot be a key.
Result<KeyType> key_type_named(std::string_view name);

// The OIDs that PostgreSQL gives these types, for parameters; varchar's reads as text.
[[nodiscard]] std::optional<KeyType> key_type_of_oid(std::uint32_t oid);
[[nodiscard]] std::uint32_t oid_of(KeyType type);

// "bigint, text"
[[nodiscard]] std::string list_of(const KeyTypes& types);

}  // namespace kintsugi::shardmap
