#include "planner/key_limit.h"

#include <algorithm>
#include <charconv>

#include "shardmap/key_encoding.h"

namespace kintsugi::planner {

using shardmap::KeyType;

KeyLimit limit_of(std::string_view type_name) {
  const std::size_t open = type_name.find('(');
  if (open == std::string_view::npos) return {};
  const auto number = [&](std::size_t at) {
    int value = 0;
    std::from_chars(type_name.data() + at, type_name.data() + type_name.size(), value);
    return value;
  };
  if (type_name.starts_with("character varying")) return {.characters = number(open + 1)};
  if (type_name.starts_with("timestamp")) return {.digits = number(open + 1)};
  if (!type_name.starts_with("numeric")) return {};
  const std::size_t comma = type_name.find(',', open);
  return {.digits = comma == std::string_view::npos ? 0 : number(comma + 1)};
}

bool store_as(KeyLimit limit, KeyType type, std::size_t begin, std::string& key) {
  if (!limit.any()) return true;
  if (limit.characters >= 0 && key.size() - begin <= static_cast<std::size_t>(limit.characters)) return true;
  const auto column = shardmap::decode_bound({type}, std::string_view(key).substr(begin));
  if (!column) return false;
  const std::string& text = column->front().text;
  if (limit.characters >= 0) {
    std::size_t at = 0;
    for (int characters = 0; at < text.size(); ++at)
      if ((text[at] & 0xC0) != 0x80 && ++characters > limit.characters) break;
    key.resize(begin);
    return shardmap::append_text(type, std::string_view(text).substr(0, at), key).has_value();
  }
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return true;
  const auto end = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(point) + 1, text.end(),
                                [](char c) { return c < '0' || c > '9'; });
  return end - text.begin() - static_cast<std::ptrdiff_t>(point) - 1 <= limit.digits;
}

}  // namespace kintsugi::planner
