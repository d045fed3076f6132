// The one place where names and values become SQL text.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi {

// "name", with its quotes doubled; always quoted. A zero byte cannot stand in SQL and ends the name.
std::string quote_identifier(std::string_view name);

// The name that a part of a setting stands for: without the blanks around it, and without its quotes when it
// has any.
std::string unquote_identifier(std::string_view text);

// 'value', whatever standard_conforming_strings says: with a backslash in it the form is E'...'.
std::string quote_literal(std::string_view value);

}  // namespace kintsugi
