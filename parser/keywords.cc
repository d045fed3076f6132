#include "parser/keywords.h"

#include <array>

#include "parser/grammar_parser.h"

namespace kintsugi::parser {
namespace {

using Grammar = antlr::KintsugiSql;
using enum KeywordCategory;

constexpr auto kKeywords = std::to_array<Keyword>({
#define KEYWORD(word, token, category, bare) {word, Grammar::token, category, bare},
#include "parser/keywords.def"
#undef KEYWORD
});

constexpr auto kOwnWords = std::to_array<Keyword>({
#define OWN_WORD(word, token) {word, Grammar::token, kNone, false},
#include "parser/own_words.def"
#undef OWN_WORD
});

constexpr std::size_t kLongest = 20;
constexpr std::size_t kSlots = 2048;

// FNV-1a over at most twenty bytes; the table is built at compile time with open addressing.
constexpr std::uint32_t hash(std::string_view word) {
  std::uint32_t value = 2166136261U;
  for (char c : word) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
  return value ^ (value >> 15);
}

template <std::size_t N>
constexpr std::array<std::int16_t, kSlots> make_table(const std::array<Keyword, N>& words) {
  std::array<std::int16_t, kSlots> table{};
  for (auto& slot : table) slot = -1;
  for (std::size_t i = 0; i < N; ++i) {
    auto slot = hash(words[i].word) % kSlots;
    while (table[slot] >= 0) slot = (slot + 1) % kSlots;
    table[slot] = static_cast<std::int16_t>(i);
  }
  return table;
}

template <std::size_t N>
const Keyword* find(const std::array<Keyword, N>& words, const std::array<std::int16_t, kSlots>& table,
                    std::string_view word) {
  if (word.size() > kLongest) return nullptr;
  std::array<char, kLongest> lower;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    lower[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  const std::string_view folded(lower.data(), word.size());
  for (auto slot = hash(folded) % kSlots; table[slot] >= 0; slot = (slot + 1) % kSlots)
    if (words[static_cast<std::size_t>(table[slot])].word == folded)
      return &words[static_cast<std::size_t>(table[slot])];
  return nullptr;
}

constexpr auto kKeywordTable = make_table(kKeywords);
constexpr auto kOwnWordTable = make_table(kOwnWords);

}  // namespace

const Keyword* find_keyword(std::string_view word) {
  return find(kKeywords, kKeywordTable, word);
}

std::uint16_t find_own_word(std::string_view word) {
  const Keyword* found = find(kOwnWords, kOwnWordTable, word);
  return found == nullptr ? std::uint16_t{0} : found->token;
}

}  // namespace kintsugi::parser
