#include "executor/exact_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "shardmap/key_payload.h"
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
  return shardmap::timestamp_to_text(static_cast<std::int64_t>(bits), true);
}

}  // namespace kintsugi::executor
