// Where the statements of a simple-protocol string begin and end. A semicolon ends a statement except inside
// parentheses (CREATE RULE ... DO (a; b)) and inside the BEGIN ATOMIC ... END body of a function or procedure.
// Empty statements are left out, as PostgreSQL does. Text that cannot be scanned belongs to the statement it
// stands in.
#pragma once

#include <string_view>
#include <vector>

#include "parser/scanner.h"

namespace kintsugi::parser {

// One statement after another, without allocation. A range goes from its first token to the end of its last.
class StatementSplitter {
 public:
  explicit StatementSplitter(std::string_view text, bool standard_conforming_strings = true)
      : scanner_(text, standard_conforming_strings) {}

  // False when there are no more.
  bool next(Range& statement);

 private:
  Scanner scanner_;
};

[[nodiscard]] std::vector<Range> split_statements(std::string_view text,
                                                  bool standard_conforming_strings = true);

}  // namespace kintsugi::parser
