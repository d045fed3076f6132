#include "executor/row_key.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "shardmap/key_encoding.h"
#include "wire/frame.h"

namespace kintsugi::executor {
namespace {

using shardmap::KeyType;

namespace oid {
constexpr std::uint32_t kBool = 16, kBytea = 17, kChar = 18, kName = 19, kInt8 = 20, kInt2 = 21, kInt4 = 23,
                        kText = 25, kOid = 26, kFloat4 = 700, kFloat8 = 701, kBpchar = 1042, kVarchar = 1043,
                        kDate = 1082, kTime = 1083, kTimestamp = 1114, kTimestamptz = 1184, kTimetz = 1266,
                        kNumeric = 1700, kUuid = 2950;
}  // namespace oid

// What stands before a value: NULLs come before 1 or behind it.
constexpr char kNullFirst = 0, kValue = 1, kNullLast = 2;

void put(std::uint64_t value, int bytes, std::string& out) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
}

void put_signed(std::int64_t value, int bytes, std::string& out) {
  put(static_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << (8 * bytes - 1)), bytes, out);
}

std::uint64_t load(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

tl::unexpected<Error> damaged(const KeyOrder& order) {
  return fail("XX001", "a shard sent a value that is not of its type (OID " + std::to_string(order.type) + ")");
}

// All NaNs are one, above infinity; the two zeros are one.
void put_double(double value, std::string& out) {
  if (std::isnan(value)) {
    put(UINT64_MAX, 8, out);
    return;
  }
  const auto bits = std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
  put((bits >> 63) != 0 ? ~bits : bits | std::uint64_t{1} << 63, 8, out);
}

bool put_float_text(std::string_view text, std::string& out) {
  if (text == "NaN") {
    put_double(std::nan(""), out);
    return true;
  }
  if (text == "Infinity" || text == "-Infinity") {
    put_double(text.front() == '-' ? -HUGE_VAL : HUGE_VAL, out);
    return true;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  // Too small to be a double: PostgreSQL wrote it nevertheless, and a zero is as near as it gets.
  if (error == std::errc::result_out_of_range) value = 0;
  if (error != std::errc() && error != std::errc::result_out_of_range) return false;
  put_double(value, out);
  return true;
}

bool put_float_binary(std::string_view bytes, std::uint32_t type, std::string& out) {
  if (type == oid::kFloat4) {
    if (bytes.size() != 4) return false;
    put_double(std::bit_cast<float>(static_cast<std::uint32_t>(load(bytes))), out);
    return true;
  }
  if (bytes.size() != 8) return false;
  put_double(std::bit_cast<double>(load(bytes)), out);
  return true;
}

// "hh:mm:ss[.ffffff]" with a zone "+hh[:mm[:ss]]" behind it for timetz, as PostgreSQL writes them.
bool put_time_text(std::string_view text, bool with_zone, std::string& out) {
  const auto number = [&text](std::size_t digits, std::int64_t& into) {
    if (text.size() < digits) return false;
    into = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text[i] < '0' || text[i] > '9') return false;
      into = into * 10 + (text[i] - '0');
    }
    text.remove_prefix(digits);
    return true;
  };
  const auto skip = [&text](char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
  };
  std::int64_t hours = 0, minutes = 0, seconds = 0, fraction = 0;
  if (!number(2, hours) || !skip(':') || !number(2, minutes) || !skip(':') || !number(2, seconds)) return false;
  if (skip('.')) {
    std::int64_t worth = 100000;
    while (!text.empty() && text.front() >= '0' && text.front() <= '9' && worth > 0) {
      fraction += (text.front() - '0') * worth;
      worth /= 10;
      text.remove_prefix(1);
    }
  }
  const std::int64_t time = ((hours * 60 + minutes) * 60 + seconds) * 1000000 + fraction;
  if (!with_zone) {
    put_signed(time, 8, out);
    return text.empty();
  }
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return false;
  const bool east = text.front() == '+';
  text.remove_prefix(1);
  std::int64_t zone_hours = 0, zone_minutes = 0, zone_seconds = 0;
  if (!number(2, zone_hours)) return false;
  if (skip(':') && !number(2, zone_minutes)) return false;
  if (skip(':') && !number(2, zone_seconds)) return false;
  // PostgreSQL keeps the seconds west of Greenwich.
  std::int64_t zone = (zone_hours * 60 + zone_minutes) * 60 + zone_seconds;
  if (east) zone = -zone;
  put_signed(time + zone * 1000000, 8, out);
  put_signed(zone, 4, out);
  return text.empty();
}

