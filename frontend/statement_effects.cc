#include "frontend/statement_effects.h"

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/effect_words.h"
#include "frontend/plain_statement.h"
#include "frontend/postgres_functions.h"
#include "parser/scanner.h"

namespace kintsugi::frontend {
namespace {

using namespace effect_words;
using parser::Token;
using parser::TokenKind;

// The value of an identifier token: folded, or unquoted.
std::string identifier_value(std::string_view raw) {
  std::string value;
  if (raw.size() >= 2 && raw.front() == '"') {
    for (std::size_t i = 1; i + 1 < raw.size(); ++i) {
      value += raw[i];
      if (raw[i] == '"') ++i;
    }
  } else {
    for (char c : raw) value += fold(c);
  }
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), scanner_(text) {}

  StatementEffects run() {
    bool at_head = true;
    advance();
    while (token_.kind != TokenKind::kEnd && token_.kind != TokenKind::kError) {
      if (is(";")) {
        at_head = true;
        explains_ = false;
        last_ = token_;
        advance();
        continue;
      }
      const Token token = token_;
      advance();
      if (at_head && token.kind == TokenKind::kIdentifier) head(token);
      at_head = false;
      depth_ += parser::is_symbol(text_, token, "(") ? 1 : parser::is_symbol(text_, token, ")") ? -1 : 0;
      name(token);
    }
    if ((effects_.flags & kReadsSequence) != 0 && !reads_others_) effects_.flags |= kDrawsFirst;
    return std::move(effects_);
  }

 private:
  void advance() { token_ = scanner_.next(); }
  [[nodiscard]] std::string_view raw(const Token& token) const { return token.of(text_); }
  [[nodiscard]] bool is(std::string_view symbol) const { return parser::is_symbol(text_, token_, symbol); }
  [[nodiscard]] bool is_word(std::string_view word) const { return parser::is_keyword(text_, token_, word); }
  [[nodiscard]] bool is_identifier() const {
    return token_.kind == TokenKind::kIdentifier || token_.kind == TokenKind::kQuotedIdentifier;
  }

  void head(const Token& token) {
    const std::string_view word = raw(token);
    effects_.flags |= look_up(kHeads, word);
    effects_.may_be_own |= std::ranges::any_of(kOwnHeads, [word](auto own) { return equals(word, own); });
    if (equals(word, "set")) {
      set();
    } else if (equals(word, "reset")) {
      setting_name(effects_.custom_settings);
    } else if (equals(word, "prepare")) {
      if (!is_word("transaction")) effects_.flags |= kMayPin;
    } else if (equals(word, "deallocate")) {
      if (is_word("prepare")) advance();
      if (!is_word("all")) named_statement(true);
    }
    explains_ = equals(word, "explain");
    selects_ = equals(word, "select");
    drawn_.clear();
  }

  // SELECT nextval('s'), currval('s'): values of a select list are made one after the other, and before those
  // what stands behind the list.
  void sequence_call(std::string_view word) {
    if (equals(word, "lastval")) {
      reads_others_ |= !selects_ || drawn_.empty();
      return;
    }
    parser::Scanner ahead = scanner_;
    const Token argument = ahead.next(), behind = ahead.next();
    const bool literal = argument.kind == TokenKind::kString &&
                         (parser::is_symbol(text_, behind, ")") || parser::is_symbol(text_, behind, "::"));
    if (equals(word, "currval")) {
      reads_others_ |= !selects_ || !literal || std::ranges::count(drawn_, raw(argument)) == 0;
      return;
    }
    const bool is_of_list =
        depth_ == 0 && (parser::is_keyword(text_, lead_, "select") || parser::is_symbol(text_, lead_, ","));
    if (selects_ && literal && is_of_list) drawn_.push_back(raw(argument));
  }

  // SET LOCAL, SET TRANSACTION and SET CONSTRAINTS end with the transaction.
  void set() {
    if (is_word("transaction") || is_word("constraints")) return;
    if (is_word("local")) {
      advance();
      effects_.flags |= kMaySetLocally;
      setting_name(effects_.local_custom_settings);
      return;
    }
    if (is_word("session")) advance();
    effects_.flags |= kMaySet;
    setting_name(effects_.custom_settings);
  }

  void setting_name(std::vector<std::string>& custom_settings) {
    if (!is_identifier()) return;
    std::string name = identifier_value(raw(token_));
    if (is_one_of(name, kNameGiving)) effects_.flags |= kMayRename;
    advance();
    bool custom = false;
    while (is(".")) {
      advance();
      if (!is_identifier()) return;
      name += '.';
      name += identifier_value(raw(token_));
      custom = true;
      advance();
    }
    if (custom) custom_settings.push_back(std::move(name));
  }

  // Neither GRANT EXECUTE nor a trigger's EXECUTE FUNCTION.
  [[nodiscard]] bool begins_execution() const {
    if (lead_.kind == TokenKind::kEnd || parser::is_symbol(text_, lead_, ";")) return true;
    return explains_ || parser::is_keyword(text_, lead_, "as");
  }

