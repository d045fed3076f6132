#include "parser/grammar_tokens.h"

#include "parser/grammar_parser.h"
#include "parser/keywords.h"
#include "parser/literals.h"
#include "parser/scanner.h"

namespace kintsugi::parser {
namespace {

using kintsugi::parser::Token;

std::size_t symbol_type(std::string_view symbol) {
  if (symbol.size() == 1) {
    switch (symbol[0]) {
      case '(': return Grammar::LPAREN;
      case ')': return Grammar::RPAREN;
      case '[': return Grammar::LBRACKET;
      case ']': return Grammar::RBRACKET;
      case ',': return Grammar::COMMA;
      case ';': return Grammar::SEMICOLON;
      case '.': return Grammar::DOT;
      case ':': return Grammar::COLON;
      case '+': return Grammar::PLUS;
      case '-': return Grammar::MINUS;
      case '*': return Grammar::STAR;
      case '/': return Grammar::SLASH;
      case '%': return Grammar::PERCENT;
      case '^': return Grammar::CARET;
      case '<': return Grammar::LT;
      case '>': return Grammar::GT;
      case '=': return Grammar::EQ;
      default: return Grammar::OTHER;
    }
  }
  if (symbol == "::") return Grammar::TYPECAST;
  if (symbol == ":=") return Grammar::COLON_EQUALS;
  if (symbol == "..") return Grammar::DOT_DOT;
  if (symbol == "=>") return Grammar::EQUALS_GREATER;
  if (symbol == "<=") return Grammar::LESS_EQUALS;
  if (symbol == ">=") return Grammar::GREATER_EQUALS;
  if (symbol == "<>" || symbol == "!=") return Grammar::NOT_EQUALS;
  return Grammar::OP;
}

// PostgreSQL's grammar takes only 32-bit integers as Iconst; a longer run of digits is a numeric to it.
bool fits_int32(std::string_view digits) {
  std::uint64_t value = 0;
  for (char c : digits) {
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
    if (value > 0x7FFFFFFF) return false;
  }
  return true;
}

std::size_t grammar_type(std::string_view text, Token token) {
  switch (token.kind) {
    case TokenKind::kEnd: return antlr4::Token::EOF;
    case TokenKind::kIdentifier: {
      // N'...' is NCHAR '...' to PostgreSQL.
      if (token.end - token.begin == 1 && (text[token.begin] | 0x20) == 'n' && token.end < text.size() &&
          text[token.end] == '\'')
        return Grammar::K_NCHAR;
      const Keyword* keyword = find_keyword(token.of(text));
      return keyword == nullptr ? static_cast<std::size_t>(Grammar::IDENT) : keyword->token;
    }
    case TokenKind::kQuotedIdentifier:
    case TokenKind::kUnicodeIdentifier: return Grammar::IDENT;
    case TokenKind::kString:
    case TokenKind::kEscapeString:
    case TokenKind::kUnicodeString:
    case TokenKind::kDollarString: return Grammar::SCONST;
    case TokenKind::kBitString: return Grammar::BCONST;
    case TokenKind::kHexString: return Grammar::XCONST;
    case TokenKind::kInteger: return fits_int32(token.of(text)) ? Grammar::ICONST : Grammar::FCONST;
    case TokenKind::kNumeric: return Grammar::FCONST;
    case TokenKind::kParameter: return Grammar::PARAM;
    case TokenKind::kOperator: {
      const std::size_t type = symbol_type(token.of(text));
      return type == Grammar::OTHER ? static_cast<std::size_t>(Grammar::OP) : type;
    }
    case TokenKind::kPunctuation: return symbol_type(token.of(text));
    case TokenKind::kError: break;
  }
  return Grammar::OTHER;
}

bool is_any(std::size_t type) {
  return type == Grammar::K_ANY || type == Grammar::K_SOME || type == Grammar::K_ALL;
}

bool is_open(std::size_t type) {
  return type == Grammar::LPAREN || type == Grammar::LPAREN_SELECT || type == Grammar::LPAREN_WRAP;
}

// What stands before the last part of the name in ALTER TABLE name REPLICATED.
bool follows_table_name(std::size_t before_name) {
  return before_name == Grammar::K_TABLE || before_name == Grammar::K_EXISTS ||
         before_name == Grammar::K_ONLY || before_name == Grammar::DOT;
}

bool begins_query(std::size_t type, std::size_t after) {
  switch (type) {
    case Grammar::K_SELECT:
    case Grammar::K_TABLE:
    case Grammar::K_WITH:
    case Grammar::WITH_LA: return true;
    case Grammar::K_VALUES: return is_open(after);
    default: return false;
  }
}

// What goes on a query whose first operand stands in parentheses.
bool continues_query(std::size_t type) {
  switch (type) {
    case Grammar::K_UNION:
    case Grammar::K_INTERSECT:
    case Grammar::K_EXCEPT:
    case Grammar::K_ORDER:
    case Grammar::K_LIMIT:
    case Grammar::K_OFFSET:
    case Grammar::K_FETCH:
    case Grammar::K_FOR: return true;
    default: return false;
  }
}

}  // namespace

Status GrammarTokens::read(std::string_view text, Range statement, bool standard_conforming_strings) {
  text_ = text;
  position_ = 0;
  tokens_.clear();
  Scanner scanner(text.substr(0, statement.end), standard_conforming_strings);
  scanner.seek(statement.begin);
  for (;;) {
    const Token token = scanner.next();
    if (token.kind == TokenKind::kError) return fail(scanner.error());
    if (token.kind == TokenKind::kEnd) break;
    tokens_.emplace_back(grammar_type(text, token), token);
  }
  // The end says what stands behind it, so that an error there reads as PostgreSQL's: the semicolon, or the end
  // of input.
  Scanner behind(text, standard_conforming_strings);
  behind.seek(statement.end);
  Token end = behind.next();
  if (end.kind == TokenKind::kError) end = {TokenKind::kEnd, statement.end, statement.end};
  tokens_.emplace_back(antlr4::Token::EOF, end);
  KG_CHECK(unicode_escapes());
  look_ahead();
  match_parentheses();
  quantified_operators();
  own_words();
  return {};
}

void GrammarTokens::turn_parenthesis(std::size_t index) {
  GrammarToken& turned = tokens_[index];
  switch (turned.type()) {
    case Grammar::LPAREN: turned.set_type(Grammar::LPAREN_SELECT); break;
    case Grammar::LPAREN_SELECT: turned.set_type(Grammar::LPAREN_WRAP); break;
    default: turned.set_type(Grammar::LPAREN); break;
  }
}

std::vector<std::size_t> GrammarTokens::parentheses_at(std::size_t index) const {
  std::vector<std::size_t> found;
  if (is_open(type_at(index))) found.push_back(index);
  for (std::size_t i = index; i > 0 && is_open(type_at(i - 1)) && found.size() < 4; --i) found.push_back(i - 1);
  return found;
}

antlr4::Token* GrammarTokens::LT(ssize_t k) {
  if (k < 0) {
    const auto back = static_cast<std::size_t>(-k);
    return position_ >= back ? &tokens_[position_ - back] : nullptr;
  }
  const std::size_t index = position_ + static_cast<std::size_t>(k) - 1;
  return &tokens_[index < tokens_.size() ? index : tokens_.size() - 1];
}

std::size_t GrammarTokens::LA(ssize_t k) {
  const antlr4::Token* token = LT(k);
  return token == nullptr ? antlr4::Token::EOF : static_cast<const GrammarToken*>(token)->type();
}

bool GrammarTokens::word_at(std::size_t index, std::string_view word) const {
  return index < tokens_.size() && is_keyword(text_, tokens_[index].token(), word);
}

// U&'...' UESCAPE '!' becomes one token.
Status GrammarTokens::unicode_escapes() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tokens_.size(); ++i, ++kept) {
    GrammarToken token = tokens_[i];
    const TokenKind kind = token.token().kind;
    if (kind == TokenKind::kUnicodeString || kind == TokenKind::kUnicodeIdentifier) {
      if (type_at(i + 1) == Grammar::K_UESCAPE) {
        if (type_at(i + 2) != Grammar::SCONST || tokens_[i + 2].token().kind == TokenKind::kUnicodeString) {
          const std::size_t at = i + 2 < tokens_.size() ? i + 2 : tokens_.size() - 1;
          return fail(
              error_at(text_, tokens_[at].range(), "UESCAPE must be followed by a simple string literal"));
        }
        KG_TRY(const std::string escape, decode_string(text_, tokens_[i + 2].token()));
        const char c = escape.size() == 1 ? escape[0] : '\0';
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (c == '\0' || hex || c == '+' || c == '\'' || c == '"' || c == ' ' || (c >= '\t' && c <= '\r'))
          return fail(error_at(text_, tokens_[i + 2].range(), "invalid Unicode escape character"));
        token.set_escape(c);
        token.extend_to(tokens_[i + 2].range().end);
        i += 2;
      }
      KG_CHECK(check_unicode_literal(text_, token.token(), token.escape()));
    }
    tokens_[kept] = token;
  }
  tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(kept), tokens_.end());
  return {};
}

