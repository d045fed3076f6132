#include "frontend/encodings.h"

#include <algorithm>

namespace kintsugi::frontend {
namespace {

// Letters of several bytes may have one of ASCII in them.
bool holds_ascii(std::string_view encoding) {
  constexpr std::string_view kThose[] = {"SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC", "GB18030", "JOHAB"};
  return std::ranges::find(kThose, encoding) != std::end(kThose);
}

// Bytes are in the order of UTF8's.
bool keeps_order(std::string_view encoding) {
  return encoding == "UTF8" || encoding == "SQL_ASCII" || encoding == "LATIN1";
}

bool is_text(std::uint32_t type) {
  constexpr std::uint32_t kText = 25, kVarchar = 1043;
  return type == kText || type == kVarchar;
}

bool orders_texts(const planner::Merge& merge) {
  return std::ranges::any_of(merge.keys, [](const planner::SortKey& key) { return is_text(key.type); }) ||
         std::ranges::any_of(merge.columns, [](const planner::FoldColumn& each) {
           return is_text(each.type) && (each.fold == planner::Fold::kMin || each.fold == planner::Fold::kMax);
         });
}

Error not_in(std::string_view encoding, std::string what) {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = std::move(what) + " while client_encoding is " + std::string(encoding),
          .hint = "SET client_encoding = 'UTF8'."};
}

}  // namespace

std::optional<Error> misread_in(std::string_view encoding, std::string_view text) {
  if (!holds_ascii(encoding)) return std::nullopt;
  for (std::size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at + 1))
    if (at > 0 && static_cast<unsigned char>(text[at - 1]) >= 0x80)
      return not_in(encoding, "a letter with the byte of a backslash in it");
  return std::nullopt;
}

std::optional<Error> refused_in(std::string_view encoding, const planner::Plan& plan) {
  if (keeps_order(encoding)) return std::nullopt;
  if (const auto* fan_out = std::get_if<planner::FanOut>(&plan);
      fan_out != nullptr && orders_texts(fan_out->merge))
    return not_in(encoding, "texts of several shards in the order of their bytes");
  const bool quotes =
      std::holds_alternative<planner::Gather>(plan) || std::holds_alternative<planner::WorkOut>(plan) ||
      std::holds_alternative<planner::ReadFirst>(plan) || std::holds_alternative<planner::Pour>(plan) ||
      std::holds_alternative<planner::CopyIn>(plan);
  if (quotes && holds_ascii(encoding))
    return not_in(encoding, "a statement whose values go from shard to shard");
  return std::nullopt;
}

}  // namespace kintsugi::frontend
