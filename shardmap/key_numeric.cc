#include <charconv>
#include <climits>

#include "shardmap/key_payload.h"

namespace kintsugi::shardmap {
namespace {

constexpr int kWeightMax = 32767;
constexpr int kScaleMax = 16383;
constexpr int kDecimalsADigit = 4;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

void strip_zeros(NumericValue& value) {
  while (!value.digits.empty() && value.digits.back() == 0) value.digits.pop_back();
  std::size_t leading = 0;
  while (leading < value.digits.size() && value.digits[leading] == 0) ++leading;
  value.digits.erase(value.digits.begin(), value.digits.begin() + static_cast<std::ptrdiff_t>(leading));
  value.weight -= static_cast<int>(leading);
  if (value.digits.empty()) {
    value.kind = NumericValue::Class::kZero;
    value.weight = 0;
  }
}

tl::unexpected<Error> not_numeric(std::string_view text) {
  return fail("22P02", "invalid input syntax for type numeric: \"" + std::string(text) + "\"");
}
tl::unexpected<Error> overflow() {
  return fail("22003", "value overflows numeric format");
}

// Decimal digits, the first worth 10^decimal_weight, to base-10000 digits aligned at the decimal point.
void group_decimals(std::string_view decimals, int decimal_weight, NumericValue& value) {
  const auto floor_div = [](int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
  value.weight = floor_div(decimal_weight, kDecimalsADigit);
  int in_digit = (value.weight + 1) * kDecimalsADigit - (decimal_weight + 1);  // zeros before the first decimal
  unsigned digit = 0;
  for (char c : decimals) {
    digit = digit * 10 + static_cast<unsigned>(c - '0');
    if (++in_digit == kDecimalsADigit) {
      value.digits.push_back(static_cast<std::uint16_t>(digit));
      digit = 0;
      in_digit = 0;
    }
  }
  if (in_digit > 0) {
    for (; in_digit < kDecimalsADigit; ++in_digit) digit *= 10;
    value.digits.push_back(static_cast<std::uint16_t>(digit));
  }
}

}  // namespace

Result<NumericValue> numeric_from_text(std::string_view whole) {
  std::string_view text = trim_spaces(whole);
  NumericValue value;
  if (equals_ignoring_case(text, "nan")) {
    value.kind = NumericValue::Class::kNaN;
    return value;
  }
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (equals_ignoring_case(text, "infinity") || equals_ignoring_case(text, "inf")) {
    value.kind = negative ? NumericValue::Class::kMinusInfinity : NumericValue::Class::kInfinity;
    return value;
  }
  std::string decimals;
  long weight = -1;  // of the first decimal
  long scale = 0;
  bool point = false;
  std::size_t at = 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    decimals += text[at];
    if (point) {
      ++scale;
    } else {
      ++weight;
    }
  }
  if (decimals.empty()) return not_numeric(whole);
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    const bool plus = at < text.size() && text[at] == '+';
    if (plus) ++at;
    if (plus && at < text.size() && text[at] == '-') return not_numeric(whole);
    long exponent = 0;
    const auto [end, problem] = std::from_chars(text.data() + at, text.data() + text.size(), exponent);
    if (problem == std::errc::invalid_argument) return not_numeric(whole);
    if (problem != std::errc{} || exponent >= INT_MAX / 2 || exponent <= -(INT_MAX / 2)) return overflow();
    at = static_cast<std::size_t>(end - text.data());
    weight += exponent;
    scale -= exponent;
  }
  if (at != text.size()) return not_numeric(whole);
  if (scale > kScaleMax) return overflow();
  const std::size_t zeros = decimals.find_first_not_of('0');
  if (zeros == std::string::npos) return value;
  weight -= static_cast<long>(zeros);
  if (weight >= (kWeightMax + 1L) * kDecimalsADigit) return overflow();
  value.kind = negative ? NumericValue::Class::kNegative : NumericValue::Class::kPositive;
  group_decimals(std::string_view(decimals).substr(zeros), static_cast<int>(weight), value);
  strip_zeros(value);
  return value;
}

Result<NumericValue> numeric_from_binary(std::string_view bytes) {
  const auto damaged = [] { return fail("22P03", "incorrect binary form of a numeric"); };
  if (bytes.size() < 8) return damaged();
  const auto count = static_cast<std::size_t>(get_be(bytes.substr(0, 2)));
  const int weight = static_cast<std::int16_t>(get_be(bytes.substr(2, 2)));
  const auto sign = static_cast<unsigned>(get_be(bytes.substr(4, 2)));
  const auto scale = static_cast<unsigned>(get_be(bytes.substr(6, 2)));
  if (bytes.size() != 8 + 2 * count || scale > static_cast<unsigned>(kScaleMax)) return damaged();
  NumericValue value;
  value.weight = weight;
  for (std::size_t i = 0; i < count; ++i) {
    const auto digit = static_cast<unsigned>(get_be(bytes.substr(8 + 2 * i, 2)));
    if (digit > 9999) return damaged();
    value.digits.push_back(static_cast<std::uint16_t>(digit));
  }
  switch (sign) {
    case 0x0000: value.kind = NumericValue::Class::kPositive; break;
    case 0x4000: value.kind = NumericValue::Class::kNegative; break;
    case 0xC000: value = NumericValue{NumericValue::Class::kNaN, 0, {}}; return value;
    case 0xD000: value = NumericValue{NumericValue::Class::kInfinity, 0, {}}; return value;
    case 0xF000: value = NumericValue{NumericValue::Class::kMinusInfinity, 0, {}}; return value;
    default: return damaged();
  }
  // As PostgreSQL does on receipt: decimals beyond the announced scale are cut off.
  const long kept = (weight + 1L) * kDecimalsADigit + static_cast<long>(scale);
  if (kept <= 0) {
    value.digits.clear();
  } else if (kept < static_cast<long>(value.digits.size()) * kDecimalsADigit) {
    value.digits.resize(static_cast<std::size_t>((kept + kDecimalsADigit - 1) / kDecimalsADigit));
    unsigned unit = 1;
    for (long i = kept % kDecimalsADigit; i > 0 && i < kDecimalsADigit; ++i) unit *= 10;
    value.digits.back() = static_cast<std::uint16_t>(value.digits.back() - value.digits.back() % unit);
  }
  strip_zeros(value);
  return value;
}

