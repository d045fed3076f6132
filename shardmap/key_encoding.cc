#include "shardmap/key_encoding.h"

#include <limits>

#include "shardmap/key_payload.h"

namespace kintsugi::shardmap {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

tl::unexpected<Error> invalid_text(KeyType type, std::string_view text) {
  return fail("22P02", "invalid input syntax for type " + std::string(name_of(type)) + ": \"" +
                           std::string(text) + "\"");
}
tl::unexpected<Error> out_of_range(KeyType type, std::string_view text) {
  return fail("22003",
              "value \"" + std::string(text) + "\" is out of range for type " + std::string(name_of(type)));
}
tl::unexpected<Error> damaged_binary(KeyType type) {
  return fail("22P03", "incorrect binary form of a " + std::string(name_of(type)));
}

bool fits(KeyType type, std::int64_t value) {
  switch (type) {
    case KeyType::kSmallint: return value >= INT16_MIN && value <= INT16_MAX;
    case KeyType::kInt: return value >= INT32_MIN && value <= INT32_MAX;
    default: return true;
  }
}

bool is_integer(KeyType type) {
  return type == KeyType::kSmallint || type == KeyType::kInt || type == KeyType::kBigint;
}

int integer_bytes(KeyType type) {
  switch (type) {
    case KeyType::kSmallint: return 2;
    case KeyType::kInt: return 4;
    default: return 8;
  }
}

Result<std::int64_t> integer_from_text(KeyType type, std::string_view whole) {
  std::string_view text = trim_spaces(whole);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return invalid_text(type, whole);
  std::int64_t value = 0;
  bool overflow = false;
  for (char c : text) {
    if (!is_digit(c)) return invalid_text(type, whole);
    const std::int64_t digit = negative ? '0' - c : c - '0';
    overflow |= __builtin_mul_overflow(value, std::int64_t{10}, &value);
    overflow |= __builtin_add_overflow(value, digit, &value);
  }
  if (overflow || !fits(type, value)) return out_of_range(type, whole);
  return value;
}

Result<bool> boolean_from_text(std::string_view whole) {
  const std::string_view text = trim_spaces(whole);
  const auto starts = [text](std::string_view word, std::size_t least) {
    if (text.size() < least || text.size() > word.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
      if (c != word[i]) return false;
    }
    return true;
  };
  if (starts("true", 1) || starts("yes", 1) || starts("on", 2) || text == "1") return true;
  if (starts("false", 1) || starts("no", 1) || starts("off", 2) || text == "0") return false;
  return invalid_text(KeyType::kBoolean, whole);
}

// As PostgreSQL reads one: either case, braces, and a hyphen after any group of four.
bool put_uuid_text(std::string_view text, std::string& out) {
  const bool braces = !text.empty() && text[0] == '{';
  if (braces) text.remove_prefix(1);
  for (int i = 0; i < 16; ++i) {
    if (text.size() < 2) return false;
    const int high = hex_value(text[0]);
    const int low = hex_value(text[1]);
    if (high < 0 || low < 0) return false;
    out += static_cast<char>(high * 16 + low);
    text.remove_prefix(2);
    if (i % 2 == 1 && i < 15 && !text.empty() && text[0] == '-') text.remove_prefix(1);
  }
  if (braces && text.size() == 1 && text[0] == '}')
    text.remove_prefix(1);
  else if (braces)
    return false;
  return text.empty();
}

// A zero byte becomes 00 FF and the end is 00 00, so that an end sorts before any longer value.
void put_bytea_byte(char byte, std::string& out) {
  out += byte;
  if (byte == '\0') out += '\xff';
}
void put_bytea_end(std::string& out) {
  out.append(2, '\0');
}

bool put_bytea_text(std::string_view text, std::string& out) {
  if (text.starts_with("\\x")) {
    text.remove_prefix(2);
    while (!text.empty()) {
      if (text[0] == ' ' || text[0] == '\n' || text[0] == '\t' || text[0] == '\r') {
        text.remove_prefix(1);
        continue;
      }
      if (text.size() < 2 || hex_value(text[0]) < 0 || hex_value(text[1]) < 0) return false;
      put_bytea_byte(static_cast<char>(hex_value(text[0]) * 16 + hex_value(text[1])), out);
      text.remove_prefix(2);
    }
    put_bytea_end(out);
    return true;
  }
  const auto octal = [](char c, char most) { return c >= '0' && c <= most; };
  while (!text.empty()) {
    if (text[0] != '\\') {
      put_bytea_byte(text[0], out);
      text.remove_prefix(1);
    } else if (text.size() >= 2 && text[1] == '\\') {
      put_bytea_byte('\\', out);
      text.remove_prefix(2);
    } else if (text.size() >= 4 && octal(text[1], '3') && octal(text[2], '7') && octal(text[3], '7')) {
      put_bytea_byte(static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0')), out);
      text.remove_prefix(4);
    } else {
      return false;
    }
  }
  put_bytea_end(out);
  return true;
}

Status put_text_payload(KeyType type, std::string_view text, std::string& out) {
  switch (type) {
    case KeyType::kSmallint:
    case KeyType::kInt:
    case KeyType::kBigint: {
      KG_TRY(const std::int64_t value, integer_from_text(type, text));
      put_signed(value, integer_bytes(type), out);
      return {};
    }
    case KeyType::kNumeric: {
      KG_TRY(const NumericValue value, numeric_from_text(text));
      put_numeric(value, out);
      return {};
    }
    case KeyType::kUuid:
      if (!put_uuid_text(text, out)) return invalid_text(type, text);
      return {};
    case KeyType::kText:
      if (text.find('\0') != std::string_view::npos) return fail("22021", "a text cannot hold a zero byte");
      if (!is_utf8(text)) return fail("22021", "a text key is not valid UTF-8");
      out += text;
      out += '\0';
      return {};
    case KeyType::kBytea:
      if (!put_bytea_text(text, out)) return invalid_text(type, text);
      return {};
    case KeyType::kDate: {
      KG_TRY(const std::int32_t days, date_from_text(text));
      put_signed(days, 4, out);
      return {};
    }
    case KeyType::kTimestamp:
    case KeyType::kTimestamptz: {
      KG_TRY(const std::int64_t value, timestamp_from_text(text, type == KeyType::kTimestamptz));
      put_signed(value, 8, out);
      return {};
    }
    case KeyType::kBoolean: {
      KG_TRY(const bool value, boolean_from_text(text));
      out += static_cast<char>(value);
      return {};
    }
  }
  return fail(sqlstate::kInternal, "unknown key type");
}

// A value of another number type stands for the key when it is the same number.
Status put_number_of_other_type(KeyType type, KeyType from, std::string_view bytes, std::string& out) {
  const auto no_such = [&](std::string_view what) {
    return fail("22003", "a key of type " + std::string(name_of(type)) + " cannot be the " + std::string(what) +
                             " value given");
  };
  if (is_integer(from)) {
    if (bytes.size() != static_cast<std::size_t>(integer_bytes(from))) return damaged_binary(from);
    const int unused = 64 - 8 * integer_bytes(from);
    const std::int64_t value = static_cast<std::int64_t>(get_be(bytes) << unused) >> unused;
    if (type == KeyType::kNumeric) {
      put_numeric(numeric_from_integer(value), out);
    } else {
      if (!fits(type, value)) return no_such(name_of(from));
      put_signed(value, integer_bytes(type), out);
    }
    return {};
  }
  KG_TRY(const NumericValue value, numeric_from_binary(bytes));
  const auto integer = numeric_to_integer(value);
  if (!integer || !fits(type, *integer)) return no_such("numeric");
  put_signed(*integer, integer_bytes(type), out);
  return {};
}

Status put_binary_payload(KeyType type, std::string_view bytes, std::string& out) {
  switch (type) {
    case KeyType::kSmallint:
    case KeyType::kInt:
    case KeyType::kBigint: return put_number_of_other_type(type, type, bytes, out);
    case KeyType::kNumeric: {
      KG_TRY(const NumericValue value, numeric_from_binary(bytes));
      put_numeric(value, out);
      return {};
    }
    case KeyType::kUuid:
      if (bytes.size() != 16) return damaged_binary(type);
      out += bytes;
      return {};
    case KeyType::kText: return put_text_payload(type, bytes, out);
    case KeyType::kBytea:
      for (char byte : bytes) put_bytea_byte(byte, out);
      put_bytea_end(out);
      return {};
    case KeyType::kDate: {
      if (bytes.size() != 4) return damaged_binary(type);
      const auto days = static_cast<std::int32_t>(get_be(bytes));
      if (!date_in_range(days)) return fail("22008", "date out of range");
      put_signed(days, 4, out);
      return {};
    }
    case KeyType::kTimestamp:
    case KeyType::kTimestamptz: {
      if (bytes.size() != 8) return damaged_binary(type);
      const auto value = static_cast<std::int64_t>(get_be(bytes));
      if (!timestamp_in_range(value)) return fail("22008", "timestamp out of range");
      put_signed(value, 8, out);
      return {};
    }
    case KeyType::kBoolean:
      if (bytes.size() != 1) return damaged_binary(type);
      out += static_cast<char>(bytes[0] != 0);
      return {};
  }
  return fail(sqlstate::kInternal, "unknown key type");
}

std::string hex_of(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (unsigned char c : bytes) {
    out += kHex[c >> 4];
    out += kHex[c & 15];
  }
  return out;
}

Result<std::string> payload_to_text(KeyType type, std::string_view payload) {
  switch (type) {
    case KeyType::kSmallint:
    case KeyType::kInt:
    case KeyType::kBigint: return std::to_string(get_signed(payload));
    case KeyType::kNumeric: {
      std::string_view rest = payload;
      const auto value = take_numeric(rest);
      if (!value) return fail("XX001", "damaged numeric key");
      return numeric_to_text(*value);
    }
    case KeyType::kUuid: {
      std::string text = hex_of(payload);
      for (std::size_t at : {20, 16, 12, 8}) text.insert(at, "-");
      return text;
    }
    case KeyType::kText: return std::string(payload.substr(0, payload.size() - 1));
    case KeyType::kBytea: return "\\x" + hex_of(unescape_bytea(payload));
    case KeyType::kDate: return date_to_text(static_cast<std::int32_t>(get_signed(payload)));
    case KeyType::kTimestamp:
    case KeyType::kTimestamptz: return timestamp_to_text(get_signed(payload), type == KeyType::kTimestamptz);
    case KeyType::kBoolean: return std::string(payload[0] != 0 ? "true" : "false");
  }
  return fail(sqlstate::kInternal, "unknown key type");
}

}  // namespace

std::string_view trim_spaces(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) {
      ++at;
      continue;
    }
    const std::size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || at + more >= text.size()) return false;
    for (std::size_t i = 1; i <= more; ++i) {
      if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return false;
    }
    const auto second = static_cast<unsigned char>(text[at + 1]);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
      return false;
    }
    at += more + 1;
  }
  return true;
}

