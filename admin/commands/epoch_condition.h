// What If-Match and If-None-Match say of the map's epoch, which is its entity tag. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace kintsugi::admin {

// The SQLSTATE of what was asked for an epoch which is not the map's.
inline constexpr std::string_view kEpochMoved = "KG007";

struct EpochCondition {
  bool one_of = false;                // it must be among `wanted`
  std::vector<std::string> wanted;    // epochs, as text: "007" is another tag than "7"
  std::vector<std::string> unwanted;  // it must not be among these

  [[nodiscard]] Status check(std::uint64_t epoch) const;
};

}  // namespace kintsugi::admin
