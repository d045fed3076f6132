#include "parser/normalise.h"

#include <algorithm>
#include <charconv>

#include "parser/scanner.h"

namespace kintsugi::parser {
namespace {

// Markers in the key that no token can contain.
constexpr char kSlotMark = '\1';
constexpr char kListMark = '\2';
constexpr char kRowsMark = '\3';

char letter(SlotKind kind) {
  return "ilnsbxNTFp"[static_cast<int>(kind)];
}

SlotKind number_kind(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return SlotKind::kNumeric;
  return value <= 0x7FFFFFFF ? SlotKind::kInteger : SlotKind::kBigInteger;
}

}  // namespace

bool Normaliser::word(std::size_t i, std::string_view lower) const {
  return i < tokens_.size() && is_keyword(text_, tokens_[i], lower);
}

bool Normaliser::punctuation(std::size_t i, char c) const {
  return i < tokens_.size() && tokens_[i].kind == TokenKind::kPunctuation &&
         tokens_[i].end - tokens_[i].begin == 1 && text_[tokens_[i].begin] == c;
}

bool Normaliser::is_literal(std::size_t i) const {
  switch (tokens_[i].kind) {
    case TokenKind::kString:
    case TokenKind::kEscapeString:
    case TokenKind::kUnicodeString:
    case TokenKind::kDollarString:
    case TokenKind::kBitString:
    case TokenKind::kHexString:
    case TokenKind::kInteger:
    case TokenKind::kNumeric: return true;
    default: return false;
  }
}

Slot Normaliser::slot(std::size_t i) const {
  Slot made;
  made.token = tokens_[i];
  switch (tokens_[i].kind) {
    case TokenKind::kInteger: made.kind = number_kind(tokens_[i].of(text_)); break;
    case TokenKind::kNumeric: made.kind = SlotKind::kNumeric; break;
    case TokenKind::kBitString: made.kind = SlotKind::kBits; break;
    case TokenKind::kHexString: made.kind = SlotKind::kHexBits; break;
    case TokenKind::kIdentifier:
      made.kind = word(i, "null") ? SlotKind::kNull : word(i, "true") ? SlotKind::kTrue : SlotKind::kFalse;
      break;
    case TokenKind::kParameter: {
      made.kind = SlotKind::kParameter;
      const std::string_view digits = tokens_[i].of(text_).substr(1);
      std::from_chars(digits.data(), digits.data() + digits.size(), made.parameter);
      break;
    }
    default: break;
  }
  return made;
}

bool Normaliser::read(std::string_view text, Range statement, bool standard_conforming_strings) {
  text_ = text;
  tokens_.clear();
  key_.clear();
  slots_.clear();
  groups_.clear();
  units_.clear();
  positional_ = -1;
  depth_ = 0;
  inserting_ = false;
  Scanner scanner(text.substr(0, statement.end), standard_conforming_strings);
  scanner.seek(statement.begin);
  for (;;) {
    const Token token = scanner.next();
    if (token.kind == TokenKind::kError) return false;
    if (token.kind == TokenKind::kEnd) break;
    tokens_.push_back(token);
  }
  std::size_t first = 0;
  while (punctuation(first, '(')) ++first;
  slotting_ = false;
  for (const char* head : {"select", "insert", "update", "delete", "with", "values", "table", "merge"})
    if (word(first, head)) slotting_ = true;
  for (std::size_t i = 0; i < tokens_.size();) step(i);
  return true;
}

void Normaliser::step(std::size_t& i) {
  if (slotting_) {
    if (is_literal(i)) {
      literal(i++);
      return;
    }
    if (tokens_[i].kind == TokenKind::kIdentifier) {
      if (word(i, "insert")) inserting_ = true;
      if (word(i, "in") && punctuation(i + 1, '(')) {
        emit(i++);
        if (in_list(i)) return;
        emit(i++);
        return;
      }
      if (inserting_ && word(i, "values") && punctuation(i + 1, '(')) {
        inserting_ = false;
        emit(i++);
        insert_rows(i);
        return;
      }
      const bool by = word(i, "by") && i > 0 && (word(i - 1, "order") || word(i - 1, "group"));
      if (by || (word(i, "on") && i > 0 && word(i - 1, "distinct")))
        positional_ = depth_;
      else if (positional_ == depth_ &&
               (word(i, "limit") || word(i, "offset") || word(i, "fetch") || word(i, "having") ||
                word(i, "from") || word(i, "union") || word(i, "intersect") || word(i, "except") ||
                word(i, "rows") || word(i, "range") || word(i, "groups")))
        positional_ = -1;
    }
  }
  emit(i++);
}

void Normaliser::emit(std::size_t i) {
  const Token token = tokens_[i];
  const std::string_view source = token.of(text_);
  if (token.kind == TokenKind::kIdentifier) {
    const std::size_t begin = key_.size();
    key_.append(source);
    for (std::size_t k = begin; k < key_.size(); ++k)
      if (key_[k] >= 'A' && key_[k] <= 'Z') key_[k] = static_cast<char>(key_[k] + 32);
  } else {
    key_.append(source);
    if (token.kind == TokenKind::kPunctuation) {
      if (source == "(") ++depth_;
      if (source == ")" && --depth_ < positional_) positional_ = -1;
    }
  }
  key_ += ' ';
  unit(token.range());
}

void Normaliser::literal(std::size_t i) {
  const Slot made = slot(i);
  const bool item_begins = i > 0 && (punctuation(i - 1, ',') || punctuation(i - 1, '(') || word(i - 1, "by"));
  if (positional_ >= 0 && made.kind == SlotKind::kInteger && item_begins) return emit(i);
  slots_.push_back(made);
  key_ += kSlotMark;
  key_ += letter(made.kind);
  unit(tokens_[i].range());
}

// A literal, NULL, TRUE, FALSE or a parameter, perhaps signed, that is a whole element of a list.
bool Normaliser::lone_value(std::size_t i, std::size_t& end) const {
  std::size_t at = i;
  const bool sign =
      at < tokens_.size() && (is_symbol(text_, tokens_[at], "-") || is_symbol(text_, tokens_[at], "+"));
  if (sign) ++at;
  if (at >= tokens_.size()) return false;
  const TokenKind kind = tokens_[at].kind;
  const bool number = kind == TokenKind::kInteger || kind == TokenKind::kNumeric;
  const bool value = sign ? number
                          : is_literal(at) || kind == TokenKind::kParameter || word(at, "null") ||
                                word(at, "true") || word(at, "false");
  if (!value || (!punctuation(at + 1, ',') && !punctuation(at + 1, ')'))) return false;
  end = at + 1;
  return true;
}

// At the parenthesis behind IN. True when the whole list became one group.
bool Normaliser::in_list(std::size_t& i) {
  std::size_t at = i + 1;
  for (std::size_t end = 0; lone_value(at, end); at = end + 1)
    if (punctuation(end, ')')) {
      at = end;
      break;
    }
  if (!punctuation(at, ')') || at == i + 1) return false;
  SlotGroup group;
  group.first = static_cast<std::uint32_t>(slots_.size());
  char kind = 0;
  for (std::size_t k = i + 1; k < at; ++k) {
    if (punctuation(k, ',') || tokens_[k].kind == TokenKind::kOperator) continue;
    slots_.push_back(slot(k));
    slots_.back().negative = is_symbol(text_, tokens_[k - 1], "-");
    const char here = letter(slots_.back().kind);
    kind = kind == 0 || kind == here ? here : 'm';
  }
  group.count = static_cast<std::uint32_t>(slots_.size()) - group.first;
  group.range = {tokens_[i + 1].begin, tokens_[at - 1].end};
  groups_.push_back(group);
  key_ += "( ";
  key_ += kListMark;
  key_ += kind;
  key_ += ") ";
  unit(tokens_[i].range());
  unit(group.range);
  unit(tokens_[at].range());
  i = at + 1;
  return true;
}

// At the first row of INSERT ... VALUES.
bool Normaliser::insert_rows(std::size_t& i) {
  SlotGroup group;
  group.rows = true;
  group.first = static_cast<std::uint32_t>(slots_.size());
  group.range.begin = tokens_[i].begin;
  const std::size_t first_key = key_.size();
  const std::size_t groups_before = groups_.size();
  if (!row(i, true)) return false;
  group.stride = static_cast<std::uint32_t>(slots_.size()) - group.first;
  group.range.end = tokens_[i - 1].end;
  const std::size_t first_length = key_.size() - first_key;
  const std::size_t row_groups = groups_.size() - groups_before;
  bool tail = false;
  while (punctuation(i, ',') && punctuation(i + 1, '(')) {
    const std::size_t key_before = key_.size();
    const std::size_t slots_before = slots_.size();
    const std::size_t units_before = units_.size();
    const std::size_t comma = i;
    const std::size_t lists_before = groups_.size();
    ++i;
    if (!row(i, true)) return false;
    const bool same = key_.compare(key_before, std::string::npos, key_, first_key, first_length) == 0 &&
                      slots_.size() - slots_before == group.stride && row_groups == 0 &&
                      groups_.size() == lists_before;
    if (!same) {  // rows of several forms: this statement keeps all of them from here on
      key_.resize(key_before);
      slots_.resize(slots_before);
      units_.resize(units_before);
      groups_.resize(lists_before);
      i = comma;
      break;
    }
    key_.resize(key_before);
    units_.resize(units_before);
    if (!tail) {
      key_ += kRowsMark;
      unit({tokens_[comma].begin, tokens_[i - 1].end});
      tail = true;
    }
    units_.back().end = tokens_[i - 1].end;
    group.range.end = tokens_[i - 1].end;
  }
  group.count = static_cast<std::uint32_t>(slots_.size()) - group.first;
  groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(groups_before), group);
  return true;
}

