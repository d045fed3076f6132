#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace kintsugi::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarning: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("kintsugi", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *instance;
}

bool needs_quotes(std::string_view value) {
  if (value.empty()) return true;
  for (unsigned char c : value) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) return true;
  }
  return false;
}

// A value can hold bytes from a client: control characters must not forge a second log line.
void append_quoted(std::string& line, std::string_view value) {
  line += '"';
  for (unsigned char c : value) {
    if (c == '"' || c == '\\') {
      line += '\\';
      line += static_cast<char>(c);
    } else if (c == '\n') {
      line += "\\n";
    } else if (c < ' ' || c == 0x7f) {
      static constexpr char kHex[] = "0123456789abcdef";
      line += "\\x";
      line += kHex[c >> 4];
      line += kHex[c & 15];
    } else {
      line += static_cast<char>(c);
    }
  }
  line += '"';
}

void write(Level level, std::string_view sentence, Fields fields) {
  if (enabled(level)) logger().log(to_spdlog(level), spdlog::string_view_t(format_line(sentence, fields)));
}

}  // namespace

void set_level(Level lowest) {
  logger().set_level(to_spdlog(lowest));
}

bool enabled(Level level) {
  return logger().should_log(to_spdlog(level));
}

std::string format_line(std::string_view sentence, Fields fields) {
  std::string line(sentence);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (needs_quotes(field.value)) {
      append_quoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line;
}

void debug(std::string_view sentence, Fields fields) {
  write(Level::kDebug, sentence, fields);
}
void info(std::string_view sentence, Fields fields) {
  write(Level::kInfo, sentence, fields);
}
void warning(std::string_view sentence, Fields fields) {
  write(Level::kWarning, sentence, fields);
}
void error(std::string_view sentence, Fields fields) {
  write(Level::kError, sentence, fields);
}

}  // namespace kintsugi::log
