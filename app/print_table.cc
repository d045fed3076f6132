#include "app/print_table.h"

#include <algorithm>

namespace kintsugi::app {
namespace {

using Json = nlohmann::ordered_json;

// Letters, not bytes, of UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// A cell is one line, and does nothing to the terminal.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

// What stands in a list: a key of several columns in parentheses, its booleans as PostgreSQL has them.
std::string item_text(const Json& item) {
  if (item.is_array()) return "(" + value_text(item) + ")";
  if (item.is_boolean()) return item.get<bool>() ? "true" : "false";
  if (item.is_string() && item.get_ref<const std::string&>().empty()) return "''";
  return value_text(item);
}

constexpr std::size_t kWidthMax = 100;  // a longer cell pushes its own row only

}  // namespace

std::string value_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array()) {
    std::string text;
    for (const Json& item : value) text += (text.empty() ? "" : ", ") + item_text(item);
    return text;
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string table_text(const Json& objects, const std::vector<std::string>& columns) {
  if (objects.empty()) return "(none)\n";
  std::vector<std::vector<std::string>> rows{columns};
  for (const Json& object : objects) {
    std::vector<std::string> row;
    for (const std::string& column : columns)
      row.push_back(object.contains(column) ? one_line(value_text(object[column])) : "");
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], std::min(width_of(row[i]), kWidthMax));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(std::max(widths[i], width_of(row[i])) - width_of(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace kintsugi::app
