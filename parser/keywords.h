// PostgreSQL 15's keywords. Any thread; nothing allocates.
#pragma once

#include <cstdint>
#include <string_view>

namespace kintsugi::parser {

enum class KeywordCategory : std::uint8_t { kNone, kUnreserved, kColumnName, kTypeOrFunction, kReserved };

struct Keyword {
  std::string_view word;    // lower case
  std::uint16_t token = 0;  // the grammar's token
  KeywordCategory category = KeywordCategory::kNone;
  bool bare_label = false;
};

// nullptr when the word is none. `word` in any case.
[[nodiscard]] const Keyword* find_keyword(std::string_view word);

// The grammar's token for one of Kintsugi's own words, 0 when it is none. `word` in any case.
[[nodiscard]] std::uint16_t find_own_word(std::string_view word);

}  // namespace kintsugi::parser
