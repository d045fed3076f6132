// serial and its like, which are no types: CREATE TABLE makes an integer column with a sequence of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kintsugi::planner {

struct SerialType {
  std::string_view type;  // what the column has
  std::uint32_t oid;
};

constexpr std::optional<SerialType> serial_type(std::string_view name) {
  constexpr SerialType small{"smallint", 21}, plain{"integer", 23}, big{"bigint", 20};
  if (name == "serial" || name == "serial4") return plain;
  if (name == "bigserial" || name == "serial8") return big;
  if (name == "smallserial" || name == "serial2") return small;
  return std::nullopt;
}

}  // namespace kintsugi::planner
