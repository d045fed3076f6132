// PostgreSQL 15's lexical rules by hand: one forward pass over a string_view, no allocation, no copy. It
// returns what PostgreSQL's flex scanner returns, token for token, or kError where that one raises an error.
// White space and comments are skipped. The text must outlive the scanner and be shorter than 4 GB. One thread
// at a time; scanners are cheap.
// One thing it leaves to who decodes the literal: whether the bytes that E'\\xAB' makes are valid UTF-8.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "parser/token.h"

namespace kintsugi::parser {

class Scanner {
 public:
  explicit Scanner(std::string_view text, bool standard_conforming_strings = true)
      : text_(text), standard_strings_(standard_conforming_strings) {}

  // The next token; kEnd again and again at the end, the same kError again and again after an error. An error
  // token's begin is where PostgreSQL's error cursor points, its end is where the text that PostgreSQL quotes
  // ends.
  Token next();

  // Goes on from this byte, which must not be inside a token.
  void seek(std::uint32_t position) { position_ = position; }

  // What PostgreSQL says about the kError token, without the «at or near» part; nullptr while there was no
  // error.
  [[nodiscard]] const char* error_message() const { return error_message_; }
  // The client's error for the kError token, just as PostgreSQL reports it. Only after a kError.
  [[nodiscard]] Error error() const;
  // Where the token begins that could not be read: an escape's error points into the middle of its string.
  [[nodiscard]] std::uint32_t failed_token_begin() const { return position_; }
  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  [[nodiscard]] char at(std::uint32_t position) const {
    return position < text_.size() ? text_[position] : '\0';
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }

  bool skip_blanks_and_comments();
  Token token(TokenKind kind, std::uint32_t begin, std::uint32_t end);
  Token fail_with(const char* message, std::uint32_t begin, std::uint32_t end);
  Token identifier(std::uint32_t begin);
  Token quoted_identifier(TokenKind kind, std::uint32_t begin, std::uint32_t quote);
  Token quoted_string(TokenKind kind, std::uint32_t begin, std::uint32_t quote, const char* unterminated);
  Token escape_string(std::uint32_t begin, std::uint32_t quote);
  Token dollar(std::uint32_t begin);
  Token number(std::uint32_t begin);
  Token operator_or_self(std::uint32_t begin);
  [[nodiscard]] std::uint32_t continued_string(std::uint32_t after_quote) const;

  std::string_view text_;
  std::uint32_t position_ = 0;
  bool standard_strings_;
  const char* error_message_ = nullptr;
  Token error_token_;
};

// The client's error for a place in its text: `message at or near "..."`, or `message at end of input`,
// SQLSTATE 42601, with the position in characters as PostgreSQL counts it (UTF-8).
[[nodiscard]] Error error_at(std::string_view text, Range range, std::string_view message);

// The 1-based character position of a byte offset.
[[nodiscard]] int character_position(std::string_view text, std::uint32_t byte_offset);

}  // namespace kintsugi::parser
