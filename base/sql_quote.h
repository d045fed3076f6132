// The one place where names and values become SQL text.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi {

// "name", with its quotes doubled; always quoted. A zero byte cannot stand in SQL and ends the name.
std::string quote_identifier(std::string_view name);

// 'value', whatever standard_conforming_strings says: with a backslash in it the form is E'...'.
std::string quote_literal(std::string_view value);

}  // namespace kintsugi
