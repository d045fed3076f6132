#include "tests/parser/pg_oracle.h"

#include <pg_query.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kintsugi::parser::oracle {
namespace {

// Enough of protobuf to read ScanResult { repeated ScanToken tokens = 2; } of varints.
std::uint64_t varint(std::string_view bytes, std::size_t& i) {
  std::uint64_t value = 0;
  for (int shift = 0; i < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[i++]);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

TokenKind kind_of(int code, std::string_view source) {
  switch (code) {
    case 258: return source.starts_with('"') ? TokenKind::kQuotedIdentifier : TokenKind::kIdentifier;
    case 259: return TokenKind::kUnicodeIdentifier;
    case 260: return source.find_first_of(".eE") == source.npos ? TokenKind::kInteger : TokenKind::kNumeric;
    case 261: return TokenKind::kString;
    case 262: return TokenKind::kUnicodeString;
    case 263: return TokenKind::kBitString;
    case 264: return TokenKind::kHexString;
    case 265: return TokenKind::kOperator;
    case 266: return TokenKind::kInteger;
    case 267: return TokenKind::kParameter;
    case 268:
    case 269:
    case 270: return TokenKind::kPunctuation;
    case 271:
    case 272:
    case 273:
    case 274: return TokenKind::kOperator;
    default: break;
  }
  if (code > 276) return TokenKind::kIdentifier;  // a keyword
  if (code > 0 && std::string_view("+-*/%^<>=").find(static_cast<char>(code)) != std::string_view::npos)
    return TokenKind::kOperator;
  return TokenKind::kPunctuation;
}

}  // namespace

Scan scan(const std::string& text) {
  Scan result;
  PgQueryScanResult raw = pg_query_scan(text.c_str());
  if (raw.error != nullptr) {
    result.failure = {raw.error->message, raw.error->cursorpos};
  } else {
    const std::string_view bytes(raw.pbuf.data, raw.pbuf.len);
    for (std::size_t i = 0; i < bytes.size();) {
      const auto tag = varint(bytes, i);
      if ((tag & 7) == 0) {
        varint(bytes, i);
        continue;
      }
      const auto length = varint(bytes, i);
      if (tag >> 3 == 2) {
        ScannedToken token;
        for (std::size_t j = i; j < i + length;) {
          const auto field = varint(bytes, j) >> 3;
          const auto value = varint(bytes, j);
          if (field == 1) token.token.begin = static_cast<std::uint32_t>(value);
          if (field == 2) token.token.end = static_cast<std::uint32_t>(value);
          if (field == 4) token.code = static_cast<int>(value);
        }
        token.token.kind = kind_of(token.code, token.token.of(text));
        if (token.code != 275 && token.code != 276) result.tokens.push_back(token);
      }
      i += length;
    }
  }
  pg_query_free_scan_result(raw);
  return result;
}

Failure parse(const std::string& text) {
  PgQueryProtobufParseResult raw = pg_query_parse_protobuf(text.c_str());
  Failure failure;
  if (raw.error != nullptr) failure = {raw.error->message, raw.error->cursorpos};
  pg_query_free_protobuf_parse_result(raw);
  return failure;
}

std::vector<Range> split(const std::string& text) {
  PgQuerySplitResult raw = pg_query_split_with_parser(text.c_str());
  std::vector<Range> ranges;
  for (int i = 0; raw.error == nullptr && i < raw.n_stmts; ++i) {
    const auto begin = static_cast<std::uint32_t>(raw.stmts[i]->stmt_location);
    ranges.push_back({begin, begin + static_cast<std::uint32_t>(raw.stmts[i]->stmt_len)});
  }
  pg_query_free_split_result(raw);
  return ranges;
}

std::vector<std::string> sql_files(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none))
    if (entry.path().extension() == ".sql") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    texts.push_back(std::move(text).str());
  }
  return texts;
}

}  // namespace kintsugi::parser::oracle
