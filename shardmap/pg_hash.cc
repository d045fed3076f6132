#include "shardmap/pg_hash.h"

#include <cstring>

#include "base/invariant.h"
#include "shardmap/key_encoding.h"
#include "shardmap/key_payload.h"

namespace kintsugi::shardmap {
namespace {

// Bob Jenkins's lookup3 as PostgreSQL uses it (hash_bytes_extended), on a little-endian machine.
static_assert(std::endian::native == std::endian::little);

struct Mixer {
  std::uint32_t a, b, c;

  Mixer(std::size_t size, std::uint64_t seed) {
    a = b = c = 0x9e3779b9U + static_cast<std::uint32_t>(size) + 3923095U;
    if (seed != 0) {
      a += static_cast<std::uint32_t>(seed >> 32);
      b += static_cast<std::uint32_t>(seed);
      mix();
    }
  }
  void mix() {
    a -= c;
    a ^= std::rotl(c, 4);
    c += b;  // clang-format off
    b -= a; b ^= std::rotl(a, 6); a += c;
    c -= b; c ^= std::rotl(b, 8); b += a;
    a -= c; a ^= std::rotl(c, 16); c += b;
    b -= a; b ^= std::rotl(a, 19); a += c;
    c -= b; c ^= std::rotl(b, 4); b += a;  // clang-format on
  }
  std::uint64_t finish() {
    c ^= b;
    c -= std::rotl(b, 14);  // clang-format off
    a ^= c; a -= std::rotl(c, 11);
    b ^= a; b -= std::rotl(a, 25);
    c ^= b; c -= std::rotl(b, 16);
    a ^= c; a -= std::rotl(c, 4);
    b ^= a; b -= std::rotl(a, 14);
    c ^= b; c -= std::rotl(b, 24);  // clang-format on
    return (std::uint64_t{b} << 32) | c;
  }
};

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  Mixer mixer(bytes.size(), seed);
  const auto word = [](const char* at) {
    std::uint32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  while (bytes.size() >= 12) {
    mixer.a += word(bytes.data());
    mixer.b += word(bytes.data() + 4);
    mixer.c += word(bytes.data() + 8);
    mixer.mix();
    bytes.remove_prefix(12);
  }
  // The last block, padded with zeros; the lowest byte of c belongs to the length.
  char tail[12] = {};
  for (std::size_t i = 0; i < bytes.size(); ++i) tail[i < 8 ? i : i + 1] = bytes[i];
  mixer.a += word(tail);
  mixer.b += word(tail + 4);
  mixer.c += word(tail + 8);
  return mixer.finish();
}

std::uint64_t hash_word(std::uint32_t word, std::uint64_t seed) {
  Mixer mixer(sizeof word, seed);
  mixer.a += word;
  return mixer.finish();
}

// Folded so that equal numbers of different widths hash alike.
std::uint64_t hash_int64(std::int64_t value, std::uint64_t seed) {
  auto low = static_cast<std::uint32_t>(value);
  const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32);
  low ^= value >= 0 ? high : ~high;
  return hash_word(low, seed);
}

std::uint64_t hash_numeric(std::string_view payload, std::uint64_t seed) {
  const auto kind = static_cast<NumericValue::Class>(payload[0]);
  if (kind == NumericValue::Class::kZero) return seed - 1;
  const bool negative = kind == NumericValue::Class::kNegative;
  if (!negative && kind != NumericValue::Class::kPositive) return seed;
  const auto word = [payload, negative](std::size_t at) {
    const auto raw = static_cast<std::uint16_t>(get_be(payload.substr(at, 2)));
    return negative ? static_cast<std::uint16_t>(~raw) : raw;
  };
  const int weight = static_cast<std::int16_t>(static_cast<std::uint16_t>(word(1) ^ 0x8000U));
  // A payload is class, weight, digits, end: give the digits back their own value in this machine's order.
  const std::size_t count = (payload.size() - 5) / 2;
  std::uint16_t few[64];
  std::vector<std::uint16_t> many;
  std::uint16_t* digits = few;
  if (count > std::size(few)) {
    many.resize(count);
    digits = many.data();
  }
  for (std::size_t i = 0; i < count; ++i) digits[i] = static_cast<std::uint16_t>(word(3 + 2 * i) - 1);
  const std::uint64_t hash = hash_bytes({reinterpret_cast<const char*>(digits), 2 * count}, seed);
  return hash ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(weight));
}

std::uint64_t hash_payload(KeyType type, std::string_view payload, std::uint64_t seed) {
  switch (type) {
    case KeyType::kSmallint:
    case KeyType::kInt:
    case KeyType::kDate: return hash_word(static_cast<std::uint32_t>(get_signed(payload)), seed);
    case KeyType::kBigint:
    case KeyType::kTimestamp:
    case KeyType::kTimestamptz: return hash_int64(get_signed(payload), seed);
    case KeyType::kNumeric: return hash_numeric(payload, seed);
    case KeyType::kUuid: return hash_bytes(payload, seed);
    case KeyType::kText: return hash_bytes(payload.substr(0, payload.size() - 1), seed);
    case KeyType::kBytea: return hash_bytes(unescape_bytea(payload), seed);
    case KeyType::kBoolean: return hash_word(static_cast<std::uint32_t>(payload[0]), seed);
  }
  return 0;
}

}  // namespace

std::int64_t hash_of_key(const KeyTypes& types, std::string_view key, std::uint64_t seed) {
  std::uint64_t hash = 0;
  for (KeyType type : types) {
    INVARIANT(!key.empty() && key[0] == key_tag::kValue, "only a key made of values is hashed");
    key.remove_prefix(1);
    const auto payload = take_payload(type, key);
    INVARIANT(payload.has_value(), "a key that is hashed was encoded here");
    hash = (hash << 5) - hash + hash_payload(type, *payload, seed);
  }
  return static_cast<std::int64_t>(hash);
}

std::string hash_expression(const std::vector<std::string>& columns) {
  std::string out = "hash_record_extended(ROW(";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) out += ", ";
    out += columns[i];
  }
  return out + "), " + std::to_string(static_cast<std::int64_t>(kHashSeed)) + ")";
}

}  // namespace kintsugi::shardmap
