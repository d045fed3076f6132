#include "admin/request_head.h"

#include <algorithm>
#include <cctype>

namespace kintsugi::admin {
namespace {

bool same_word(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

}  // namespace

std::string_view bearer_token(std::string_view authorization) {
  const std::size_t space = authorization.find(' ');
  if (space == std::string_view::npos || !same_word(authorization.substr(0, space), "bearer")) return {};
  return trimmed(authorization.substr(space));
}

bool is_json(std::string_view content_type, bool patch) {
  const std::string_view type = trimmed(content_type.substr(0, content_type.find(';')));
  return same_word(type, "application/json") || (patch && same_word(type, "application/merge-patch+json"));
}

std::string allow_header(std::string_view methods) {
  std::string text(methods);
  if (methods.starts_with("GET")) text.insert(3, ", HEAD");
  return text + ", OPTIONS";
}

}  // namespace kintsugi::admin
