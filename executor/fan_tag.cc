#include "executor/fan_tag.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace kintsugi::executor {
namespace {

// "INSERT 0 5": 5, and what stands before it.
std::optional<std::uint64_t> count_of(std::string_view tag, std::string_view& before) {
  const std::size_t space = tag.rfind(' ');
  if (space == std::string_view::npos) return std::nullopt;
  std::uint64_t count = 0;
  const char* end = tag.data() + tag.size();
  const auto [stopped, error] = std::from_chars(tag.data() + space + 1, end, count);
  if (error != std::errc() || stopped != end) return std::nullopt;
  before = tag.substr(0, space);
  return count;
}

}  // namespace

Result<std::string> merged_tag(planner::Merge::Kind kind, const std::vector<std::string>& tags, bool has_rows,
                               std::uint64_t rows_out) {
  const std::string& first = tags.front();
  if (kind == planner::Merge::Kind::kOne) {
    for (const std::string& tag : tags) {
      if (tag != first) {
        return fail("XX001",
                    "the copies of a replicated table differ: one shard answered \"" + first +
                        "\", another \"" + tag + "\"",
                    "Compare the table on all shards.");
      }
    }
    return first;
  }
  if (has_rows && first.starts_with("SELECT ")) return "SELECT " + std::to_string(rows_out);
  std::string_view verb;
  if (!count_of(first, verb)) return first;
  std::uint64_t total = 0;
  for (const std::string& tag : tags) {
    std::string_view before;
    total += count_of(tag, before).value_or(0);
  }
  return std::string(verb) + " " + std::to_string(total);
}

}  // namespace kintsugi::executor