// The words PostgreSQL's parser tells apart by the next token.
void GrammarTokens::look_ahead() {
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    const std::size_t next = tokens_[i + 1].type();
    switch (tokens_[i].type()) {
      case Grammar::K_NOT:
        if (next == Grammar::K_BETWEEN || next == Grammar::K_IN || next == Grammar::K_LIKE ||
            next == Grammar::K_ILIKE || next == Grammar::K_SIMILAR)
          tokens_[i].set_type(Grammar::NOT_LA);
        break;
      case Grammar::K_NULLS:
        if (next == Grammar::K_FIRST || next == Grammar::K_LAST) tokens_[i].set_type(Grammar::NULLS_LA);
        break;
      case Grammar::K_WITH:
        if (next == Grammar::K_TIME || next == Grammar::K_ORDINALITY) tokens_[i].set_type(Grammar::WITH_LA);
        break;
      case Grammar::K_OPERATOR: {
        // OPERATOR(schema.+) is an operator; OPERATOR as a name of anything else stays a word.
        if (next != Grammar::LPAREN) break;
        std::size_t j = i + 2;
        while (type_at(j + 1) == Grammar::DOT) j += 2;
        if (j < tokens_.size() && tokens_[j].token().kind == TokenKind::kOperator)
          tokens_[i].set_type(is_any(type_at(j + 2)) ? Grammar::OPERATOR_ANY : Grammar::OPERATOR_OP);
        break;
      }
      default: break;
    }
  }
}

