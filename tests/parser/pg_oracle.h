// PostgreSQL 15's own scanner and parser (libpg_query), as the tests compare ours against them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parser/token.h"

namespace kintsugi::parser::oracle {

struct ScannedToken {
  Token token;
  int code = 0;  // PostgreSQL's token number
};

struct Failure {
  std::string message;  // empty: there was none
  int position = 0;     // 1-based, in characters
  [[nodiscard]] bool failed() const { return !message.empty(); }
};

// Comments left out. The kind is as far as PostgreSQL's token number tells: plain, E and dollar strings all say
// kString.
struct Scan {
  std::vector<ScannedToken> tokens;
  Failure failure;
};
[[nodiscard]] Scan scan(const std::string& text);

// Whether PostgreSQL's grammar takes the text.
[[nodiscard]] Failure parse(const std::string& text);

// The statements of the text, as PostgreSQL's grammar divides it.
[[nodiscard]] std::vector<Range> split(const std::string& text);

// Every *.sql file below a folder, whole.
[[nodiscard]] std::vector<std::string> sql_files(const std::string& folder);

}  // namespace kintsugi::parser::oracle
