// Text to tree. A Parser belongs to one thread: its prediction caches are its own and grow as it sees new
// shapes of statements (a few megabytes; a first pass over a new shape costs a millisecond, later ones
// microseconds), so each thread makes one at start and calls warm_up.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "parser/statement.h"

namespace kintsugi::parser {

struct ParseOptions {
  bool standard_conforming_strings = true;
};

class Parser {
 public:
  Parser();
  ~Parser();
  Parser(Parser&&) noexcept;
  Parser& operator=(Parser&&) noexcept;

  // The one statement of the text; a semicolon may end it. Errors are PostgreSQL's own: SQLSTATE, message,
  // position in characters. Text without a statement, or with two, is an error too: split_statements first.
  Result<std::unique_ptr<const Statement>> parse(std::string_view text, ParseOptions options = {});

  // One statement of a longer text, as split_statements found it. An error's position counts from the text's
  // beginning.
  Result<std::unique_ptr<const Statement>> parse(std::string_view text, Range statement,
                                                 ParseOptions options = {});

  // Parses the usual shapes of statements once.
  void warm_up();

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace kintsugi::parser