// `= ANY (...)` and its like get operator tokens of their own.
void GrammarTokens::quantified_operators() {
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    if (!is_any(tokens_[i + 1].type())) continue;
    switch (tokens_[i].type()) {
      case Grammar::LT:
      case Grammar::GT:
      case Grammar::EQ:
      case Grammar::LESS_EQUALS:
      case Grammar::GREATER_EQUALS:
      case Grammar::NOT_EQUALS: tokens_[i].set_type(Grammar::CMP_ANY); break;
      case Grammar::OP:
      case Grammar::PLUS:
      case Grammar::MINUS:
      case Grammar::STAR:
      case Grammar::SLASH:
      case Grammar::PERCENT:
      case Grammar::CARET: tokens_[i].set_type(Grammar::OP_ANY); break;
      case Grammar::K_LIKE:
      case Grammar::K_ILIKE: tokens_[i].set_type(Grammar::LIKE_ANY); break;
      default: break;
    }
  }
}

// Inside out: a parenthesis holds a query when it begins one, or when it begins with such a parenthesis and
// goes on as a query does (UNION ...). When it holds nothing but such a parenthesis it wraps a query: whether
// that is a subquery in two pairs of parentheses or an expression is for the grammar to say.
void GrammarTokens::match_parentheses() {
  open_.clear();
  closed_.assign(tokens_.size(), 0);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].type() == Grammar::LPAREN) open_.push_back(i);
    if (tokens_[i].type() != Grammar::RPAREN || open_.empty()) continue;
    const std::size_t begin = open_.back();
    open_.pop_back();
    closed_[begin] = i;
  }
  for (std::size_t i = tokens_.size(); i-- > 0;) {
    if (tokens_[i].type() != Grammar::LPAREN) continue;
    const std::size_t inner = type_at(i + 1);
    if (begins_query(inner, type_at(i + 2))) {
      tokens_[i].set_type(Grammar::LPAREN_SELECT);
      continue;
    }
    if ((inner != Grammar::LPAREN_SELECT && inner != Grammar::LPAREN_WRAP) || closed_[i + 1] == 0) continue;
    const std::size_t behind = closed_[i + 1] + 1;
    const bool call = i > 0 && tokens_[i - 1].token().kind != TokenKind::kPunctuation && [&] {
      const std::size_t before = tokens_[i - 1].type();
      if (before == Grammar::IDENT) return true;
      if (tokens_[i - 1].token().kind != TokenKind::kIdentifier) return false;
      const Keyword* keyword = find_keyword(tokens_[i - 1].token().of(text_));
      return keyword != nullptr && keyword->category != KeywordCategory::kReserved && before != Grammar::K_IN &&
             before != Grammar::K_EXISTS && before != Grammar::K_COPY && before != Grammar::K_EXPLAIN &&
             before != Grammar::K_JOIN && before != Grammar::K_MATERIALIZED;
    }();
    if (closed_[i] == behind)
      tokens_[i].set_type(Grammar::LPAREN_WRAP);
    else if (!call && continues_query(type_at(behind)))
      tokens_[i].set_type(Grammar::LPAREN_SELECT);
  }
}

