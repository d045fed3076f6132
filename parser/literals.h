// What a literal or a name means: quotes taken off, escapes resolved, unquoted names folded and names cut as
// PostgreSQL does. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "parser/token.h"

namespace kintsugi::parser {

// The value of a string token of any of its kinds (also the digits of B'' and X''). `escape` matters to U&''
// only. Fails when escapes make bytes that are not UTF-8.
[[nodiscard]] Result<std::string> decode_string(std::string_view text, Token token, char escape = '\\');

// The same of a token where it stands, with the UESCAPE clause that may be behind it.
[[nodiscard]] Result<std::string> decode_string_there(std::string_view text, Token token);

// The name an identifier token means, quoted or not.
[[nodiscard]] Result<std::string> decode_identifier(std::string_view text, Token token, char escape = '\\');

// When the token's meaning is written in the text as it stands, that part of the text; otherwise an empty view,
// and decode_* must make it.
[[nodiscard]] std::string_view plain_string(std::string_view text, Token token);
[[nodiscard]] std::string_view plain_identifier(std::string_view text, Token token);

// Whether the Unicode escapes of a U& literal are whole.
[[nodiscard]] Status check_unicode_literal(std::string_view text, Token token, char escape);

}  // namespace kintsugi::parser
