#include "frontend/called_settings.h"

#include <algorithm>

#include "base/sql_quote.h"
#include "parser/scanner.h"

namespace kintsugi::frontend {

using parser::Token;
using parser::TokenKind;

std::optional<std::string> settings_as_block(std::string_view text) {
  parser::Scanner scanner(text);
  if (const Token first = scanner.next(); !parser::is_keyword(text, first, "select")) return std::nullopt;
  std::string calls;
  for (;;) {
    const Token token = scanner.next();
    const std::string_view own = token.of(text);
    if (token.kind == TokenKind::kEnd || own == ";") break;
    const bool word =
        token.kind == TokenKind::kIdentifier &&
        (parser::is_keyword(text, token, "set_config") || parser::is_keyword(text, token, "pg_catalog") ||
         parser::is_keyword(text, token, "true") || parser::is_keyword(text, token, "false"));
    const bool mark = own == "(" || own == ")" || own == "," || own == ".";
    const bool plain_string = token.kind == TokenKind::kString && own.find('\\') == std::string_view::npos;
    if (!word && !mark && !plain_string) return std::nullopt;
    calls.append(own);
  }
  return "DO " + quote_literal("BEGIN PERFORM " + calls + "; END");
}

bool sets_alike(std::string_view text) {
  static constexpr std::string_view kWords[] = {"select", "set_config",  "pg_catalog", "true", "false", "null",
                                                "from",   "pg_settings", "where",      "name", "and",   "as"};
  parser::Scanner scanner(text);
  for (;;) {
    const Token token = scanner.next();
    if (token.kind == TokenKind::kEnd) return true;
    if (token.kind == TokenKind::kError) return false;
    if (token.kind != TokenKind::kIdentifier) continue;
    const auto is = [&](std::string_view word) { return parser::is_keyword(text, token, word); };
    if (!std::ranges::any_of(kWords, is)) return false;
  }
}

}  // namespace kintsugi::frontend
