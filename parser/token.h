// A token of PostgreSQL's lexer: a kind and a byte range of the text it came from. It owns nothing and knows no
// text; whoever holds the text can read it back with `of`. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace kintsugi::parser {

// A half-open byte range of a statement's text.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] bool empty() const { return begin >= end; }
  [[nodiscard]] std::uint32_t size() const { return end - begin; }
  [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
  friend bool operator==(const Range&, const Range&) = default;
};

enum class TokenKind : std::uint8_t {
  kEnd,                // the end of the text; its range is empty
  kIdentifier,         // unquoted: a name or a keyword
  kQuotedIdentifier,   // "..."
  kUnicodeIdentifier,  // U&"..."; a UESCAPE clause is two further tokens, as in PostgreSQL's own lexer
  kString,             // '...', continued parts included
  kEscapeString,       // E'...'; and '...' while standard_conforming_strings is off
  kUnicodeString,      // U&'...'
  kBitString,          // B'...'
  kHexString,          // X'...'
  kDollarString,       // $tag$...$tag$
  kInteger,            // digits only, of any length
  kNumeric,            // 1.5, .5, 1., 1e5
  kParameter,          // $1
  kOperator,     // any run of operator characters, after PostgreSQL's rules for comments and trailing + and -
  kPunctuation,  // , ( ) [ ] . ; :   and   :: := ..   and any character that begins nothing
  kError,        // the text cannot be read from here; Scanner::error says why
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
  [[nodiscard]] Range range() const { return {begin, end}; }
  friend bool operator==(const Token&, const Token&) = default;
};

// Whether the token is the unquoted word `word` (given in lower case), whatever its case. Allocates nothing.
[[nodiscard]] inline bool is_keyword(std::string_view text, Token token, std::string_view word) {
  if (token.kind != TokenKind::kIdentifier || token.end - token.begin != word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = text[token.begin + i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != word[i]) return false;
  }
  return true;
}

// Whether the token is exactly this punctuation or operator.
[[nodiscard]] inline bool is_symbol(std::string_view text, Token token, std::string_view symbol) {
  return (token.kind == TokenKind::kPunctuation || token.kind == TokenKind::kOperator) &&
         token.of(text) == symbol;
}

}  // namespace kintsugi::parser