NumericValue numeric_from_integer(std::int64_t integer) {
  NumericValue value;
  if (integer == 0) return value;
  value.kind = integer < 0 ? NumericValue::Class::kNegative : NumericValue::Class::kPositive;
  std::uint64_t rest =
      integer < 0 ? 0 - static_cast<std::uint64_t>(integer) : static_cast<std::uint64_t>(integer);
  for (; rest != 0; rest /= 10000) value.digits.push_back(static_cast<std::uint16_t>(rest % 10000));
  std::reverse(value.digits.begin(), value.digits.end());
  value.weight = static_cast<int>(value.digits.size()) - 1;
  strip_zeros(value);
  return value;
}

std::optional<std::int64_t> numeric_to_integer(const NumericValue& value) {
  if (value.kind == NumericValue::Class::kZero) return 0;
  const bool negative = value.kind == NumericValue::Class::kNegative;
  if (!negative && value.kind != NumericValue::Class::kPositive) return std::nullopt;
  if (value.weight < 0 || value.weight > 4 || static_cast<int>(value.digits.size()) > value.weight + 1) {
    return std::nullopt;
  }
  std::int64_t integer = 0;
  for (int i = 0; i <= value.weight; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t digit = at < value.digits.size() ? value.digits[at] : 0;
    if (__builtin_mul_overflow(integer, std::int64_t{10000}, &integer) ||
        __builtin_add_overflow(integer, negative ? -digit : digit, &integer)) {
      return std::nullopt;
    }
  }
  return integer;
}

std::string numeric_to_text(const NumericValue& value) {
  switch (value.kind) {
    case NumericValue::Class::kNaN: return "NaN";
    case NumericValue::Class::kInfinity: return "Infinity";
    case NumericValue::Class::kMinusInfinity: return "-Infinity";
    case NumericValue::Class::kZero: return "0";
    default: break;
  }
  const auto four = [&value](int position) {
    const int index = value.weight - position;  // the digit worth 10000^position
    const bool there = index >= 0 && index < static_cast<int>(value.digits.size());
    std::string text = std::to_string(there ? value.digits[static_cast<std::size_t>(index)] : 0);
    return std::string(4 - text.size(), '0') + text;
  };
  std::string whole;
  for (int position = value.weight; position >= 0; --position) whole += four(position);
  const std::size_t first = whole.find_first_not_of('0');
  whole = first == std::string::npos ? "0" : whole.substr(first);
  std::string part;
  const int last = value.weight - static_cast<int>(value.digits.size()) + 1;
  for (int position = -1; position >= last; --position) part += four(position);
  while (!part.empty() && part.back() == '0') part.pop_back();
  std::string text = value.kind == NumericValue::Class::kNegative ? "-" : "";
  text += whole;
  if (!part.empty()) text += "." + part;
  return text;
}

// Class, then weight and digits, each digit plus one so that the closing 0 is below any; all turned over if
// negative.
void put_numeric(const NumericValue& value, std::string& out) {
  out += static_cast<char>(value.kind);
  const bool negative = value.kind == NumericValue::Class::kNegative;
  if (!negative && value.kind != NumericValue::Class::kPositive) return;
  const std::size_t start = out.size();
  put_signed(value.weight, 2, out);
  for (std::uint16_t digit : value.digits) put_be(digit + 1U, 2, out);
  put_be(0, 2, out);
  if (negative) {
    for (std::size_t i = start; i < out.size(); ++i) out[i] = static_cast<char>(~out[i]);
  }
}

std::optional<NumericValue> take_numeric(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  NumericValue value;
  const auto kind = static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(1);
  if (kind < 1 || kind > 6) return std::nullopt;
  value.kind = static_cast<NumericValue::Class>(kind);
  const bool negative = value.kind == NumericValue::Class::kNegative;
  if (!negative && value.kind != NumericValue::Class::kPositive) return value;
  const auto word = [&bytes, negative]() -> std::optional<unsigned> {
    if (bytes.size() < 2) return std::nullopt;
    const auto raw = static_cast<std::uint16_t>(get_be(bytes.substr(0, 2)));
    bytes.remove_prefix(2);
    return negative ? static_cast<std::uint16_t>(~raw) : raw;
  };
  const auto weight = word();
  if (!weight) return std::nullopt;
  value.weight = static_cast<std::int16_t>(static_cast<std::uint16_t>(*weight ^ 0x8000U));
  for (;;) {
    const auto digit = word();
    if (!digit || *digit > 10000) return std::nullopt;
    if (*digit == 0) break;
    value.digits.push_back(static_cast<std::uint16_t>(*digit - 1));
  }
  if (value.digits.empty()) return std::nullopt;
  return value;
}

}  // namespace kintsugi::shardmap