int fixed_payload_bytes(KeyType type) {
  switch (type) {
    case KeyType::kSmallint: return 2;
    case KeyType::kInt:
    case KeyType::kDate: return 4;
    case KeyType::kBigint:
    case KeyType::kTimestamp:
    case KeyType::kTimestamptz: return 8;
    case KeyType::kUuid: return 16;
    case KeyType::kBoolean: return 1;
    case KeyType::kNumeric:
    case KeyType::kText:
    case KeyType::kBytea: return 0;
  }
  return 0;
}

// The size of a numeric payload, found without building its digits: lookups pass here.
static std::optional<std::size_t> measure_numeric(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto kind = static_cast<NumericValue::Class>(bytes[0]);
  const bool negative = kind == NumericValue::Class::kNegative;
  if (!negative && kind != NumericValue::Class::kPositive) return 1;
  const char end = negative ? '\xff' : '\0';
  for (std::size_t at = 3; at + 2 <= bytes.size(); at += 2) {
    if (bytes[at] == end && bytes[at + 1] == end) return at + 2;
  }
  return std::nullopt;
}

std::optional<std::string_view> take_payload(KeyType type, std::string_view& bytes) {
  std::size_t size = static_cast<std::size_t>(fixed_payload_bytes(type));
  if (type == KeyType::kText) {
    const std::size_t end = bytes.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    size = end + 1;
  } else if (type == KeyType::kBytea) {
    for (;;) {
      size = bytes.find('\0', size);
      if (size == std::string_view::npos || size + 1 >= bytes.size()) return std::nullopt;
      const char next = bytes[size + 1];
      size += 2;
      if (next == '\0') break;
      if (next != '\xff') return std::nullopt;
    }
  } else if (type == KeyType::kNumeric) {
    const auto measured = measure_numeric(bytes);
    if (!measured) return std::nullopt;
    size = *measured;
  }
  if (size > bytes.size()) return std::nullopt;
  const std::string_view payload = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return payload;
}

