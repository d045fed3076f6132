// The tokens of one statement as the grammar wants them: PostgreSQL's keywords looked up, the few words that
// PostgreSQL's own parser tells apart by looking ahead (NOT BETWEEN, NULLS FIRST, WITH TIME) marked, and
// parentheses that hold a subquery told from those that hold an expression, so that the grammar never has to
// look far ahead. Inside parser/ only: this header knows ANTLR. One thread.
#pragma once

#include <Token.h>
#include <TokenStream.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "parser/token.h"

namespace kintsugi::parser {

class GrammarToken final : public antlr4::Token {
 public:
  GrammarToken(std::size_t type, kintsugi::parser::Token token) : type_(type), token_(token) {}

  [[nodiscard]] std::size_t type() const { return type_; }
  void set_type(std::size_t type) { type_ = type; }
  [[nodiscard]] kintsugi::parser::Token token() const { return token_; }
  [[nodiscard]] Range range() const { return token_.range(); }
  void extend_to(std::uint32_t end) { token_.end = end; }
  // A U&'...' or U&"..." literal's escape character.
  [[nodiscard]] char escape() const { return escape_; }
  void set_escape(char escape) { escape_ = escape; }

  std::string getText() const override { return {}; }
  std::size_t getType() const override { return type_; }
  std::size_t getLine() const override { return 1; }
  std::size_t getCharPositionInLine() const override { return token_.begin; }
  std::size_t getChannel() const override { return 0; }
  std::size_t getTokenIndex() const override { return 0; }
  std::size_t getStartIndex() const override { return token_.begin; }
  std::size_t getStopIndex() const override { return token_.end; }
  antlr4::TokenSource* getTokenSource() const override { return nullptr; }
  antlr4::CharStream* getInputStream() const override { return nullptr; }
  std::string toString() const override { return {}; }

 private:
  std::size_t type_;
  kintsugi::parser::Token token_;
  char escape_ = '\\';
};

class GrammarTokens final : public antlr4::TokenStream {
 public:
  // Reads the tokens of `statement`, a range of `text`. What follows the range is looked at only for the text
  // of an error at the statement's end. Fails as PostgreSQL does where the text cannot be scanned.
  Status read(std::string_view text, Range statement, bool standard_conforming_strings);

  [[nodiscard]] std::string_view text() const { return text_; }

  // Makes an opening parenthesis one of the next kind. Three turns make it what it was.
  void turn_parenthesis(std::size_t index);
  // The token at `index` if it opens a parenthesis, and the opening ones directly before it; four at most.
  [[nodiscard]] std::vector<std::size_t> parentheses_at(std::size_t index) const;
  [[nodiscard]] std::size_t index_of(const GrammarToken& token) const {
    return static_cast<std::size_t>(&token - tokens_.data());
  }

  antlr4::Token* LT(ssize_t k) override;
  antlr4::Token* get(std::size_t index) const override { return const_cast<GrammarToken*>(&tokens_[index]); }
  antlr4::TokenSource* getTokenSource() const override { return nullptr; }
  std::string getText(const antlr4::misc::Interval&) override { return {}; }
  std::string getText() override { return {}; }
  std::string getText(antlr4::RuleContext*) override { return {}; }
  std::string getText(antlr4::Token*, antlr4::Token*) override { return {}; }
  void consume() override {
    if (position_ + 1 < tokens_.size()) ++position_;
  }
  std::size_t LA(ssize_t k) override;
  ssize_t mark() override { return 0; }
  void release(ssize_t) override {}
  std::size_t index() override { return position_; }
  void seek(std::size_t index) override { position_ = index; }
  std::size_t size() override { return tokens_.size(); }
  std::string getSourceName() const override { return "statement"; }

 private:
  Status unicode_escapes();
  void look_ahead();
  void quantified_operators();
  void match_parentheses();
  void own_words();
  void retype_own_words(std::size_t from);
  [[nodiscard]] bool word_at(std::size_t index, std::string_view word) const;
  [[nodiscard]] std::size_t type_at(std::size_t index) const {
    return index < tokens_.size() ? tokens_[index].type() : antlr4::Token::EOF;
  }

  std::string_view text_;
  std::vector<GrammarToken> tokens_;
  std::vector<std::size_t> open_;    // scratch: parentheses not yet closed
  std::vector<std::size_t> closed_;  // scratch: for each token, where its parenthesis closes
  std::size_t position_ = 0;
};

}  // namespace kintsugi::parser
