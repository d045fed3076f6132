// The words by which a statement may leave something behind in its session (statement_effects.h says what).
// Pure tables and how they are looked up; in no case matters upper or lower.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "frontend/statement_effects.h"
#include "parser/keywords.h"

namespace kintsugi::frontend::effect_words {

struct Word {
  std::string_view word;
  std::uint32_t flags;
};

// First words of statements. What is not here leaves nothing behind by itself.
inline constexpr std::array kHeads = {
    Word{"call", kMaySet | kMayPin | kMayUnpin | kMayCall},
    Word{"close", kMayUnpin},
    Word{"commit", kMayUnpin},
    Word{"deallocate", kMayUnpin},
    Word{"discard", kMaySet | kMayUnpin},
    Word{"do", kMaySet | kMayPin | kMayUnpin | kMayCall},
    Word{"drop", kMayUnpin},
    Word{"end", kMayUnpin},
    Word{"listen", kMayPin},
    Word{"load", kPinsForGood},
    Word{"reset", kMaySet},
    Word{"rollback", kMayUnpin},
    Word{"unlisten", kMayUnpin},
};

// First words of Kintsugi's own statements.
inline constexpr std::array<std::string_view, 11> kOwnHeads = {
    "alter", "cancel", "create", "drain", "drop", "merge", "move", "rebalance", "resume", "show", "split"};

// First words behind which more has to be read.
inline constexpr std::array<std::string_view, 4> kReadFurther = {"execute", "explain", "prepare", "set"};

// Names anywhere in a statement.
inline constexpr std::array kNames = {
    Word{"currval", kReadsSequence},
    Word{"dblink_connect", kPinsForGood},
    Word{"dblink_connect_u", kPinsForGood},
    Word{"hold", kMayPin},
    Word{"lastval", kReadsSequence},
    Word{"pg_advisory_lock", kMayPin},
    Word{"pg_advisory_lock_shared", kMayPin},
    Word{"pg_advisory_unlock", kMayUnpin},
    Word{"pg_advisory_unlock_all", kMayUnpin | kUnlocksAll},
    Word{"pg_advisory_unlock_shared", kMayUnpin},
    Word{"pg_replication_origin_session_setup", kPinsForGood},
    Word{"pg_settings", kMaySet | kMayRename},  // UPDATE on it is SET
    Word{"pg_temp", kMayPin},
    Word{"pg_try_advisory_lock", kMayPin},
    Word{"pg_try_advisory_lock_shared", kMayPin},
    Word{"setseed", kPinsForGood},
    Word{"temp", kMayPin},
    Word{"temporary", kMayPin},
};

inline char fold(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

inline bool equals(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) { return fold(a) == b; });
}

// For each first letter the lengths of the words that begin with it: nearly every word of nearly every
// statement is told by one look that it is none of them.
class Lengths {
 public:
  constexpr void add(std::string_view word) {
    by_letter_[static_cast<unsigned char>(word.front()) & 31] |= std::uint64_t{1} << word.size();
  }
  // False: it is none of them. `word` has a letter.
  [[nodiscard]] constexpr bool may_have(std::string_view word) const {
    return word.size() < 64 &&
           (by_letter_[static_cast<unsigned char>(word.front()) & 31] >> word.size() & 1) != 0;
  }

 private:
  std::array<std::uint64_t, 32> by_letter_{};
};

inline constexpr Lengths kNameLengths = [] {
  Lengths lengths;
  for (const Word& name : kNames) lengths.add(name.word);
  lengths.add("set_config");
  return lengths;
}();

template <std::size_t N>
std::uint32_t look_up(const std::array<Word, N>& words, std::string_view text) {
  for (const Word& word : words) {
    if (equals(text, word.word)) return word.flags;
  }
  return 0;
}

// Words that are followed by a parenthesis and call nothing, besides those that PostgreSQL keeps for itself.
inline constexpr std::array<std::string_view, 21> kBeforeParenthesis = {
    "by",    "cluster",   "conflict", "copy",   "cube", "explain", "filter",
    "ilike", "include",   "inherits", "insert", "join", "key",     "materialized",
    "over",  "partition", "rollup",   "set",    "sets", "vacuum",  "varying"};
// A name behind one of these is no function's: INSERT INTO t (a, b), COPY t (a), ... AS t (a), EXECUTE p (1).
inline constexpr std::array<std::string_view, 9> kBeforeColumns = {
    "as", "copy", "execute", "exists", "into", "recursive", "references", "table", "with"};

// Functions of sequences that go on about the session; and what ends a select list.
inline constexpr std::array<std::string_view, 3> kOfSequences = {"currval", "lastval", "nextval"};
inline constexpr std::array<std::string_view, 13> kBehindList = {
    "except", "fetch", "for",    "from",  "group", "having", "intersect",
    "into",   "limit", "offset", "order", "union", "where"};

// Settings, as SET and RESET say them, that names hang on.
inline constexpr std::array<std::string_view, 6> kNameGiving = {
    "all", "authorization", "role", "schema", "session_authorization", "search_path"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(words, [word](std::string_view each) { return equals(word, each); });
}

inline bool calls_nothing(std::string_view word) {
  using Category = parser::KeywordCategory;
  if (const parser::Keyword* keyword = parser::find_keyword(word); keyword != nullptr) {
    if (keyword->category == Category::kReserved || keyword->category == Category::kColumnName) return true;
  }
  return is_one_of(word, kBeforeParenthesis);
}

}  // namespace kintsugi::frontend::effect_words