// One row with its parentheses. Its lone values are slots whose kind is not in the key.
bool Normaliser::row(std::size_t& i, bool generic) {
  const int outside = depth_;
  emit(i++);
  bool element_begins = true;
  while (i < tokens_.size() && depth_ > outside) {
    std::size_t end = 0;
    if (generic && element_begins && depth_ == outside + 1 && lone_value(i, end)) {
      slots_.push_back(slot(end - 1));
      slots_.back().negative = is_symbol(text_, tokens_[i], "-");
      key_ += kSlotMark;
      key_ += 'v';
      unit({tokens_[i].begin, tokens_[end - 1].end});
      i = end;
      element_begins = false;
      continue;
    }
    element_begins = depth_ == outside + 1 && punctuation(i, ',');
    step(i);
  }
  return true;
}

int Normaliser::slot_at(std::uint32_t begin) const {
  const auto found = std::lower_bound(slots_.begin(), slots_.end(), begin,
                                      [](const Slot& s, std::uint32_t at) { return s.token.begin < at; });
  if (found == slots_.end() || found->token.begin != begin) return -1;
  return static_cast<int>(found - slots_.begin());
}

Range translate(Range range, const std::vector<Range>& from, const std::vector<Range>& to) {
  const auto first = std::upper_bound(from.begin(), from.end(), range.begin,
                                      [](std::uint32_t at, const Range& u) { return at < u.begin; });
  const auto last = std::lower_bound(from.begin(), from.end(), range.end,
                                     [](const Range& u, std::uint32_t at) { return u.end < at; });
  const auto begin = static_cast<std::size_t>(first - from.begin());
  const auto end = static_cast<std::size_t>(last - from.begin());
  if (begin == 0 || end >= to.size()) return {};
  return {to[begin - 1].begin, to[end].end};
}

}  // namespace kintsugi::parser
