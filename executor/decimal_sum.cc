#include "executor/decimal_sum.h"

#include <algorithm>
#include <vector>

#include "wire/frame.h"

namespace kintsugi::executor {
namespace {

constexpr int kBase = 10000;
constexpr std::uint16_t kPositive = 0, kNegative = 0x4000, kNaN = 0xC000, kPlusInfinity = 0xD000,
                        kMinusInfinity = 0xF000;

tl::unexpected<Error> damaged() {
  return fail("XX001", "a shard sent a numeric that is none");
}

std::string special(std::uint16_t sign, bool binary) {
  if (!binary) return sign == kNaN ? "NaN" : sign == kPlusInfinity ? "Infinity" : "-Infinity";
  std::string value(8, '\0');
  wire::store_u16(value.data() + 4, sign);
  return value;
}

int floor_div(int a, int b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

}  // namespace

// Digits from the highest weight down to the lowest, without gaps and without zeros at the front.
struct DecimalSum::Normal {
  bool negative = false;
  int weight = 0;  // of the first digit
  std::vector<int> digits;
};

Status DecimalSum::add(std::string_view value, bool binary) {
  return binary ? add_binary(value) : add_text(value);
}

Status DecimalSum::add_text(std::string_view text) {
  if (text == "NaN") {
    nan_ = true;
    return {};
  }
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text == "Infinity") {
    (negative ? minus_infinity_ : plus_infinity_) = true;
    return {};
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  const int whole = static_cast<int>(point);
  if (text.empty() || point == 0) return damaged();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == point) continue;
    if (text[i] < '0' || text[i] > '9') return damaged();
    const int exponent = i < point ? whole - 1 - static_cast<int>(i) : whole - static_cast<int>(i);
    const int weight = floor_div(exponent, 4);
    static constexpr int kWorth[] = {1, 10, 100, 1000};
    const int digit = (text[i] - '0') * kWorth[exponent - weight * 4];
    if (digit != 0) digits_[weight] += negative ? -digit : digit;
  }
  if (point < text.size()) scale_ = std::max(scale_, static_cast<int>(text.size() - point - 1));
  return {};
}

Status DecimalSum::add_binary(std::string_view bytes) {
  wire::BodyReader in(bytes);
  const int count = in.u16();
  int weight = in.i16();
  const std::uint16_t sign = in.u16();
  const int scale = in.u16();
  if (!in.ok()) return damaged();
  switch (sign) {
    case kPositive:
    case kNegative: break;
    case kNaN: nan_ = true; return {};
    case kPlusInfinity: plus_infinity_ = true; return {};
    case kMinusInfinity: minus_infinity_ = true; return {};
    default: return damaged();
  }
  for (int i = 0; i < count; ++i, --weight) {
    const int digit = in.u16();
    if (digit >= kBase) return damaged();
    if (digit != 0) digits_[weight] += sign == kNegative ? -digit : digit;
  }
  if (!in.done()) return damaged();
  scale_ = std::max(scale_, scale);
  return {};
}

DecimalSum::Normal DecimalSum::normal() const {
  Normal normal;
  if (digits_.empty()) return normal;
  const int lowest = digits_.rbegin()->first;
  int highest = digits_.begin()->first;
  std::vector<std::int64_t> upwards(static_cast<std::size_t>(highest - lowest + 1));
  for (const auto& [weight, digit] : digits_) upwards[static_cast<std::size_t>(weight - lowest)] = digit;
  // The sign of the whole is that of the last carry, so carry twice: once to see it, once with all turned over.
  const auto carried = [&upwards](int sign, std::vector<int>& out) {
    std::int64_t carry = 0;
    out.clear();
    for (const std::int64_t each : upwards) {
      carry += sign * each;
      std::int64_t digit = carry % kBase;
      if (digit < 0) digit += kBase;
      out.push_back(static_cast<int>(digit));
      carry = (carry - digit) / kBase;
    }
    for (; carry > 0; carry /= kBase) out.push_back(static_cast<int>(carry % kBase));
    return carry >= 0;
  };
  normal.negative = !carried(1, normal.digits);
  if (normal.negative) (void)carried(-1, normal.digits);
  while (!normal.digits.empty() && normal.digits.back() == 0) normal.digits.pop_back();
  normal.weight = lowest + static_cast<int>(normal.digits.size()) - 1;
  std::reverse(normal.digits.begin(), normal.digits.end());
  if (normal.digits.empty()) normal = Normal{};
  return normal;
}

std::string DecimalSum::to_value(bool binary) const {
  if (nan_ || (plus_infinity_ && minus_infinity_)) return special(kNaN, binary);
  if (plus_infinity_) return special(kPlusInfinity, binary);
  if (minus_infinity_) return special(kMinusInfinity, binary);
  Normal sum = normal();
  const auto digit_at = [&sum](int weight) {
    const int at = sum.weight - weight;
    return at >= 0 && at < static_cast<int>(sum.digits.size()) ? sum.digits[static_cast<std::size_t>(at)] : 0;
  };
  if (binary) {
    while (!sum.digits.empty() && sum.digits.back() == 0) sum.digits.pop_back();
    std::string value(8 + 2 * sum.digits.size(), '\0');
    wire::store_u16(value.data(), static_cast<std::uint16_t>(sum.digits.size()));
    wire::store_u16(value.data() + 2, static_cast<std::uint16_t>(sum.weight));
    wire::store_u16(value.data() + 4, sum.negative ? kNegative : kPositive);
    wire::store_u16(value.data() + 6, static_cast<std::uint16_t>(scale_));
    for (std::size_t i = 0; i < sum.digits.size(); ++i)
      wire::store_u16(value.data() + 8 + 2 * i, static_cast<std::uint16_t>(sum.digits[i]));
    return value;
  }
  const auto four = [](int digit) { return std::to_string(kBase + digit).substr(1); };
  std::string whole;
  for (int weight = std::max(sum.weight, 0); weight >= 0; --weight) whole += four(digit_at(weight));
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  std::string text = sum.negative ? "-" + whole : whole;
  if (scale_ > 0) {
    std::string decimals;
    for (int weight = -1; static_cast<int>(decimals.size()) < scale_; --weight)
      decimals += four(digit_at(weight));
    text += '.' + decimals.substr(0, static_cast<std::size_t>(scale_));
  }
  return text;
}

}  // namespace kintsugi::executor
