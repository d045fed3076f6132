// Rows for people: columns as wide as they must be, under their names. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kintsugi::app {

// `columns` are members of the objects, in the order in which they are printed. Without a row: "(none)".
[[nodiscard]] std::string table_text(const nlohmann::ordered_json& objects,
                                     const std::vector<std::string>& columns);

// One value as a person reads it: lists joined, null as nothing.
[[nodiscard]] std::string value_text(const nlohmann::ordered_json& value);

}  // namespace kintsugi::app
