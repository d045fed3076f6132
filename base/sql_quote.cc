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

std::string unquote_identifier(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.size() < 2 || !text.starts_with('"') || !text.ends_with('"')) return std::string(text);
  text = text.substr(1, text.size() - 2);
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    name += text[i];
    if (text.substr(i, 2) == "\"\"") ++i;
  }
  return name;
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
