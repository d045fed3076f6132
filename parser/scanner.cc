#include "parser/scanner.h"

#include <array>
#include <string>

namespace kintsugi::parser {
namespace {

enum CharacterClass : std::uint8_t {
  kSpace = 1,
  kDigit = 2,
  kIdentifierStart = 4,
  kOperatorCharacter = 8,
  kNotSqlOperator = 16,  // an operator holding one of these may end in + or -
  kHexDigit = 32,
};

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (char c : {' ', '\t', '\n', '\r', '\f'}) classes[static_cast<unsigned char>(c)] |= kSpace;
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<std::size_t>(c)] |= kDigit | kHexDigit;
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<std::size_t>(c)] |= kIdentifierStart;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<std::size_t>(c)] |= kIdentifierStart;
  for (int c = 'a'; c <= 'f'; ++c) classes[static_cast<std::size_t>(c)] |= kHexDigit;
  for (int c = 'A'; c <= 'F'; ++c) classes[static_cast<std::size_t>(c)] |= kHexDigit;
  for (std::size_t c = 128; c < 256; ++c) classes[c] |= kIdentifierStart;
  classes['_'] |= kIdentifierStart;
  for (char c : std::string_view("~!@#^&|`?+-*/%<>="))
    classes[static_cast<unsigned char>(c)] |= kOperatorCharacter;
  for (char c : std::string_view("~!@#^&|`?%")) classes[static_cast<unsigned char>(c)] |= kNotSqlOperator;
  return classes;
}
constexpr auto kClasses = make_classes();

bool is(char c, int classes) {
  return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
}
bool is_octal(char c) {
  return c >= '0' && c <= '7';
}
bool is_newline(char c) {
  return c == '\n' || c == '\r';
}
bool is_identifier_part(char c) {
  return is(c, kIdentifierStart | kDigit) || c == '$';
}

constexpr std::uint32_t kNameLength = 64;  // NAMEDATALEN: an operator may have one byte less

constexpr const char* kInvalidEscape = "invalid Unicode escape";
constexpr const char* kUnsafeUnicode = "unsafe use of string constant with Unicode escapes";

std::uint32_t hex_value(std::string_view digits) {
  std::uint32_t value = 0;
  for (char c : digits) {
    const auto digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    value = value * 16 + static_cast<std::uint32_t>(digit);
  }
  return value;
}

}  // namespace

Token Scanner::token(TokenKind kind, std::uint32_t begin, std::uint32_t end) {
  position_ = end;
  return {kind, begin, end};
}

Token Scanner::fail_with(const char* message, std::uint32_t begin, std::uint32_t end) {
  error_message_ = message;
  error_token_ = {TokenKind::kError, begin, end};
  return error_token_;
}

Token Scanner::next() {
  if (error_message_ != nullptr) return error_token_;
  if (!skip_blanks_and_comments()) return error_token_;
  const std::uint32_t begin = position_;
  if (begin >= size()) return {TokenKind::kEnd, size(), size()};

  const char c = text_[begin];
  if (is(c, kIdentifierStart)) return identifier(begin);
  if (is(c, kDigit)) return number(begin);
  if (is(c, kOperatorCharacter)) return operator_or_self(begin);
  switch (c) {
    case '\'':
      if (!standard_strings_) return escape_string(begin, begin);
      return quoted_string(TokenKind::kString, begin, begin, "unterminated quoted string");
    case '"': return quoted_identifier(TokenKind::kQuotedIdentifier, begin, begin);
    case '$': return dollar(begin);
    case '.':
      if (is(at(begin + 1), kDigit)) return number(begin);
      return token(TokenKind::kPunctuation, begin, begin + (at(begin + 1) == '.' ? 2 : 1));
    case ':':
      return token(TokenKind::kPunctuation, begin,
                   begin + (at(begin + 1) == ':' || at(begin + 1) == '=' ? 2 : 1));
    default: return token(TokenKind::kPunctuation, begin, begin + 1);
  }
}

// False when a comment has no end; the error token is set then.
bool Scanner::skip_blanks_and_comments() {
  while (position_ < size()) {
    const char c = text_[position_];
    if (is(c, kSpace)) {
      ++position_;
    } else if (c == '-' && at(position_ + 1) == '-') {
      while (position_ < size() && !is_newline(text_[position_])) ++position_;
    } else if (c == '/' && at(position_ + 1) == '*') {
      std::uint32_t depth = 1;
      std::uint32_t i = position_ + 2;
      while (depth > 0) {
        if (i >= size()) {
          fail_with("unterminated /* comment", position_, size());
          return false;
        }
        if (text_[i] == '/' && at(i + 1) == '*') {
          ++depth;
          i += 2;
        } else if (text_[i] == '*' && at(i + 1) == '/') {
          --depth;
          i += 2;
        } else {
          ++i;
        }
      }
      position_ = i;
    } else {
      break;
    }
  }
  return true;
}