// Kintsugi's words are tokens only in a statement that begins as one of Kintsugi's, and in the clause behind
// CREATE or ALTER TABLE that says where the rows live.
void GrammarTokens::own_words() {
  const std::size_t first = type_at(0);
  if (first == Grammar::IDENT) {
    if (word_at(0, "split") || word_at(0, "rebalance") || word_at(0, "drain") || word_at(0, "cancel") ||
        word_at(0, "resume"))
      retype_own_words(0);
    return;
  }
  switch (first) {
    case Grammar::K_CREATE:
    case Grammar::K_ALTER:
    case Grammar::K_DROP:
      if (word_at(1, "shard") || word_at(1, "shardlet")) return retype_own_words(1);
      break;
    case Grammar::K_MERGE:
      if (word_at(1, "shardlets")) retype_own_words(1);
      return;
    case Grammar::K_MOVE:
      if (word_at(1, "shardlet") && tokens_.size() > 3) retype_own_words(1);
      return;
    case Grammar::K_SHOW: {
      // The words alone could also be a setting's name; what follows them cannot.
      const bool own = word_at(1, "shards") || (word_at(1, "shard") && word_at(2, "maps")) ||
                       word_at(1, "shardlets") || (word_at(1, "sharded") && type_at(2) == Grammar::K_TABLES) ||
                       word_at(1, "jobs") || (word_at(1, "job") && type_at(2) != antlr4::Token::EOF) ||
                       word_at(1, "routers") || word_at(1, "pools") || word_at(1, "stats");
      if (own && type_at(2) != Grammar::DOT) retype_own_words(1);
      return;
    }
    default: return;
  }
  if (first == Grammar::K_DROP) return;
  int depth = 0;
  for (std::size_t i = 2; i < tokens_.size(); ++i) {
    const std::size_t type = tokens_[i].type();
    if (is_open(type)) ++depth;
    if (type == Grammar::RPAREN) --depth;
    if (depth == 0 && type == Grammar::K_AS) return;  // CREATE TABLE AS: a query follows
    if (depth != 0 || type != Grammar::IDENT) continue;
    if (word_at(i, "shard") && type_at(i + 1) == Grammar::K_BY)
      tokens_[i].set_type(Grammar::W_SHARD);
    else if (word_at(i, "replicated") && type_at(i + 1) == antlr4::Token::EOF &&
             (first == Grammar::K_CREATE ? type_at(i - 1) == Grammar::RPAREN
                                         : follows_table_name(type_at(i - 2))))
      tokens_[i].set_type(Grammar::W_REPLICATED);
  }
}

void GrammarTokens::retype_own_words(std::size_t from) {
  for (std::size_t i = from; i < tokens_.size(); ++i) {
    if (tokens_[i].token().kind != TokenKind::kIdentifier || tokens_[i].type() != Grammar::IDENT) continue;
    if (const auto own = find_own_word(tokens_[i].token().of(text_)); own != 0) tokens_[i].set_type(own);
  }
}

}  // namespace kintsugi::parser