  void named_statement(bool deallocate) {
    if (!is_identifier()) return;
    effects_.named.push_back({token_.range(), identifier_value(raw(token_)), deallocate});
  }

  void name(const Token& token) {
    follow_name(token);
    if (token.kind == TokenKind::kUnicodeIdentifier) {
      effects_.flags |= kMaySet | kMayPin | kMayCall;  // not worth decoding
      return;
    }
    std::string_view word = raw(token);
    if (token.kind == TokenKind::kQuotedIdentifier) {
      word = word.substr(1, word.size() - 2);
    } else if (token.kind != TokenKind::kIdentifier) {
      return;
    }
    if (word.empty()) return;
    if (equals(word, "execute") && begins_execution()) named_statement(false);
    if (word.size() == 7 && is("(") && is_one_of(word, kOfSequences)) sequence_call(word);
    if (selects_ && is_one_of(word, kBehindList)) selects_ = false;
    const std::uint32_t known = kNameLengths.may_have(word) ? look_up(kNames, word) : 0;
    effects_.flags |= known;
    if (!is("(") || known != 0) return;
    if (equals(word, "set_config")) {
      set_config();
    } else {
      call(token);
    }
  }

  // `name (`: a function, when it is nothing else.
  void call(const Token& token) {
    const bool quoted = token.kind == TokenKind::kQuotedIdentifier;
    if (lead_.kind == TokenKind::kIdentifier && is_one_of(raw(lead_), kBeforeColumns)) return;
    const bool qualified = token.begin != name_begin_;
    if (!quoted && !qualified && calls_nothing(raw(token))) return;
    const bool may_be_own =
        !qualified || equals(text_.substr(name_begin_, token.begin - name_begin_), "pg_catalog.");
    if (!may_be_own || !is_postgres_function(identifier_value(raw(token)))) effects_.flags |= kMayCall;
  }

  // `a.b.c` is one name.
  void follow_name(const Token& token) {
    const auto is_dot = [this](const Token& each) {
      return each.kind == TokenKind::kPunctuation && raw(each) == ".";
    };
    if (!is_dot(token) && !is_dot(last_)) {
      lead_ = last_;
      name_begin_ = token.begin;
    }
    last_ = token;
  }

  // set_config('name', value, is_local): nothing outlives the transaction when the last is a plain true.
  void set_config() {
    advance();
    std::optional<std::string> literal;
    if (token_.kind == TokenKind::kString) {
      const std::string_view quoted = raw(token_);
      literal = std::string(quoted.substr(1, quoted.size() - 2));
      advance();
    }
    const bool name_is_plain = literal.has_value() && is(",");
    int depth = 0, commas = 0, last_tokens = 0;
    bool local = false;
    while (token_.kind != TokenKind::kEnd && token_.kind != TokenKind::kError && !is(";")) {
      if (is("(")) ++depth;
      const bool closes = is(")") && depth-- == 0;
      const bool separates = is(",") && depth == 0;
      if (!closes && !separates) {
        local = is_word("true") || (token_.kind == TokenKind::kString && raw(token_) == "'true'");
      }
      const Token token = token_;
      advance();
      if (closes) break;
      commas += separates ? 1 : 0;
      last_tokens = separates ? 0 : last_tokens + 1;
      name(token);  // a call within the call reads its own arguments
    }
    effects_.flags |= kCallsSetConfig;
    const bool ends_with_transaction = commas == 2 && last_tokens == 1 && local;
    if (ends_with_transaction) {
      effects_.flags |= kMaySetLocally;
    } else {
      effects_.flags |= name_is_plain ? kMaySet : kMaySet | kPinsForGood;
    }
    if (!name_is_plain || is_one_of(*literal, kNameGiving)) effects_.flags |= kMayRename;
    if (name_is_plain && literal->find('.') != std::string::npos) {
      std::transform(literal->begin(), literal->end(), literal->begin(), fold);
      (ends_with_transaction ? effects_.local_custom_settings : effects_.custom_settings)
          .push_back(std::move(*literal));
    }
  }

  std::string_view text_;
  parser::Scanner scanner_;
  Token token_;
  Token last_;                           // the one before
  Token lead_;                           // the one before the name that it belongs to
  std::uint32_t name_begin_ = 0;         // and where that name begins
  bool explains_ = false;                // the statement is EXPLAIN
  int depth_ = 0;                        // of parentheses
  bool selects_ = false;                 // in the select list of the statement
  bool reads_others_ = false;            // currval of what the statement has not drawn from
  std::vector<std::string_view> drawn_;  // the arguments of nextval() in the select list
  StatementEffects effects_;
};

}  // namespace

StatementEffects effects_of(std::string_view text) {
  return leaves_nothing(text) ? StatementEffects() : effects_by_tokens(text);
}

StatementEffects effects_by_tokens(std::string_view text) {
  return Reader(text).run();
}

}  // namespace kintsugi::frontend