Token Scanner::identifier(std::uint32_t begin) {
  const char quote = at(begin + 1);
  switch (text_[begin]) {
    case 'e':
    case 'E':
      if (quote == '\'') return escape_string(begin, begin + 1);
      break;
    case 'b':
    case 'B':
      if (quote == '\'')
        return quoted_string(TokenKind::kBitString, begin, begin + 1, "unterminated bit string literal");
      break;
    case 'x':
    case 'X':
      if (quote == '\'')
        return quoted_string(TokenKind::kHexString, begin, begin + 1,
                             "unterminated hexadecimal string literal");
      break;
    case 'u':
    case 'U':
      if (quote == '&' && at(begin + 2) == '\'') {
        if (!standard_strings_) return fail_with(kUnsafeUnicode, begin, begin + 3);
        return quoted_string(TokenKind::kUnicodeString, begin, begin + 2, "unterminated quoted string");
      }
      if (quote == '&' && at(begin + 2) == '"')
        return quoted_identifier(TokenKind::kUnicodeIdentifier, begin, begin + 2);
      break;
    default: break;
  }
  // N'...' needs no case of its own: PostgreSQL reads the N as the keyword NCHAR and then an ordinary string.
  std::uint32_t i = begin + 1;
  while (i < size() && is_identifier_part(text_[i])) ++i;
  return token(TokenKind::kIdentifier, begin, i);
}

Token Scanner::quoted_identifier(TokenKind kind, std::uint32_t begin, std::uint32_t quote) {
  for (std::uint32_t i = quote + 1; i < size(); ++i) {
    if (text_[i] != '"') continue;
    if (at(i + 1) == '"') {
      ++i;
      continue;
    }
    if (i == quote + 1) return fail_with("zero-length delimited identifier", begin, i + 1);
    return token(kind, begin, i + 1);
  }
  return fail_with("unterminated quoted identifier", begin, size());
}

// A string goes on after white space that holds a newline; comments of the -- kind count as white space here.
// Returns where its next part begins (behind the quote), or 0.
std::uint32_t Scanner::continued_string(std::uint32_t after_quote) const {
  bool newline = false;
  for (std::uint32_t i = after_quote; i < size();) {
    const char c = text_[i];
    if (is(c, kSpace)) {
      newline |= is_newline(c);
      ++i;
    } else if (c == '-' && at(i + 1) == '-') {
      while (i < size() && !is_newline(text_[i])) ++i;
    } else {
      return c == '\'' && newline ? i + 1 : 0;
    }
  }
  return 0;
}

Token Scanner::quoted_string(TokenKind kind, std::uint32_t begin, std::uint32_t quote,
                             const char* unterminated) {
  for (std::uint32_t i = quote + 1; i < size();) {
    if (text_[i] != '\'') {
      ++i;
    } else if (at(i + 1) == '\'' && kind != TokenKind::kBitString && kind != TokenKind::kHexString) {
      i += 2;
    } else if (const auto next_part = continued_string(i + 1); next_part != 0) {
      i = next_part;
    } else {
      return token(kind, begin, i + 1);
    }
  }
  return fail_with(unterminated, begin, size());
}

Token Scanner::escape_string(std::uint32_t begin, std::uint32_t quote) {
  bool pair_open = false;  // a first UTF-16 surrogate waits for its second
  for (std::uint32_t i = quote + 1; i < size();) {
    const char c = text_[i];
    const char escaped = c == '\\' ? at(i + 1) : '\0';
    if (escaped == 'u' || escaped == 'U') {
      const std::uint32_t wanted = escaped == 'u' ? 4 : 8;
      std::uint32_t digits = 0;
      while (digits < wanted && is(at(i + 2 + digits), kHexDigit)) ++digits;
      const std::uint32_t end = i + 2 + digits;
      if (digits < wanted) return fail_with(kInvalidEscape, i, end);
      const std::uint32_t value = hex_value(text_.substr(i + 2, wanted));
      const bool first = value >= 0xD800 && value <= 0xDBFF;
      const bool second = value >= 0xDC00 && value <= 0xDFFF;
      if (second != pair_open) return fail_with("invalid Unicode surrogate pair", i, end);
      if (value == 0 || value > 0x10FFFF) return fail_with("invalid Unicode escape value", i, end);
      pair_open = first;
      i = end;
      continue;
    }
    if (pair_open) return fail_with("invalid Unicode surrogate pair", i, i + 1);
    if (c == '\\') {
      if (i + 1 >= size()) break;
      i += 2;
      if (escaped == 'x' || is_octal(escaped)) {
        const bool hex = escaped == 'x';
        for (int digits = hex ? 0 : 1; digits < (hex ? 2 : 3) && (hex ? is(at(i), kHexDigit) : is_octal(at(i)));
             ++digits)
          ++i;
      }
    } else if (c != '\'') {
      ++i;
    } else if (at(i + 1) == '\'') {
      i += 2;
    } else if (const auto next_part = continued_string(i + 1); next_part != 0) {
      i = next_part;
    } else {
      return token(TokenKind::kEscapeString, begin, i + 1);
    }
  }
  if (pair_open) return fail_with("invalid Unicode surrogate pair", size(), size());
  return fail_with("unterminated quoted string", begin, size());
}

