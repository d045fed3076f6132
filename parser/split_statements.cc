#include "parser/split_statements.h"

namespace kintsugi::parser {
namespace {

// Follows one statement's words, to know whether it makes a routine and how deep in its BEGIN ATOMIC body we
// are.
class RoutineBody {
 public:
  void see(std::string_view text, Token token) {
    ++words_;
    if (words_ == 1) {
      creates_ = is_keyword(text, token, "create");
    } else if (words_ <= 4 && creates_ && !routine_) {
      routine_ = is_keyword(text, token, "function") || is_keyword(text, token, "procedure");
      const bool or_replace = is_keyword(text, token, words_ == 2 ? "or" : "replace");
      creates_ = routine_ || (words_ <= 3 && or_replace);
    }
    if (!routine_) return;
    if (depth_ == 0) {
      if (begin_ && is_keyword(text, token, "atomic")) depth_ = 1;
      begin_ = is_keyword(text, token, "begin");
    } else if (is_keyword(text, token, "case")) {
      ++depth_;
    } else if (is_keyword(text, token, "end")) {
      --depth_;
    }
  }
  [[nodiscard]] bool inside() const { return depth_ > 0; }

 private:
  int words_ = 0;
  int depth_ = 0;
  bool creates_ = false;
  bool routine_ = false;
  bool begin_ = false;
};

}  // namespace

bool StatementSplitter::next(Range& statement) {
  const std::string_view text = scanner_.text();
  RoutineBody body;
  int parentheses = 0;
  bool any = false;
  for (;;) {
    const Token token = scanner_.next();
    if (token.kind == TokenKind::kEnd) return any;
    if (token.kind == TokenKind::kError) {
      // The rest cannot be divided: it is this statement's, and the last one.
      if (!any) statement.begin = scanner_.failed_token_begin();
      statement.end = static_cast<std::uint32_t>(text.size());
      scanner_ = Scanner(text.substr(text.size()));
      return true;
    }
    if (token.kind == TokenKind::kPunctuation && token.end - token.begin == 1) {
      const char c = text[token.begin];
      if (c == '(') ++parentheses;
      if (c == ')' && parentheses > 0) --parentheses;
      if (c == ';' && parentheses == 0 && !body.inside()) {
        if (any) return true;
        continue;
      }
    }
    if (!any) statement.begin = token.begin;
    any = true;
    statement.end = token.end;
    if (token.kind == TokenKind::kIdentifier) body.see(text, token);
  }
}

std::vector<Range> split_statements(std::string_view text, bool standard_conforming_strings) {
  std::vector<Range> ranges;
  StatementSplitter splitter(text, standard_conforming_strings);
  for (Range statement; splitter.next(statement);) ranges.push_back(statement);
  return ranges;
}

}  // namespace kintsugi::parser
