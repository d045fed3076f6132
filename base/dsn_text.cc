#include "base/dsn_text.h"

#include <regex>

namespace kintsugi {

std::string without_password(std::string_view dsn) {
  // The library's regular expressions go as deep as the text is long.
  constexpr std::size_t kLongest = 4096;
  if (dsn.size() > kLongest) return "(a connection string of " + std::to_string(dsn.size()) + " bytes)";
  std::string text(dsn);
  // user:password@ of a URL, then password=... with or without quotes, wherever it stands.
  text = std::regex_replace(text, std::regex(R"(([a-z]+://[^:/?#@]*):.*@)"), "$1:***@");
  return std::regex_replace(text, std::regex(R"(password\s*=\s*('(\\.|[^'\\])*'?|[^\s&]*))", std::regex::icase),
                            "password=***");
}

}  // namespace kintsugi
