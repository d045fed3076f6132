#include "executor/exact_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <vector>

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

// The element type of an array of those; 0: it is none.
std::uint32_t element_of(std::uint32_t type) {
  switch (type) {
    case 1021: return kFloat4;
    case 1022: return kFloat8;
    case 1185: return kTimestamptz;
    default: return 0;
  }
}

// An array in binary as PostgreSQL writes it: its bounds where they do not begin at 1, then braces in braces.
class ArrayText {
 public:
  ArrayText(std::uint32_t element, std::string_view binary) : element_(element), left_(binary) {}

  std::optional<std::string> text() {
    const std::uint32_t dimensions = take();
    take();  // whether there are NULLs
    if (take() != element_ || failed_ || dimensions > kMostDimensions) return std::nullopt;
    if (dimensions == 0) return "{}";
    std::string bounds;
    bool plain = true;
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      const std::uint32_t count = take();
      const auto lower = static_cast<std::int32_t>(take());
      counts_.push_back(count);
      plain &= lower == 1;
      bounds += "[" + std::to_string(lower) + ":" + std::to_string(std::int64_t{lower} + count - 1) + "]";
    }
    out_ = plain ? "" : bounds + "=";
    put(0);
    if (failed_ || !left_.empty()) return std::nullopt;
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kMostDimensions = 6;

  std::uint32_t take() {
    if (left_.size() < 4) {
      failed_ = true;
      return 0;
    }
    const std::uint32_t value = wire::load_u32(left_.data());
    left_.remove_prefix(4);
    return value;
  }

  void put(std::size_t dimension) {
    if (dimension == counts_.size()) return put_element();
    out_ += '{';
    for (std::uint32_t i = 0; i < counts_[dimension] && !failed_; ++i) {
      if (i > 0) out_ += ',';
      put(dimension + 1);
    }
    out_ += '}';
  }

  void put_element() {
    const std::uint32_t size = take();
    if (size == UINT32_MAX) {
      out_ += "NULL";
      return;
    }
    const auto value = size <= left_.size() ? exact_text(element_, left_.substr(0, size)) : std::nullopt;
    failed_ = failed_ || !value;
    if (failed_) return;
    left_.remove_prefix(size);
    out_ += '"' + *value + '"';
  }

  std::uint32_t element_;
  std::string_view left_;
  std::vector<std::uint32_t> counts_;
  std::string out_;
  bool failed_ = false;
};

}  // namespace

bool needs_exact_text(std::uint32_t type) {
  return type == kFloat4 || type == kFloat8 || type == kTimestamptz || element_of(type) != 0;
}

std::optional<std::string> exact_text(std::uint32_t type, std::string_view binary) {
  if (const std::uint32_t element = element_of(type); element != 0) return ArrayText(element, binary).text();
  if (!needs_exact_text(type) || binary.size() != (type == kFloat4 ? 4 : 8)) return std::nullopt;
  if (type == kFloat4) return text_of(std::bit_cast<float>(wire::load_u32(binary.data())));
  const std::uint64_t bits =
      std::uint64_t{wire::load_u32(binary.data())} << 32 | wire::load_u32(binary.data() + 4);
  if (type == kFloat8) return text_of(std::bit_cast<double>(bits));
  return shardmap::timestamp_to_text(static_cast<std::int64_t>(bits), true);
}

}  // namespace kintsugi::executor
