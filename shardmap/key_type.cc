#include "shardmap/key_type.h"

#include <array>

namespace kintsugi::shardmap {
namespace {

struct TypeFacts {
  KeyType type;
  std::string_view name;
  std::uint32_t oid;
  std::array<std::string_view, 3> aliases;
};

constexpr std::array kTypes = {
    TypeFacts{KeyType::kSmallint, "smallint", 21, {"int2", "", ""}},
    TypeFacts{KeyType::kInt, "integer", 23, {"int", "int4", ""}},
    TypeFacts{KeyType::kBigint, "bigint", 20, {"int8", "", ""}},
    TypeFacts{KeyType::kNumeric, "numeric", 1700, {"decimal", "", ""}},
    TypeFacts{KeyType::kUuid, "uuid", 2950, {"", "", ""}},
    TypeFacts{KeyType::kText, "text", 25, {"varchar", "character varying", ""}},
    TypeFacts{KeyType::kBytea, "bytea", 17, {"", "", ""}},
    TypeFacts{KeyType::kDate, "date", 1082, {"", "", ""}},
    TypeFacts{KeyType::kTimestamp, "timestamp without time zone", 1114, {"timestamp", "", ""}},
    TypeFacts{KeyType::kTimestamptz, "timestamp with time zone", 1184, {"timestamptz", "", ""}},
    TypeFacts{KeyType::kBoolean, "boolean", 16, {"bool", "", ""}},
};
constexpr std::uint32_t kVarcharOid = 1043;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

std::string_view name_of(KeyType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

std::uint32_t oid_of(KeyType type) {
  return kTypes[static_cast<std::size_t>(type)].oid;
}

Result<KeyType> key_type_named(std::string_view name) {
  const std::string wanted = lower(name);
  for (const TypeFacts& facts : kTypes) {
    if (wanted == facts.name) return facts.type;
    for (std::string_view alias : facts.aliases) {
      if (!alias.empty() && wanted == alias) return facts.type;
    }
  }
  return fail(sqlstate::kUndefinedObject, "type \"" + std::string(name) + "\" cannot be a sharding key",
              "A key is smallint, integer, bigint, numeric, uuid, text, varchar, bytea, date, timestamp, "
              "timestamptz or, in a LIST map, boolean.");
}

std::optional<KeyType> key_type_of_oid(std::uint32_t oid) {
  if (oid == kVarcharOid) return KeyType::kText;
  for (const TypeFacts& facts : kTypes) {
    if (facts.oid == oid) return facts.type;
  }
  return std::nullopt;
}

std::string list_of(const KeyTypes& types) {
  std::string out;
  for (KeyType type : types) {
    if (!out.empty()) out += ", ";
    out += name_of(type);
  }
  return out;
}

}  // namespace kintsugi::shardmap
