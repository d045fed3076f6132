#include "frontend/isolation.h"

#include <string>

#include "parser/scanner.h"

namespace kintsugi::frontend {
namespace {

using parser::Scanner;
using parser::Token;
using parser::TokenKind;

bool ends(const Token& token) {
  return token.kind == TokenKind::kEnd || token.kind == TokenKind::kError;
}

// The value of SET transaction_isolation: a string, or the words of one.
Isolation value_behind(std::string_view text, Scanner& scanner) {
  std::string value;
  for (Token token = scanner.next(); !ends(token); token = scanner.next()) {
    std::string_view word = token.of(text);
    if (word == "=" || word == ";" || parser::is_keyword(text, token, "to")) continue;
    if (word.size() > 1 && (word.front() == '\'' || word.front() == '"'))
      word = word.substr(1, word.size() - 2);
    value.append(value.empty() ? "" : " ").append(word);
  }
  return isolation_named(value);
}

}  // namespace

Isolation isolation_named(std::string_view value) {
  std::string lower(value);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  if (lower == "read committed" || lower == "read uncommitted") return Isolation::kEachItsOwn;
  if (lower == "repeatable read") return Isolation::kOneSnapshot;
  if (lower == "serializable") return Isolation::kSerializable;
  return Isolation::kUnknown;
}

std::optional<Isolation> isolation_said(std::string_view statement) {
  Scanner scanner(statement);
  const auto is = [&](const Token& token, std::string_view word) {
    return parser::is_keyword(statement, token, word);
  };
  const Token first = scanner.next();
  const bool sets = is(first, "set");
  if (!sets && !is(first, "begin") && !is(first, "start")) return std::nullopt;
  std::optional<Isolation> said;
  for (Token token = scanner.next(); !ends(token); token = scanner.next()) {
    if (sets && is(token, "session")) {
      token = scanner.next();
      if (is(token, "characteristics")) return std::nullopt;  // of transactions to come
    }
    if (sets && is(token, "transaction_isolation")) return value_behind(statement, scanner);
    if (!is(token, "isolation")) {
      if (sets && !is(token, "local") && !is(token, "transaction") && !is(token, "read") &&
          !is(token, "only") && !is(token, "write") && !is(token, "not") && !is(token, "deferrable") &&
          token.of(statement) != ",")
        return said;  // another setting
      continue;
    }
    token = scanner.next();  // LEVEL
    token = scanner.next();
    if (is(token, "serializable")) {
      said = Isolation::kSerializable;
    } else if (is(token, "repeatable")) {
      said = Isolation::kOneSnapshot;
      token = scanner.next();  // READ
    } else if (is(token, "read")) {
      said = Isolation::kEachItsOwn;
      token = scanner.next();  // COMMITTED
    }
  }
  return said;
}

bool says_deferrable(std::string_view statement) {
  Scanner scanner(statement);
  bool negated = false, said = false;
  for (Token token = scanner.next(); !ends(token); token = scanner.next()) {
    if (parser::is_keyword(statement, token, "deferrable")) said = !negated;
    negated = parser::is_keyword(statement, token, "not");
  }
  return said;
}

}  // namespace kintsugi::frontend
