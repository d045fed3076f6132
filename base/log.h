// Structured logs: one line an event, `key=value` pairs after the sentence, to standard error. Any thread may
// call. Never hand it a password, a token, a DSN or a statement's literals.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace kintsugi::log {

enum class Level { kDebug, kInfo, kWarning, kError };

struct Field {
  std::string_view key;
  std::string value;
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  template <class Number>
  requires std::is_arithmetic_v<Number> Field(std::string_view k, Number v)
      : key(k), value(std::to_string(v)) {}
};
using Fields = std::initializer_list<Field>;

void set_level(Level lowest);
[[nodiscard]] bool enabled(Level level);

void debug(std::string_view sentence, Fields fields = {});
void info(std::string_view sentence, Fields fields = {});
void warning(std::string_view sentence, Fields fields = {});
void error(std::string_view sentence, Fields fields = {});

// The line without time and level, as `info` would print it: `sentence key=value key="two words"`.
[[nodiscard]] std::string format_line(std::string_view sentence, Fields fields);

}  // namespace kintsugi::log