std::string unescape_bytea(std::string_view payload) {
  std::string out;
  for (std::size_t i = 0; i + 2 < payload.size(); ++i) {
    out += payload[i];
    if (payload[i] == '\0') ++i;
  }
  return out;
}

Status append_text(KeyType type, std::string_view text, std::string& key) {
  const std::size_t before = key.size();
  key += key_tag::kValue;
  Status done = put_text_payload(type, text, key);
  if (!done) key.resize(before);
  return done;
}

Status append_binary(KeyType type, std::uint32_t oid, std::string_view bytes, std::string& key) {
  std::optional<KeyType> from = type;
  if (oid != 0) from = key_type_of_oid(oid);
  const auto number = [](KeyType t) { return is_integer(t) || t == KeyType::kNumeric; };
  const std::size_t before = key.size();
  key += key_tag::kValue;
  Status done;
  if (from == type) {
    done = put_binary_payload(type, bytes, key);
  } else if (from && number(*from) && number(type)) {
    done = put_number_of_other_type(type, *from, bytes, key);
  } else {
    done =
        fail(sqlstate::kNotSupported,
             "a key of type " + std::string(name_of(type)) + " cannot be read from a parameter of the type " +
                 (from ? std::string(name_of(*from)) : "with OID " + std::to_string(oid)),
             "Declare the parameter as " + std::string(name_of(type)) + ".");
  }
  if (!done) key.resize(before);
  return done;
}

