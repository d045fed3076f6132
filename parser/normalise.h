// The normal form of a statement's text: what two statements have in common that differ only in their literals,
// white space and the case of their words. Its bytes are the key of the statement cache; its slots are the
// literals in order, where the analysis of a cached statement finds the values of this text. One pass, no
// allocation once the buffers have grown.
//
// What becomes a slot, in SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE and WITH:
//   - numbers and strings; the kind stays in the key, so that 1 and '1' are different statements;
//   - LIMIT and OFFSET numbers too: the analysis reads them from their slots;
//   - not the integers of ORDER BY, GROUP BY and DISTINCT ON: they name columns, and stay in the key;
//   - an IN list of nothing but literals and parameters is one thing whatever its length, a group of slots;
//   - in the rows of INSERT ... VALUES a lone literal, NULL, TRUE or FALSE is a slot whose kind is not in the
//   key, and rows
//     after the first that have its form are left out: one row and many rows are two statements, not n.
// Everything else (BEGIN, SET, COPY, DDL) keeps its literals in the key. Parameters stay ($1 is not $2) except
// in groups.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parser/token.h"

namespace kintsugi::parser {

enum class SlotKind : std::uint8_t {
  kInteger,
  kBigInteger,
  kNumeric,
  kString,
  kBits,
  kHexBits,
  kNull,
  kTrue,
  kFalse,
  kParameter
};

struct Slot {
  SlotKind kind = SlotKind::kString;
  bool negative = false;  // in groups only: a minus sign stands before it
  Token token;            // in the text; literals.h decodes it
  int parameter = 0;      // $n
};

// Slots that belong together: an IN list (stride 1) or the rows of INSERT ... VALUES (stride: slots of one
// row).
struct SlotGroup {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t stride = 1;
  bool rows = false;
  Range range;  // between the list's parentheses; from the first row's to the last row's
};

class Normaliser {
 public:
  // False when the text cannot be scanned; what PostgreSQL says then comes from parsing it. The answers below
  // are good until the next call and as long as the text lives.
  bool read(std::string_view text, Range statement, bool standard_conforming_strings = true);

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::string_view key() const { return key_; }
  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }
  [[nodiscard]] const std::vector<SlotGroup>& groups() const { return groups_; }

  // The pieces of the text that correspond one to one between texts of the same key.
  [[nodiscard]] const std::vector<Range>& units() const { return units_; }

  // The index of the slot that begins at this byte of the text, or -1. How the tree's literals find their
  // slots: a Statement's ranges count from the statement's begin, so add that.
  [[nodiscard]] int slot_at(std::uint32_t begin) const;

 private:
  void literal(std::size_t i);
  bool in_list(std::size_t& i);
  bool insert_rows(std::size_t& i);
  bool row(std::size_t& i, bool generic);
  void emit(std::size_t i);
  void step(std::size_t& i);
  void unit(Range range) { units_.push_back(range); }
  [[nodiscard]] bool is_literal(std::size_t i) const;
  [[nodiscard]] bool lone_value(std::size_t i, std::size_t& end) const;
  [[nodiscard]] bool punctuation(std::size_t i, char c) const;
  [[nodiscard]] bool word(std::size_t i, std::string_view lower) const;
  Slot slot(std::size_t i) const;

  std::string_view text_;
  std::vector<Token> tokens_;
  std::string key_;
  std::vector<Slot> slots_;
  std::vector<SlotGroup> groups_;
  std::vector<Range> units_;
  bool slotting_ = false;   // the statement is of a kind whose literals become slots
  bool inserting_ = false;  // an INSERT has been seen and its VALUES not yet
  int positional_ = -1;     // the parenthesis depth of the ORDER BY or GROUP BY we are in
  int depth_ = 0;
};

// A range of one text in another text of the same key, through their units. Both ranges begin and end at units'
// borders.
[[nodiscard]] Range translate(Range range, const std::vector<Range>& from, const std::vector<Range>& to);

}  // namespace kintsugi::parser
