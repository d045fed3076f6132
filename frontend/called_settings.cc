#include "frontend/called_settings.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/sql_quote.h"
#include "parser/scanner.h"

namespace kintsugi::frontend {

using parser::Token;
using parser::TokenKind;

namespace {

constexpr std::string_view kTypes[] = {"text", "varchar", "bool", "boolean"};  // of casts
constexpr std::uint32_t kBool = 16;
constexpr int kIsLocal = 3;  // the third argument

bool is_text(std::uint32_t type) {
  constexpr std::uint32_t kTexts[] = {0,   19,   25,
                                      705, 1042, 1043};  // 0: not said, and found to be what is wanted
  return std::ranges::find(kTexts, type) != std::end(kTexts);
}

bool is_true(std::string_view word) {
  static constexpr std::string_view kTrue[] = {"t", "true", "on", "yes", "y", "1"};
  return std::ranges::find(kTrue, word) != std::end(kTrue);
}

// As the argument of set_config() at this place.
std::optional<std::string> literal_of(const planner::Parameter& value, int place) {
  if (place != kIsLocal) {
    if (!is_text(value.type)) return std::nullopt;
    return value.null ? "NULL" : quote_literal(value.bytes);
  }
  if (value.null || (value.type != kBool && !is_text(value.type))) return std::nullopt;
  const bool as_byte = value.binary && (value.type == kBool || value.type == 0);
  const bool holds = as_byte ? value.bytes == std::string_view("\1", 1) : is_true(value.bytes);
  return holds ? std::optional<std::string>("true") : std::nullopt;
}

}  // namespace

std::string with_values(std::string_view text, std::span<const planner::Parameter> parameters) {
  std::string made;
  std::uint32_t at = 0;
  int place = 0;  // of the argument
  parser::Scanner scanner(text);
  for (Token token = scanner.next(); token.kind != TokenKind::kEnd && token.kind != TokenKind::kError;
       token = scanner.next()) {
    const std::string_view own = token.of(text);
    if (own == "(") place = 1;
    if (own == ",") ++place;
    if (token.kind != TokenKind::kParameter) continue;
    std::size_t number = 0;
    std::from_chars(own.data() + 1, own.data() + own.size(), number);
    if (number < 1 || number > parameters.size()) continue;
    const auto literal = literal_of(parameters[number - 1], place);
    if (!literal) continue;
    made.append(text.substr(at, token.begin - at)).append(*literal);
    at = token.end;
  }
  return made.append(text.substr(at));
}

std::optional<std::string> settings_as_block(std::string_view text) {
  parser::Scanner scanner(text);
  if (const Token first = scanner.next(); !parser::is_keyword(text, first, "select")) return std::nullopt;
  std::string calls;
  int depth = 0;
  bool cast = false;
  for (;;) {
    const Token token = scanner.next();
    const std::string_view own = token.of(text);
    if (token.kind == TokenKind::kEnd || own == ";") break;
    const auto is = [&](std::string_view word) { return parser::is_keyword(text, token, word); };
    if (is("as") && depth == 0) {  // a name of the column
      (void)scanner.next();
      continue;
    }
    depth += own == "(" ? 1 : own == ")" ? -1 : 0;
    const bool word = token.kind == TokenKind::kIdentifier &&
                      (cast ? std::ranges::any_of(kTypes, is)
                            : is("set_config") || is("pg_catalog") || is("true") || is("false") || is("null"));
    const bool mark = own == "(" || own == ")" || own == "," || own == "." || own == "::";
    const bool plain_string = token.kind == TokenKind::kEscapeString ||
                              (token.kind == TokenKind::kString && own.find('\\') == std::string_view::npos);
    if (!word && !mark && !plain_string) return std::nullopt;
    cast = own == "::";
    calls.append(own);
  }
  return "DO " + quote_literal("BEGIN PERFORM " + calls + "; END");
}

bool sets_alike(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      "select", "set_config", "pg_catalog", "true", "false", "null",    "from", "pg_settings",
      "where",  "name",       "and",        "as",   "text",  "varchar", "bool", "boolean"};
  parser::Scanner scanner(text);
  bool named = false;  // the next is what a column is called
  for (;;) {
    const Token token = scanner.next();
    if (token.kind == TokenKind::kEnd) return true;
    if (token.kind == TokenKind::kError) return false;
    const bool names = std::exchange(named, parser::is_keyword(text, token, "as"));
    if (names || token.kind != TokenKind::kIdentifier) continue;
    const auto is = [&](std::string_view word) { return parser::is_keyword(text, token, word); };
    if (!std::ranges::any_of(kWords, is)) return false;
  }
}

}  // namespace kintsugi::frontend
