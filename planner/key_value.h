// A value of the key as a statement gives it: where it stands, and its bytes in the key's encoding. Private to
// planner/. Pure; any thread; allocates for numeric keys, decoded strings and other rare forms alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/analysis.h"
#include "shardmap/key_type.h"

namespace kintsugi::planner {

// A literal that the normal form keeps, as in DDL's neighbours COPY and EXPLAIN, and TRUE, FALSE, NULL.
struct Constant {
  parser::SlotKind kind = parser::SlotKind::kNull;
  std::string text;
};

struct Source {
  enum class Kind : std::uint8_t { kConstant, kSlot, kGroupSlot, kParameter };
  Kind kind = Kind::kConstant;
  bool negative = false;  // a minus stands before it; of a group's slots the slot itself knows
  // Of the constant; the parameter's number from 0; kSlot: its place among the slots outside of groups, whose
  // number varies; kGroupSlot: its place in the group.
  std::uint32_t index = 0;
  std::uint32_t group = 0;
  std::optional<shardmap::KeyType> cast;  // ::type behind it

  friend bool operator==(const Source&, const Source&) = default;
};

enum class KeyUse : std::uint8_t { kCompare, kStore };

enum class KeyOutcome : std::uint8_t {
  kValue,    // appended
  kNull,     // it is NULL
  kNoSuch,   // a value, but none that the key's type has: equal to no key
  kInvalid,  // PostgreSQL will refuse the statement
  kUnknown,  // nothing is known of it
};

[[nodiscard]] bool is_number(shardmap::KeyType type);

// Where a slot of the analysed text is in any text of its normal form, and back.
std::size_t slot_index(const Source& source, const parser::Normaliser& normal, std::uint32_t row = 0);
Source slot_source(std::size_t index, const parser::Normaliser& normal);

// Appends the value as one key column of `type`. Of a group of rows, that of row `row`.
KeyOutcome append_source(const Source& source, shardmap::KeyType type, KeyUse use, const Values& values,
                         const std::vector<Constant>& constants, std::string& key, std::uint32_t row = 0);

// The value of a string literal; false when it is none.
bool string_of(const Source& source, const Values& values, const std::vector<Constant>& constants,
               std::string& text);

// The kind of a literal of the text; nothing for parameters and defaults.
std::optional<parser::SlotKind> literal_of(const Source& source, const Values& values, std::uint32_t row);

// An integer for LIMIT and OFFSET; `null` is LIMIT NULL. None of them: not a plain integer.
struct CountValue {
  std::optional<std::uint64_t> count;
  bool null = false;
  bool negative = false;
};
CountValue count_of(const Source& source, const Values& values, const std::vector<Constant>& constants);

// The parameter as a text or binary array of one dimension: its elements, each as a Parameter of the element's
// type. False when it cannot be read here.
bool array_elements(const Parameter& array, std::vector<Parameter>& elements,
                    std::vector<std::string>& storage);
// Appends one such element, as append_source does.
KeyOutcome append_element(const Parameter& parameter, std::optional<shardmap::KeyType> cast,
                          shardmap::KeyType type, KeyUse use, const Values& values, std::string& key);

}  // namespace kintsugi::planner