// A parameter, a dollar-quoted string, or a lone dollar sign.
Token Scanner::dollar(std::uint32_t begin) {
  std::uint32_t i = begin + 1;
  if (is(at(i), kDigit)) {
    while (is(at(i), kDigit)) ++i;
    if (is(at(i), kIdentifierStart)) return fail_with("trailing junk after parameter", begin, i + 1);
    return token(TokenKind::kParameter, begin, i);
  }
  if (is(at(i), kIdentifierStart))
    while (is(at(i), kIdentifierStart | kDigit)) ++i;
  if (at(i) != '$') return token(TokenKind::kPunctuation, begin, begin + 1);
  const std::string_view tag = text_.substr(begin, i + 1 - begin);
  const auto close = text_.find(tag, i + 1);
  if (close == std::string_view::npos) return fail_with("unterminated dollar-quoted string", begin, size());
  return token(TokenKind::kDollarString, begin, static_cast<std::uint32_t>(close + tag.size()));
}

Token Scanner::number(std::uint32_t begin) {
  TokenKind kind = TokenKind::kInteger;
  std::uint32_t i = begin;
  while (is(at(i), kDigit)) ++i;
  if (at(i) == '.') {
    if (at(i + 1) == '.' && i > begin) return token(kind, begin, i);  // 1..2 is 1 .. 2
    kind = TokenKind::kNumeric;
    ++i;
    while (is(at(i), kDigit)) ++i;
  }
  if (at(i) == 'e' || at(i) == 'E') {
    std::uint32_t exponent = i + 1;
    const bool sign = at(exponent) == '+' || at(exponent) == '-';
    if (sign) ++exponent;
    if (is(at(exponent), kDigit)) {
      kind = TokenKind::kNumeric;
      i = exponent;
      while (is(at(i), kDigit)) ++i;
    } else if (sign) {
      return fail_with("trailing junk after numeric literal", begin, exponent);
    }
  }
  if (is(at(i), kIdentifierStart)) return fail_with("trailing junk after numeric literal", begin, i + 1);
  return token(kind, begin, i);
}

Token Scanner::operator_or_self(std::uint32_t begin) {
  std::uint32_t end = begin + 1;
  bool may_end_in_sign = is(text_[begin], kNotSqlOperator);
  while (end < size() && is(text_[end], kOperatorCharacter)) {
    const char c = text_[end];
    const char after = at(end + 1);
    if ((c == '/' && after == '*') || (c == '-' && after == '-')) break;  // a comment begins inside the run
    may_end_in_sign |= is(c, kNotSqlOperator);
    ++end;
  }
  if (!may_end_in_sign)
    while (end - begin > 1 && (text_[end - 1] == '+' || text_[end - 1] == '-')) --end;
  if (end - begin >= kNameLength) return fail_with("operator too long", begin, end);
  return token(TokenKind::kOperator, begin, end);
}

Error Scanner::error() const {
  Error error = error_at(text_, error_token_.range(), error_message_);
  if (std::string_view(error_message_) == kInvalidEscape) {
    error.sqlstate = "22025";
    error.message = error_message_;
    error.hint = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX.";
  } else if (std::string_view(error_message_) == kUnsafeUnicode) {
    error.sqlstate = sqlstate::kNotSupported;
    error.message = error_message_;
    error.detail =
        "String constants with Unicode escapes cannot be used when standard_conforming_strings is off.";
  }
  return error;
}

int character_position(std::string_view text, std::uint32_t byte_offset) {
  int characters = 1;
  for (std::size_t i = 0; i < byte_offset && i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++characters;
  return characters;
}

Error error_at(std::string_view text, Range range, std::string_view message) {
  Error error;
  error.sqlstate = sqlstate::kSyntaxError;
  error.position = character_position(text, range.begin);
  error.message = message;
  if (range.begin >= text.size())
    error.message += " at end of input";
  else
    error.message.append(" at or near \"").append(range.of(text)).append("\"");
  return error;
}

}  // namespace kintsugi::parser