void append_bigint(std::int64_t value, std::string& key) {
  key += key_tag::kValue;
  put_signed(value, 8, key);
}
void append_min(std::string& key) {
  key += key_tag::kMin;
}
void append_max(std::string& key) {
  key += key_tag::kMax;
}

Result<std::string> encode_bound(const KeyTypes& types, const Bound& bound) {
  if (bound.size() != types.size()) {
    return fail(sqlstate::kInvalidParameter, "a bound of " + std::to_string(bound.size()) +
                                                 " columns for a key of " + std::to_string(types.size()) +
                                                 ": (" + list_of(types) + ")");
  }
  std::string key;
  std::optional<BoundColumn::Kind> open_end;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const BoundColumn& column = bound[i];
    if (open_end && column.kind != *open_end) {
      const std::string word = *open_end == BoundColumn::Kind::kMin ? "MINVALUE" : "MAXVALUE";
      return fail("42P17", "every bound following " + word + " must also be " + word);
    }
    switch (column.kind) {
      case BoundColumn::Kind::kMin: append_min(key); break;
      case BoundColumn::Kind::kMax: append_max(key); break;
      case BoundColumn::Kind::kValue: KG_CHECK(append_text(types[i], column.text, key)); break;
    }
    if (column.kind != BoundColumn::Kind::kValue) open_end = column.kind;
  }
  return key;
}

Result<std::string> encode_key(const KeyTypes& types, const std::vector<std::string>& texts) {
  if (texts.size() != types.size()) {
    return fail(sqlstate::kInvalidParameter, "a key of " + std::to_string(texts.size()) +
                                                 " columns where it has " + std::to_string(types.size()) +
                                                 ": (" + list_of(types) + ")");
  }
  std::string key;
  for (std::size_t i = 0; i < types.size(); ++i) KG_CHECK(append_text(types[i], texts[i], key));
  return key;
}

Result<Bound> decode_bound(const KeyTypes& types, std::string_view key) {
  Bound bound;
  for (KeyType type : types) {
    if (key.empty()) return fail("XX001", "damaged key: it ends early");
    const char tag = key[0];
    key.remove_prefix(1);
    if (tag == key_tag::kMin) {
      bound.push_back(BoundColumn::min());
    } else if (tag == key_tag::kMax) {
      bound.push_back(BoundColumn::max());
    } else if (tag == key_tag::kValue) {
      const auto payload = take_payload(type, key);
      if (!payload) return fail("XX001", "damaged key: not a " + std::string(name_of(type)));
      KG_TRY(std::string text, payload_to_text(type, *payload));
      bound.push_back(BoundColumn::value(std::move(text)));
    } else {
      return fail("XX001", "damaged key: unknown tag");
    }
  }
  if (!key.empty()) return fail("XX001", "damaged key: bytes are left over");
  return bound;
}

std::string describe_key(const KeyTypes& types, std::string_view key) {
  const auto bound = decode_bound(types, key);
  if (!bound) return "(damaged key)";
  std::string out = "(";
  for (std::size_t i = 0; i < bound->size(); ++i) {
    if (i > 0) out += ", ";
    const BoundColumn& column = (*bound)[i];
    if (column.kind != BoundColumn::Kind::kValue) {
      out += column.kind == BoundColumn::Kind::kMin ? "MINVALUE" : "MAXVALUE";
      continue;
    }
    const bool bare = is_integer(types[i]) || types[i] == KeyType::kNumeric || types[i] == KeyType::kBoolean;
    if (bare) {
      out += column.text;
      continue;
    }
    out += '\'';
    for (char c : column.text) out.append(c == '\'' ? 2 : 1, c);
    out += '\'';
  }
  return out + ")";
}

}  // namespace kintsugi::shardmap
