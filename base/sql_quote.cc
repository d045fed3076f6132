#include "base/sql_quote.h"

namespace kintsugi {

std::string quote_identifier(std::string_view name) {
  std::string quoted = "\"";
  for (char c : name.substr(0, name.find('\0'))) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string quote_literal(std::string_view value) {
  value = value.substr(0, value.find('\0'));
  const bool escapes = value.find('\\') != std::string_view::npos;
  // The blank keeps E apart from an identifier before it.
  std::string quoted = escapes ? " E'" : "'";
  for (char c : value) {
    if (c == '\'' || c == '\\') quoted += c;
    quoted += c;
  }
  return quoted + '\'';
}

}  // namespace kintsugi
