// Statements of which PostgreSQL alone knows the grammar: what they are about stands behind a word.
#include "parser/literals.h"
#include "parser/scanner.h"
#include "parser/tree_builder.h"

namespace kintsugi::parser {
namespace {

std::vector<Token> tokens_of(std::string_view text, Range range) {
  std::vector<Token> tokens;
  Scanner scanner(text.substr(0, range.end), true);
  scanner.seek(range.begin);
  for (Token token = scanner.next(); token.kind != TokenKind::kEnd && token.kind != TokenKind::kError;
       token = scanner.next())
    tokens.push_back(token);
  return tokens;
}

}  // namespace

const Utility* TreeBuilder::known_by_head(G::HeadStatementContext* c) {
  std::string_view words = lower({range(c).begin, range(c->so->start).begin});
  while (!words.empty() && words.back() == ' ') words.remove_suffix(1);
  const std::vector<Token> tokens = tokens_of(text_, range(c->so));
  auto* made = make<Utility>();
  made->head = words;
  const auto about = [&](std::string_view kind) { return words.ends_with(kind); };
  if (about("event trigger")) return made;
  if (words == "create rule" || words == "create or replace rule")
    made->relation = name_behind(tokens, "to");
  else if (about("trigger") || about("policy") || about("rule"))
    made->relation = name_behind(tokens, "on");
  else if (words == "create statistics")
    made->relation = name_behind(tokens, "from");
  else if (words == "alter schema" && tokens.size() == 4 && is_keyword(text_, tokens[1], "rename")) {
    made->schema = name_of(tokens[0]);
    made->new_schema = name_of(tokens[3]);
  }
  return made;
}

// The first such word outside parentheses, and the name after it.
QualifiedName TreeBuilder::name_behind(const std::vector<Token>& tokens, std::string_view word) {
  int depth = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (is_symbol(text_, tokens[i], "(")) ++depth;
    if (is_symbol(text_, tokens[i], ")")) --depth;
    if (depth != 0 || !is_keyword(text_, tokens[i], word)) continue;
    std::vector<Name> parts{name_of(tokens[++i])};
    while (i + 2 < tokens.size() && is_symbol(text_, tokens[i + 1], "."))
      parts.push_back(name_of(tokens[i += 2]));
    return {list(parts), between(parts.front().range, parts.back().range)};
  }
  return {};
}

Name TreeBuilder::name_of(const Token& token) {
  const std::string_view plain = plain_identifier(text_, token);
  if (!plain.empty()) return {plain, token.range()};
  return {keep(decode_identifier(text_, token).value_or(std::string())), token.range()};
}

}  // namespace kintsugi::parser
