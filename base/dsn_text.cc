#include "base/dsn_text.h"

#include <regex>

namespace kintsugi {

std::string without_password(std::string_view dsn) {
  std::string text(dsn);
  // user:password@ of a URL, then password=... with or without quotes, wherever it stands.
  text = std::regex_replace(text, std::regex(R"(([a-z]+://[^:/?#@]*):.*@)"), "$1:***@");
  return std::regex_replace(text, std::regex(R"(password\s*=\s*('(\\.|[^'\\])*'?|[^\s&]*))", std::regex::icase),
                            "password=***");
}

}  // namespace kintsugi
