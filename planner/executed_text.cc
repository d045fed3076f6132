// The texts that a body in plpgsql EXECUTEs: whether they can name a table that the body itself does not.
#include <algorithm>
#include <cctype>
#include <optional>

#include "parser/literals.h"
#include "parser/scanner.h"
#include "planner/catalog.h"

namespace kintsugi::planner {
namespace {

using parser::is_keyword;
using parser::is_symbol;
using parser::Token;
using parser::TokenKind;

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || c == '$' || byte >= 128;
}

// One text that is put together of literals, and of names and values that come when it runs.
class Executed {
 public:
  Executed(std::string_view body, parser::Scanner& scanner) : body_(body), scanner_(scanner) { next(); }

  // Reads the expression behind EXECUTE. False: something else is in it.
  bool read() {
    for (;;) {
      if (!piece()) return false;
      if (!is_symbol(body_, token_, "||")) break;
      next();
    }
    return is_symbol(body_, token_, ";") || is("into") || is("using") || is("loop") ||
           token_.kind == TokenKind::kEnd;
  }

  // Names that come when it runs are columns of what it is given, where it reads no table.
  [[nodiscard]] bool names_no_table() const {
    const auto words = words_of(text_);
    if (std::binary_search(words.begin(), words.end(), std::string_view("execute"))) return false;
    if (!names_) return true;
    static constexpr std::string_view kReads[] = {"from", "join", "table", "into", "with", "values"};
    if (std::any_of(std::begin(kReads), std::end(kReads), [&](std::string_view word) {
          return std::binary_search(words.begin(), words.end(), word);
        }))
      return false;
    const std::size_t first = text_.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return false;
    parser::Scanner scanner(text_);
    if (!is_keyword(text_, scanner.next(), "select")) return false;
    // A name before a parenthesis is a function's.
    for (std::size_t at = text_.find(kName); at != std::string::npos; at = text_.find(kName, at + 1)) {
      if (at + 1 < text_.size() && is_word(text_[at + 1])) return false;
      const std::size_t behind = text_.find_first_not_of(" \t\r\n", at + 1);
      if (behind != std::string::npos && text_[behind] == '(') return false;
    }
    return true;
  }

 private:
  static constexpr char kName = '\1', kValue = '\2';

  void next() { token_ = scanner_.next(); }
  [[nodiscard]] bool is(std::string_view word) const { return is_keyword(body_, token_, word); }

  // The literal at the token; none: it is none, or its words may be hidden.
  std::optional<std::string> literal() {
    const bool text = token_.kind == TokenKind::kString || token_.kind == TokenKind::kEscapeString ||
                      token_.kind == TokenKind::kDollarString;
    if (!text ||
        (token_.kind == TokenKind::kEscapeString && token_.of(body_).find('\\') != std::string_view::npos))
      return std::nullopt;
    auto value = parser::decode_string(body_, token_);
    if (!value) return std::nullopt;
    next();
    return std::move(*value);
  }

  // What would be one word with what stands before is no word of the body.
  bool add(std::string_view text) {
    if (text.empty()) return true;
    if (!text_.empty() && is_word(text_.back()) && is_word(text.front())) return false;
    text_ += text;
    return true;
  }

  bool arguments() {
    for (int depth = 1; depth > 0; next()) {
      if (token_.kind == TokenKind::kEnd || token_.kind == TokenKind::kError || is_symbol(body_, token_, ";"))
        return false;
      depth += is_symbol(body_, token_, "(") ? 1 : is_symbol(body_, token_, ")") ? -1 : 0;
    }
    return true;
  }

  bool piece() {
    if (is("quote_ident") || is("quote_literal") || is("quote_nullable")) {
      const bool name = is("quote_ident");
      next();
      if (!is_symbol(body_, token_, "(")) return false;
      next();
      names_ |= name;
      return add(std::string(1, name ? kName : kValue)) && arguments();
    }
    if (is("format")) {
      next();
      if (!is_symbol(body_, token_, "(")) return false;
      next();
      const auto pattern = literal();
      return pattern && formatted(*pattern) && arguments();
    }
    const auto text = literal();
    return text && add(*text);
  }

  // %I, %1$L
  bool formatted(std::string_view pattern) {
    std::string text;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] != '%') {
        text += pattern[i];
        continue;
      }
      ++i;
      const std::size_t digits = pattern.find_first_not_of("0123456789", i);
      if (digits != i && digits != std::string_view::npos && pattern[digits] == '$') i = digits + 1;
      const char kind = i < pattern.size() ? pattern[i] : '\0';
      if (kind != '%' && kind != 'I' && kind != 'L') return false;
      names_ |= kind == 'I';
      text += kind == 'I' ? kName : kind == 'L' ? kValue : '%';
    }
    return add(text);
  }

  std::string_view body_;
  parser::Scanner& scanner_;
  Token token_;
  std::string text_;  // with marks for what comes when it runs
  bool names_ = false;
};

}  // namespace

bool puts_together(std::string_view body) {
  parser::Scanner scanner(body);
  Token before;
  for (Token token = scanner.next(); token.kind != TokenKind::kEnd && token.kind != TokenKind::kError;
       before = token, token = scanner.next()) {
    if (!is_keyword(body, token, "execute") || is_symbol(body, before, ".")) continue;
    parser::Scanner ahead(body);
    ahead.seek(token.end);
    // GRANT EXECUTE ON, a trigger's EXECUTE FUNCTION.
    const Token next = ahead.next();
    if (is_keyword(body, next, "on") || is_keyword(body, next, "function") ||
        is_keyword(body, next, "procedure"))
      continue;
    ahead.seek(token.end);
    Executed executed(body, ahead);
    if (!executed.read() || !executed.names_no_table()) return true;
  }
  return false;
}

}  // namespace kintsugi::planner
