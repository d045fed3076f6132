// How our parser's answer to a text differs from PostgreSQL's.
#pragma once

#include <string>
#include <vector>

#include "parser/parser.h"

namespace kintsugi::parser {

// Nothing when both take the text, or when both refuse it with the same message at the same place. `text` is
// one statement.
[[nodiscard]] std::string disagreement(Parser& parser, const std::string& text);

// The statements of tests/parser/corpus/<file>.sql.
[[nodiscard]] std::vector<std::string> corpus(const std::string& file);

// All of them.
[[nodiscard]] std::vector<std::string> whole_corpus();

// The lines of tests/parser/corpus/<file>.
[[nodiscard]] std::vector<std::string> corpus_lines(const std::string& file);

}  // namespace kintsugi::parser
