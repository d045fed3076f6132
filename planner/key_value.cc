#include "planner/key_value.h"

#include <algorithm>
#include <charconv>

#include "parser/literals.h"
#include "shardmap/key_encoding.h"

namespace kintsugi::planner {

using parser::SlotKind;
using shardmap::KeyType;

bool is_number(KeyType type) {
  return type == KeyType::kSmallint || type == KeyType::kInt || type == KeyType::kBigint ||
         type == KeyType::kNumeric;
}

namespace {

bool is_integer(KeyType type) {
  return type == KeyType::kSmallint || type == KeyType::kInt || type == KeyType::kBigint;
}
// Forms that depend on the session, or that are not read here, say 0A000; all else is wrong for PostgreSQL too.
KeyOutcome outcome_of(const Status& done) {
  if (done) return KeyOutcome::kValue;
  return done.error().sqlstate == sqlstate::kNotSupported ? KeyOutcome::kUnknown : KeyOutcome::kInvalid;
}

KeyOutcome append_integer(std::int64_t value, KeyType type, KeyUse use, std::string& key) {
  char digits[24];
  const auto written = std::to_chars(digits, digits + sizeof digits, value);
  const std::string_view text(digits, static_cast<std::size_t>(written.ptr - digits));
  if (type == KeyType::kText) {
    if (use == KeyUse::kCompare) return KeyOutcome::kInvalid;
    return outcome_of(shardmap::append_text(type, text, key));
  }
  if (!is_number(type)) return KeyOutcome::kInvalid;
  if (shardmap::append_text(type, text, key)) return KeyOutcome::kValue;
  return use == KeyUse::kCompare ? KeyOutcome::kNoSuch : KeyOutcome::kInvalid;
}

// "42.0", "1e3", or more digits than a bigint has.
KeyOutcome append_decimal(std::string_view text, KeyType type, KeyUse use, std::string& key) {
  if (type == KeyType::kNumeric) return outcome_of(shardmap::append_text(type, text, key));
  if (!is_integer(type)) return use == KeyUse::kCompare ? KeyOutcome::kInvalid : KeyOutcome::kUnknown;
  const auto numeric = shardmap::encode_key({KeyType::kNumeric}, {std::string(text)});
  if (!numeric) return KeyOutcome::kInvalid;
  const auto plain = shardmap::decode_bound({KeyType::kNumeric}, *numeric);
  if (!plain) return KeyOutcome::kUnknown;
  const std::string& digits = plain->front().text;
  if (digits.find_first_not_of("-0123456789") != std::string::npos)
    // As a key to store, PostgreSQL would round it.
    return use == KeyUse::kCompare ? KeyOutcome::kNoSuch : KeyOutcome::kUnknown;
  if (shardmap::append_text(type, digits, key)) return KeyOutcome::kValue;
  return use == KeyUse::kCompare ? KeyOutcome::kNoSuch : KeyOutcome::kInvalid;
}

KeyOutcome append_string(std::string_view text, std::optional<KeyType> cast, KeyType type, KeyUse use,
                         std::string& key) {
  if (!cast || *cast == type) return outcome_of(shardmap::append_text(type, text, key));
  if (*cast == KeyType::kNumeric && is_integer(type)) return append_decimal(text, type, use, key);
  if (!is_integer(*cast) || !is_number(type)) return KeyOutcome::kUnknown;
  std::string scratch;
  if (!shardmap::append_text(*cast, text, scratch)) return KeyOutcome::kInvalid;
  const auto value = shardmap::decode_bound({*cast}, scratch);
  std::int64_t number = 0;
  const std::string& digits = value->front().text;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return append_integer(number, type, use, key);
}

// A number as the statement writes it, with its sign and perhaps a cast.
KeyOutcome append_number(std::string_view digits, bool negative, SlotKind kind, std::optional<KeyType> cast,
                         KeyType type, KeyUse use, std::string& key) {
  if (cast && !is_number(*cast)) return KeyOutcome::kUnknown;
  if (kind != SlotKind::kNumeric) {
    std::uint64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (read.ec == std::errc() && read.ptr == digits.data() + digits.size() &&
        value <= (std::uint64_t{1} << 63) - 1) {
      const auto number = static_cast<std::int64_t>(value);
      return append_integer(negative ? -number : number, type, use, key);
    }
  }
  if (cast && is_integer(*cast)) return KeyOutcome::kUnknown;  // rounds
  std::string text = negative ? "-" : "";
  text += digits;
  return append_decimal(text, type, use, key);
}

// A literal of a text: a slot's token, or a constant that was decoded when the statement was analysed.
KeyOutcome append_literal(SlotKind kind, std::string_view text, bool negative, std::optional<KeyType> cast,
                          KeyType type, KeyUse use, std::string& key) {
  switch (kind) {
    case SlotKind::kNull: return KeyOutcome::kNull;
    case SlotKind::kTrue:
    case SlotKind::kFalse:
      if (type != KeyType::kBoolean || (cast && *cast != type)) return KeyOutcome::kUnknown;
      return outcome_of(shardmap::append_text(type, kind == SlotKind::kTrue ? "true" : "false", key));
    case SlotKind::kInteger:
    case SlotKind::kBigInteger:
    case SlotKind::kNumeric: return append_number(text, negative, kind, cast, type, use, key);
    case SlotKind::kString:
      if (negative) return KeyOutcome::kUnknown;
      return append_string(text, cast, type, use, key);
    default: return KeyOutcome::kUnknown;
  }
}

KeyOutcome append_parameter(const Parameter& parameter, std::optional<KeyType> cast, KeyType type, KeyUse use,
                            std::string& key);

KeyOutcome append_slot(const parser::Slot& slot, bool negative, const Source& source, KeyType type, KeyUse use,
                       const Values& values, std::string& key) {
  const std::string_view text = values.normal->text();
  if (slot.kind == SlotKind::kParameter) {
    const auto index = static_cast<std::size_t>(slot.parameter - 1);
    if (negative || slot.parameter < 1 || index >= values.parameters.size()) return KeyOutcome::kUnknown;
    return append_parameter(values.parameters[index], source.cast, type, use, key);
  }
  if (slot.kind != SlotKind::kString)
    return append_literal(slot.kind, slot.token.of(text), negative, source.cast, type, use, key);
  // U&'!0061' UESCAPE '!' is not what it looks like.
  const bool escapes = slot.token.kind == parser::TokenKind::kUnicodeString;
  const std::string_view plain = escapes ? std::string_view() : parser::plain_string(text, slot.token);
  if (plain.data() != nullptr) return append_literal(slot.kind, plain, negative, source.cast, type, use, key);
  const auto decoded = parser::decode_string_there(text, slot.token);
  if (!decoded) return KeyOutcome::kInvalid;
  return append_literal(slot.kind, *decoded, negative, source.cast, type, use, key);
}

constexpr std::uint32_t kUnknownOid = 705;

KeyOutcome append_parameter(const Parameter& parameter, std::optional<KeyType> cast, KeyType type, KeyUse use,
                            std::string& key) {
  if (parameter.null) return KeyOutcome::kNull;
  std::optional<KeyType> declared;
  if (parameter.type == 0 || parameter.type == kUnknownOid)
    declared = cast.value_or(type);
  else
    declared = shardmap::key_type_of_oid(parameter.type);
  if (!declared) return KeyOutcome::kUnknown;
  const bool widened = cast && is_integer(*cast) && is_integer(*declared);
  if (cast && *cast != *declared && !widened) return KeyOutcome::kUnknown;
  if (*declared == type) {
    if (!parameter.binary) return outcome_of(shardmap::append_text(type, parameter.bytes, key));
    return outcome_of(shardmap::append_binary(type, 0, parameter.bytes, key));
  }
  if (!is_number(*declared) || !is_number(type)) return KeyOutcome::kUnknown;
  if (!parameter.binary) {
    if (*declared == KeyType::kNumeric) return append_decimal(parameter.bytes, type, use, key);
    return append_string(parameter.bytes, declared, type, use, key);
  }
  const Status done = shardmap::append_binary(type, parameter.type, parameter.bytes, key);
  if (done) return KeyOutcome::kValue;
  if (done.error().sqlstate != "22003") return KeyOutcome::kInvalid;
  if (use == KeyUse::kCompare) return KeyOutcome::kNoSuch;
  return *declared == KeyType::kNumeric ? KeyOutcome::kUnknown : KeyOutcome::kInvalid;
}

// In another encoding the shard reads other bytes than these.
KeyOutcome as_read(KeyOutcome outcome, KeyType type, const Values& values, std::string_view appended) {
  if (!values.other_encoding || type != KeyType::kText) return outcome;
  const bool ascii = std::all_of(appended.begin(), appended.end(), [](char c) { return (c & 0x80) == 0; });
  const bool read = outcome == KeyOutcome::kValue || outcome == KeyOutcome::kInvalid;
  return read && (outcome == KeyOutcome::kInvalid || !ascii) ? KeyOutcome::kUnknown : outcome;
}

}  // namespace

KeyOutcome append_element(const Parameter& parameter, std::optional<KeyType> cast, KeyType type, KeyUse use,
                          const Values& values, std::string& key) {
  const std::size_t before = key.size();
  const KeyOutcome outcome = append_parameter(parameter, cast, type, use, key);
  return as_read(outcome, type, values, std::string_view(key).substr(before));
}

std::size_t slot_index(const Source& source, const parser::Normaliser& normal, std::uint32_t row) {
  const auto& groups = normal.groups();
  if (source.kind == Source::Kind::kGroupSlot) {
    if (source.group >= groups.size()) return normal.slots().size();
    const parser::SlotGroup& group = groups[source.group];
    return group.first + source.index + std::size_t{row} * group.stride;
  }
  std::size_t index = source.index;
  std::size_t behind = 0;  // groups within the rows of INSERT do not count twice
  for (const parser::SlotGroup& group : groups) {
    if (group.first < behind || group.first > index) continue;
    index += group.count;
    behind = group.first + group.count;
  }
  return index;
}

Source slot_source(std::size_t index, const parser::Normaliser& normal) {
  Source source;
  std::size_t behind = 0;
  std::size_t before = 0;
  for (std::size_t i = 0; i < normal.groups().size(); ++i) {
    const parser::SlotGroup& group = normal.groups()[i];
    if (group.first < behind) continue;
    behind = group.first + group.count;
    if (index >= group.first && index < behind) {
      source.kind = Source::Kind::kGroupSlot;
      source.group = static_cast<std::uint32_t>(i);
      source.index = static_cast<std::uint32_t>(index - group.first);
      return source;
    }
    if (group.first <= index) before += group.count;
  }
  source.kind = Source::Kind::kSlot;
  source.index = static_cast<std::uint32_t>(index - before);
  return source;
}

namespace {

KeyOutcome append_as_sent(const Source& source, KeyType type, KeyUse use, const Values& values,
                          const std::vector<Constant>& constants, std::string& key, std::uint32_t row) {
  switch (source.kind) {
    case Source::Kind::kParameter:
      if (source.negative || source.index >= values.parameters.size()) return KeyOutcome::kUnknown;
      return append_parameter(values.parameters[source.index], source.cast, type, use, key);
    case Source::Kind::kConstant: {
      const Constant& constant = constants[source.index];
      return append_literal(constant.kind, constant.text, source.negative, source.cast, type, use, key);
    }
    case Source::Kind::kSlot:
    case Source::Kind::kGroupSlot: {
      const std::size_t index = slot_index(source, *values.normal, row);
      if (index >= values.normal->slots().size()) return KeyOutcome::kUnknown;
      const parser::Slot& slot = values.normal->slots()[index];
      const bool negative = source.kind == Source::Kind::kSlot ? source.negative : slot.negative;
      return append_slot(slot, negative, source, type, use, values, key);
    }
  }
  return KeyOutcome::kUnknown;
}

}  // namespace

KeyOutcome append_source(const Source& source, KeyType type, KeyUse use, const Values& values,
                         const std::vector<Constant>& constants, std::string& key, std::uint32_t row) {
  const std::size_t before = key.size();
  const KeyOutcome outcome = append_as_sent(source, type, use, values, constants, key, row);
  return as_read(outcome, type, values, std::string_view(key).substr(before));
}

bool string_of(const Source& source, const Values& values, const std::vector<Constant>& constants,
               std::string& text) {
  if (source.kind == Source::Kind::kConstant) {
    if (constants[source.index].kind != SlotKind::kString) return false;
    text = constants[source.index].text;
    return true;
  }
  if (source.kind == Source::Kind::kParameter) return false;
  const std::size_t index = slot_index(source, *values.normal);
  if (index >= values.normal->slots().size()) return false;
  const parser::Slot& slot = values.normal->slots()[index];
  if (slot.kind != SlotKind::kString) return false;
  auto decoded = parser::decode_string_there(values.normal->text(), slot.token);
  if (!decoded) return false;
  text = std::move(*decoded);
  return true;
}

std::optional<SlotKind> literal_of(const Source& source, const Values& values, std::uint32_t row) {
  if (source.kind != Source::Kind::kSlot && source.kind != Source::Kind::kGroupSlot) return std::nullopt;
  const std::size_t index = slot_index(source, *values.normal, row);
  if (index >= values.normal->slots().size()) return std::nullopt;
  const SlotKind kind = values.normal->slots()[index].kind;
  return kind == SlotKind::kParameter ? std::nullopt : std::optional(kind);
}

CountValue count_of(const Source& source, const Values& values, const std::vector<Constant>& constants) {
  std::string key;
  const KeyOutcome outcome = append_source(source, KeyType::kBigint, KeyUse::kCompare, values, constants, key);
  if (outcome == KeyOutcome::kNull) return {std::nullopt, true};
  if (outcome != KeyOutcome::kValue) return {};
  const auto value = shardmap::decode_bound({KeyType::kBigint}, key);
  std::int64_t number = -1;
  const std::string& digits = value->front().text;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (number < 0) return {.negative = true};
  return {static_cast<std::uint64_t>(number), false};
}

namespace {

// The element types of arrays of key types, by the array's OID.
std::uint32_t element_of(std::uint32_t array) {
  switch (array) {
    case 1000: return 16;
    case 1001: return 17;
    case 1005: return 21;
    case 1007: return 23;
    case 1009: return 25;
    case 1015: return 1043;
    case 1016: return 20;
    case 1115: return 1114;
    case 1182: return 1082;
    case 1185: return 1184;
    case 1231: return 1700;
    case 2951: return 2950;
    default: return 0;
  }
}

std::uint32_t int_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

bool binary_elements(std::string_view bytes, std::vector<Parameter>& elements) {
  if (bytes.size() < 12) return false;
  const std::uint32_t dimensions = int_at(bytes, 0);
  const std::uint32_t type = int_at(bytes, 8);
  if (dimensions == 0) return bytes.size() == 12;
  if (dimensions != 1 || bytes.size() < 20) return false;
  const std::uint32_t count = int_at(bytes, 12);
  std::size_t at = 20;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (bytes.size() - at < 4) return false;
    const std::uint32_t size = int_at(bytes, at);
    at += 4;
    if (size == 0xFFFFFFFF) {
      elements.push_back({type, true, true, {}});
      continue;
    }
    if (bytes.size() - at < size) return false;
    elements.push_back({type, true, false, bytes.substr(at, size)});
    at += size;
  }
  return at == bytes.size();
}

bool is_null_word(std::string_view word) {
  if (word.size() != 4) return false;
  for (std::size_t i = 0; i < 4; ++i)
    if ((word[i] | 0x20) != "null"[i]) return false;
  return true;
}

// {1,2,"a \"b\"",NULL}
bool text_elements(std::string_view text, std::uint32_t type, std::vector<Parameter>& elements,
                   std::vector<std::string>& storage) {
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return false;
  text = text.substr(1, text.size() - 2);
  storage.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), ',')) + 1);
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && blank(text[at])) ++at;
  };
  skip();
  if (at == text.size()) return true;
  for (;;) {
    skip();
    std::string value;
    bool quoted = false;
    if (at < text.size() && text[at] == '"') {
      quoted = true;
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && ++at == text.size()) return false;
        value += text[at];
      }
      if (at++ >= text.size()) return false;
      skip();
    } else {
      for (; at < text.size() && text[at] != ','; ++at) {
        if (text[at] == '{' || text[at] == '}' || text[at] == '"' || text[at] == '\\') return false;
        value += text[at];
      }
      while (!value.empty() && blank(value.back())) value.pop_back();
      if (value.empty()) return false;
    }
    if (!quoted && is_null_word(value)) {
      elements.push_back({type, false, true, {}});
    } else {
      storage.push_back(std::move(value));
      elements.push_back({type, false, false, storage.back()});
    }
    if (at == text.size()) return true;
    if (text[at++] != ',') return false;
  }
}

}  // namespace

bool array_elements(const Parameter& array, std::vector<Parameter>& elements,
                    std::vector<std::string>& storage) {
  if (array.null) return false;
  if (array.binary) return binary_elements(array.bytes, elements);
  const std::uint32_t type = array.type == 0 || array.type == kUnknownOid ? 0 : element_of(array.type);
  if (type == 0 && array.type != 0 && array.type != kUnknownOid) return false;
  return text_elements(array.bytes, type, elements, storage);
}

}  // namespace kintsugi::planner
