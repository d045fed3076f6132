#include "parser/literals.h"

#include <cstdint>

#include "parser/scanner.h"

namespace kintsugi::parser {
namespace {

constexpr std::size_t kNameBytes = 63;  // NAMEDATALEN - 1

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

// How many bytes the character at i has, 0 when it is not UTF-8 (or is a zero byte, which PostgreSQL takes
// nowhere).
std::size_t utf8_length(std::string_view s, std::size_t i) {
  const auto byte = [&](std::size_t k) { return i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0U; };
  const auto tail = [&](std::size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

Status check_utf8(const std::string& value) {
  for (std::size_t i = 0; i < value.size();) {
    const std::size_t length = utf8_length(value, i);
    if (length > 0) {
      i += length;
      continue;
    }
    static constexpr const char* kHex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(value[i]);
    std::string shown = "0x";
    shown += kHex[byte >> 4];
    shown += kHex[byte & 15];
    return fail("22021", "invalid byte sequence for encoding \"UTF8\": " + shown);
  }
  return {};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Where the content of a quoted token begins: behind E', U&", ' and so on.
std::size_t content_begin(TokenKind kind, std::string_view source) {
  switch (kind) {
    case TokenKind::kUnicodeString:
    case TokenKind::kUnicodeIdentifier: return 3;
    case TokenKind::kBitString:
    case TokenKind::kHexString: return 2;
    case TokenKind::kEscapeString: return source[0] == '\'' ? 1 : 2;
    default: return 1;
  }
}

// Calls `plain(c)` for each character of a quoted token's content; doubled quotes are one, the parts of a
// continued string are one string. `escaped(i)` handles a backslash at i and returns where to go on; without it
// backslashes are plain.
template <class Plain, class Escaped>
void each_character(std::string_view source, std::size_t i, char quote, bool escapes, Plain plain,
                    Escaped escaped) {
  while (i < source.size()) {
    if (source[i] == quote) {
      if (i + 1 < source.size() && source[i + 1] == quote) {
        plain(quote);
        i += 2;
        continue;
      }
      // Between the parts of a continued string there is only white space and comments.
      ++i;
      while (i < source.size() && source[i] != quote) {
        if (source[i] == '-')
          while (i < source.size() && source[i] != '\n' && source[i] != '\r') ++i;
        else if (source[i] == 'u' || source[i] == 'U')
          return;  // UESCAPE
        else
          ++i;
      }
      ++i;
    } else if (escapes && source[i] == '\\') {
      i = escaped(i);
    } else {
      plain(source[i++]);
    }
  }
}

std::uint32_t read_hex(std::string_view s, std::size_t i, std::size_t digits) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < digits && i + k < s.size(); ++k)
    value = value * 16 + static_cast<std::uint32_t>(hex_digit(s[i + k]));
  return value;
}

bool is_first_surrogate(std::uint32_t c) {
  return c >= 0xD800 && c <= 0xDBFF;
}
bool is_second_surrogate(std::uint32_t c) {
  return c >= 0xDC00 && c <= 0xDFFF;
}
std::uint32_t join_surrogates(std::uint32_t first, std::uint32_t second) {
  return ((first & 0x3FF) << 10) + 0x10000 + (second & 0x3FF);
}

std::string decode_escapes(std::string_view source) {
  std::string value;
  std::uint32_t first = 0;
  const auto plain = [&](char c) { value.push_back(c); };
  const auto escaped = [&](std::size_t i) -> std::size_t {
    const char c = i + 1 < source.size() ? source[i + 1] : '\0';
    if (c == 'u' || c == 'U') {
      const std::size_t digits = c == 'u' ? 4 : 8;
      std::uint32_t code = read_hex(source, i + 2, digits);
      if (is_first_surrogate(code)) {
        first = code;
      } else {
        if (is_second_surrogate(code)) code = join_surrogates(first, code);
        append_utf8(value, code);
      }
      return i + 2 + digits;
    }
    if (c == 'x' && i + 2 < source.size() && hex_digit(source[i + 2]) >= 0) {
      std::size_t end = i + 2;
      while (end < i + 4 && end < source.size() && hex_digit(source[end]) >= 0) ++end;
      value.push_back(static_cast<char>(read_hex(source, i + 2, end - i - 2)));
      return end;
    }
    if (c >= '0' && c <= '7') {
      std::size_t end = i + 1;
      unsigned code = 0;
      while (end < i + 4 && end < source.size() && source[end] >= '0' && source[end] <= '7')
        code = code * 8 + static_cast<unsigned>(source[end++] - '0');
      value.push_back(static_cast<char>(code & 0xFF));
      return end;
    }
    switch (c) {
      case 'b': value.push_back('\b'); break;
      case 'f': value.push_back('\f'); break;
      case 'n': value.push_back('\n'); break;
      case 'r': value.push_back('\r'); break;
      case 't': value.push_back('\t'); break;
      case 'v': value.push_back('\v'); break;
      default: value.push_back(c); break;
    }
    return i + 2;
  };
  each_character(source, content_begin(TokenKind::kEscapeString, source), '\'', true, plain, escaped);
  return value;
}

// The quoted content of a U& literal with its doubled quotes resolved, its Unicode escapes not yet.
std::string unicode_content(TokenKind kind, std::string_view source) {
  std::string content;
  const char quote = kind == TokenKind::kUnicodeString ? '\'' : '"';
  each_character(
      source, 3, quote, false, [&](char c) { content.push_back(c); }, [](std::size_t i) { return i + 1; });
  return content;
}

// Resolves the escapes of a U& literal. On failure `at` is the offset into the content.
const char* resolve_unicode(std::string_view content, char escape, std::string& value, std::size_t& at) {
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < content.size();) {
    at = i;
    if (content[i] != escape) {
      if (first != 0) return "invalid Unicode surrogate pair";
      value.push_back(content[i++]);
      continue;
    }
    if (i + 1 < content.size() && content[i + 1] == escape) {
      if (first != 0) return "invalid Unicode surrogate pair";
      value.push_back(escape);
      i += 2;
      continue;
    }
    const bool longer = i + 1 < content.size() && content[i + 1] == '+';
    const std::size_t begin = i + (longer ? 2 : 1);
    const std::size_t digits = longer ? 6 : 4;
    for (std::size_t k = begin; k < begin + digits; ++k)
      if (k >= content.size() || hex_digit(content[k]) < 0) return "invalid Unicode escape";
    std::uint32_t code = read_hex(content, begin, digits);
    if (code == 0 || code > 0x10FFFF) return "invalid Unicode escape value";
    if (first != 0) {
      if (!is_second_surrogate(code)) return "invalid Unicode surrogate pair";
      code = join_surrogates(first, code);
      first = 0;
    } else if (is_second_surrogate(code)) {
      return "invalid Unicode surrogate pair";
    }
    if (is_first_surrogate(code))
      first = code;
    else
      append_utf8(value, code);
    i = begin + digits;
  }
  at = content.size();
  return first != 0 ? "invalid Unicode surrogate pair" : nullptr;
}

void cut_name(std::string& name) {
  if (name.size() <= kNameBytes) return;
  std::size_t end = kNameBytes;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  name.resize(end);
}

}  // namespace

Status check_unicode_literal(std::string_view text, Token token, char escape) {
  std::string value;
  std::size_t at = 0;
  const char* problem = resolve_unicode(unicode_content(token.kind, token.of(text)), escape, value, at);
  if (problem == nullptr) return {};
  Error error;
  error.sqlstate = std::string_view(problem) == "invalid Unicode escape" ? "22025" : "42601";
  error.message = problem;
  if (error.sqlstate == "22025") error.hint = "Unicode escapes must be \\XXXX or \\+XXXXXX.";
  error.position = character_position(text, token.begin + static_cast<std::uint32_t>(at) + 3);
  return fail(std::move(error));
}

std::string_view plain_string(std::string_view text, Token token) {
  const std::string_view source = token.of(text);
  if (token.kind == TokenKind::kDollarString) {
    const std::size_t tag = source.find('$', 1) + 1;
    return source.substr(tag, source.size() - 2 * tag);
  }
  if (token.kind == TokenKind::kUnicodeString) return {};
  const std::size_t begin = content_begin(token.kind, source);
  const std::string_view content = source.substr(begin, source.size() - begin - 1);
  if (content.find('\'') != std::string_view::npos) return {};
  if (token.kind == TokenKind::kEscapeString && content.find('\\') != std::string_view::npos) return {};
  return content;
}

std::string_view plain_identifier(std::string_view text, Token token) {
  const std::string_view source = token.of(text);
  if (source.size() > kNameBytes) return {};
  if (token.kind == TokenKind::kIdentifier) {
    for (char c : source)
      if (c >= 'A' && c <= 'Z') return {};
    return source;
  }
  if (token.kind != TokenKind::kQuotedIdentifier) return {};
  const std::string_view content = source.substr(1, source.size() - 2);
  return content.find('"') == std::string_view::npos ? content : std::string_view{};
}

Result<std::string> decode_string(std::string_view text, Token token, char escape) {
  const std::string_view source = token.of(text);
  std::string value;
  switch (token.kind) {
    case TokenKind::kEscapeString: {
      value = decode_escapes(source);
      KG_CHECK(check_utf8(value));
      return value;
    }
    case TokenKind::kUnicodeString: {
      std::size_t at = 0;
      resolve_unicode(unicode_content(token.kind, source), escape, value, at);
      return value;
    }
    case TokenKind::kDollarString: return std::string(plain_string(text, token));
    default: break;
  }
  each_character(
      source, content_begin(token.kind, source), '\'', false, [&](char c) { value.push_back(c); },
      [](std::size_t i) { return i + 1; });
  return value;
}

Result<std::string> decode_string_there(std::string_view text, Token token) {
  if (token.kind != TokenKind::kUnicodeString) return decode_string(text, token);
  Scanner scanner(text);
  scanner.seek(token.end);
  if (!is_keyword(text, scanner.next(), "uescape")) return decode_string(text, token);
  KG_TRY(const std::string escape, decode_string(text, scanner.next()));
  if (escape.size() != 1) return fail(sqlstate::kSyntaxError, "invalid Unicode escape character");
  return decode_string(text, token, escape.front());
}

Result<std::string> decode_identifier(std::string_view text, Token token, char escape) {
  const std::string_view source = token.of(text);
  std::string name;
  if (token.kind == TokenKind::kIdentifier) {
    name = source;
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  } else if (token.kind == TokenKind::kUnicodeIdentifier) {
    std::size_t at = 0;
    resolve_unicode(unicode_content(token.kind, source), escape, name, at);
  } else {
    each_character(
        source, 1, '"', false, [&](char c) { name.push_back(c); }, [](std::size_t i) { return i + 1; });
  }
  cut_name(name);
  return name;
}

}  // namespace kintsugi::parser
