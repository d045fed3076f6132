#include "executor/exact_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "wire/frame.h"

namespace kintsugi::executor {
namespace {

constexpr std::uint32_t kFloat4 = 700, kFloat8 = 701, kTimestamptz = 1184;

// The shortest that reads as the same number.
template <class Number>
std::string text_of(Number number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// A Julian day and a time in UTC mean the same under every DateStyle.
std::string time_of(std::int64_t microseconds) {
  if (microseconds == std::numeric_limits<std::int64_t>::max()) return "infinity";
  if (microseconds == std::numeric_limits<std::int64_t>::min()) return "-infinity";
  constexpr std::int64_t kDay = std::int64_t{86'400} * 1'000'000, kFirstOf2000 = 2'451'545;
  std::int64_t day = microseconds / kDay, rest = microseconds % kDay;
  if (rest < 0) {
    rest += kDay;
    --day;
  }
  const std::int64_t seconds = rest / 1'000'000;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "J%lld %02d:%02d:%02d.%06d+00",
                static_cast<long long>(day + kFirstOf2000), static_cast<int>(seconds / 3600),
                static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60),
                static_cast<int>(rest % 1'000'000));
  return text.data();
}

}  // namespace

bool needs_exact_text(std::uint32_t type) {
  return type == kFloat4 || type == kFloat8 || type == kTimestamptz;
}

std::optional<std::string> exact_text(std::uint32_t type, std::string_view binary) {
  if (!needs_exact_text(type) || binary.size() != (type == kFloat4 ? 4 : 8)) return std::nullopt;
  if (type == kFloat4) return text_of(std::bit_cast<float>(wire::load_u32(binary.data())));
  const std::uint64_t bits =
      std::uint64_t{wire::load_u32(binary.data())} << 32 | wire::load_u32(binary.data() + 4);
  if (type == kFloat8) return text_of(std::bit_cast<double>(bits));
  return time_of(static_cast<std::int64_t>(bits));
}

}  // namespace kintsugi::executor