bool put_time_binary(std::string_view bytes, bool with_zone, std::string& out) {
  if (bytes.size() != (with_zone ? 12U : 8U)) return false;
  const auto time = static_cast<std::int64_t>(load(bytes.substr(0, 8)));
  if (!with_zone) {
    put_signed(time, 8, out);
    return true;
  }
  const auto zone = static_cast<std::int32_t>(load(bytes.substr(8)));
  put_signed(time + std::int64_t{zone} * 1000000, 8, out);
  put_signed(zone, 4, out);
  return true;
}

// "char" in text: one byte, nothing for the zero byte, "\ooo" from 0x80 on (since PostgreSQL 15).
bool put_char_text(std::string_view text, std::string& out) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  if (text.size() == 4 && text[0] == '\\' && octal(text[1]) && octal(text[2]) && octal(text[3])) {
    out += static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
    return true;
  }
  if (text.size() > 1) return false;
  out += text.empty() ? '\0' : text.front();
  return true;
}

bool put_unsigned_text(std::string_view text, std::string& out) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  put(value, 4, out);
  return error == std::errc() && end == text.data() + text.size();
}

// Texts hold no zero byte, so a zero ends them.
void put_text(std::string_view text, std::string& out) {
  out += text;
  out += '\0';
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t last = text.find_last_not_of(' ');
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// The types that may also be sharding keys, except texts: those need not be UTF-8 here.
std::optional<KeyType> key_type_of(std::uint32_t type) {
  switch (type) {
    case oid::kInt2: return KeyType::kSmallint;
    case oid::kInt4: return KeyType::kInt;
    case oid::kInt8: return KeyType::kBigint;
    case oid::kNumeric: return KeyType::kNumeric;
    case oid::kUuid: return KeyType::kUuid;
    case oid::kBytea: return KeyType::kBytea;
    case oid::kDate: return KeyType::kDate;
    case oid::kTimestamp: return KeyType::kTimestamp;
    case oid::kTimestamptz: return KeyType::kTimestamptz;
    case oid::kBool: return KeyType::kBoolean;
    default: return std::nullopt;
  }
}

Status put_value(const KeyOrder& order, std::string_view value, std::string& out) {
  if (const auto type = key_type_of(order.type)) {
    const std::size_t before = out.size();
    const Status done =
        order.binary ? shardmap::append_binary(*type, 0, value, out) : shardmap::append_text(*type, value, out);
    if (!done) return fail("XX001", "a shard sent a value that cannot be ordered: " + done.error().message);
    out.erase(before, 1);  // its tag
    return {};
  }
  bool ok = false;
  switch (order.type) {
    case oid::kText:
    case oid::kVarchar:
    case oid::kName:
      put_text(value, out);
      ok = true;
      break;
    case oid::kBpchar:
      put_text(without_blanks(value), out);
      ok = true;
      break;
    case oid::kFloat4:
    case oid::kFloat8:
      ok = order.binary ? put_float_binary(value, order.type, out) : put_float_text(value, out);
      break;
    case oid::kTime:
    case oid::kTimetz:
      ok = order.binary ? put_time_binary(value, order.type == oid::kTimetz, out)
                        : put_time_text(value, order.type == oid::kTimetz, out);
      break;
    case oid::kOid:
      if (order.binary) {
        ok = value.size() == 4;
        out += value;
      } else {
        ok = put_unsigned_text(value, out);
      }
      break;
    case oid::kChar:
      if (order.binary) {
        ok = value.size() == 1;
        out += value;
      } else {
        ok = put_char_text(value, out);
      }
      break;
    default:
      return fail(
          sqlstate::kNotSupported,
          "rows of several shards cannot be put in the order of a type with OID " + std::to_string(order.type));
  }
  if (!ok) return damaged(order);
  return {};
}

}  // namespace

bool can_order(std::uint32_t type) {
  switch (type) {
    case oid::kText:
    case oid::kVarchar:
    case oid::kName:
    case oid::kBpchar:
    case oid::kFloat4:
    case oid::kFloat8:
    case oid::kTime:
    case oid::kTimetz:
    case oid::kOid:
    case oid::kChar: return true;
    default: return key_type_of(type).has_value();
  }
}

Status append_row_key(const KeyOrder& order, std::optional<std::string_view> value, std::string& key) {
  if (!value) {
    key += order.nulls_first ? kNullFirst : kNullLast;
    return {};
  }
  key += kValue;
  const std::size_t begin = key.size();
  KG_CHECK(put_value(order, *value, key));
  if (order.descending) {
    for (std::size_t i = begin; i < key.size(); ++i) key[i] = static_cast<char>(~key[i]);
  }
  return {};
}

}  // namespace kintsugi::executor
