#include "frontend/plain_statement.h"

#include "frontend/effect_words.h"
#include "frontend/postgres_functions.h"

namespace kintsugi::frontend {
namespace {

using namespace effect_words;

enum Class : std::uint8_t { kOther = 0, kBlank = 1, kLetter = 2, kDigit = 4, kSuspicious = 8 };

// The scanner's idea of a name. Quotes are suspicious where they may end a name; comments, dollar quotes and
// further statements always are.
constexpr auto kClasses = [] {
  std::array<Class, 256> classes{};
  for (const char c : {' ', '\t', '\n', '\r', '\f'}) classes[static_cast<unsigned char>(c)] = kBlank;
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<std::size_t>(c)] = kLetter;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<std::size_t>(c)] = kLetter;
  for (std::size_t c = 128; c < 256; ++c) classes[c] = kLetter;
  classes['_'] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<std::size_t>(c)] = kDigit;
  for (const char c : {'"', '$', '/', '-'}) classes[static_cast<unsigned char>(c)] = kSuspicious;
  return classes;
}();

Class class_of(char c) {
  return kClasses[static_cast<unsigned char>(c)];
}

bool is(char c, unsigned classes) {
  return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

// First words that say what the statement does by themselves.
constexpr Lengths kHeadLengths = [] {
  Lengths lengths;
  for (const Word& head : kHeads) lengths.add(head.word);
  for (const std::string_view own : kOwnHeads) lengths.add(own);
  for (const std::string_view read : kReadFurther) lengths.add(read);
  return lengths;
}();

bool is_head(std::string_view word) {
  return kHeadLengths.may_have(word) &&
         (look_up(kHeads, word) != 0 || is_one_of(word, kOwnHeads) || is_one_of(word, kReadFurther));
}

bool is_effect(std::string_view word) {
  return (kNameLengths.may_have(word) && (look_up(kNames, word) != 0 || equals(word, "set_config"))) ||
         equals(word, "execute");
}

// `word` stands before a parenthesis, `before` is the word right before it.
bool may_call(std::string_view word, std::string_view before) {
  if (is_one_of(before, kBeforeColumns) || calls_nothing(word)) return false;
  std::array<char, 64> folded;
  if (word.size() > folded.size()) return true;
  std::transform(word.begin(), word.end(), folded.begin(), fold);
  return !is_postgres_function({folded.data(), word.size()});
}

char first_behind_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && class_of(text[at]) == kBlank) ++at;
  return at < text.size() ? text[at] : '\0';
}

// The suspicious character before `at` begins what cannot be read as words: a comment, a dollar quote, a name
// with escapes, the end of a quoted name that is a function's.
bool is_beyond_words(std::string_view text, std::size_t at) {
  const char next = at < text.size() ? text[at] : '\0';
  switch (text[at - 1]) {
    case '-': return next == '-';
    case '/': return next == '*';
    case '$': return class_of(next) != kDigit;  // a parameter is no more than a number
    default: return (at >= 2 && text[at - 2] == '&') || first_behind_blanks(text, at) == '(';
  }
}

}  // namespace

bool leaves_nothing(std::string_view text) {
  const std::size_t size = text.size();
  std::string_view before;  // the word behind which nothing but blanks have come
  bool first = true, qualified = false;
  for (std::size_t at = 0; at < size;) {
    const Class kind = class_of(text[at]);
    if (kind == kBlank) {
      ++at;
      continue;
    }
    if (kind != kLetter) {
      const char c = text[at++];
      if (kind == kSuspicious && is_beyond_words(text, at)) return false;
      if (kind == kDigit || c == '$') {
        while (at < size && class_of(text[at]) == kDigit) ++at;
        if (at < size && (class_of(text[at]) == kLetter || text[at] == '$')) return false;
      }
      if (c == ';' && first_behind_blanks(text, at) != '\0') return false;
      qualified = c == '.';
      before = {};
      first = false;
      continue;
    }
    const std::size_t begin = at;
    while (++at < size && is(text[at], kLetter | kDigit)) {
    }
    const std::string_view word(text.data() + begin, at - begin);
    if ((first && is_head(word)) || is_effect(word)) return false;
    while (at < size && is(text[at], kBlank)) ++at;
    const char next = at < size ? text[at] : '\0';
    if (next == '$' || (next == '(' && (qualified || may_call(word, before)))) return false;
    before = word;
    first = qualified = false;
  }
  return true;
}

}  // namespace kintsugi::frontend
