#include "admin/preconditions.h"

#include <algorithm>
#include <optional>

namespace kintsugi::admin {
namespace {

struct Tags {
  bool any = false;                       // "*"
  std::vector<std::string> strong, weak;  // without their quotes
};

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

// One tag from the beginning of the text, which is left with what follows it.
bool take_tag(std::string_view& text, Tags& tags) {
  const bool weak = text.starts_with("W/");
  if (weak) text.remove_prefix(2);
  const std::size_t end = text.find('"', 1);
  if (!text.starts_with('"') || end == std::string_view::npos) return false;
  const std::string_view tag = text.substr(1, end - 1);
  const bool printable = std::all_of(tag.begin(), tag.end(),
                                     [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; });
  (weak ? tags.weak : tags.strong).emplace_back(tag);
  text.remove_prefix(end + 1);
  return printable;
}

std::optional<Tags> read_tags(std::string_view text) {
  Tags tags;
  text = without_spaces(text);
  if (text == "*") {
    tags.any = true;
    return tags;
  }
  while (!text.empty()) {
    if (text.front() != ',' && !take_tag(text, tags)) return std::nullopt;
    text = without_spaces(text);
    if (text.empty()) break;
    if (text.front() != ',') return std::nullopt;  // empty elements between commas are fine
    text = without_spaces(text.substr(1));
  }
  return tags;
}

tl::unexpected<Error> no_tags(const char* header) {
  return fail(kEpochMoved, std::string(header) + " is no epoch of a shard map",
              "It is the ETag of an answer, or several with commas between them, or *.");
}

}  // namespace

bool Preconditions::not_modified(std::uint64_t now) const {
  const auto& tags = epoch.unwanted;
  return none || std::find(tags.begin(), tags.end(), std::to_string(now)) != tags.end();
}

Result<Preconditions> read_preconditions(std::string_view if_match, std::string_view if_none_match) {
  const std::optional<Tags> match = read_tags(if_match), none_match = read_tags(if_none_match);
  if (!match) return no_tags("If-Match");
  if (!none_match) return no_tags("If-None-Match");
  Preconditions read;
  read.epoch.one_of = !if_match.empty() && !match->any;
  read.epoch.wanted = match->strong;
  read.epoch.unwanted = none_match->strong;
  read.epoch.unwanted.insert(read.epoch.unwanted.end(), none_match->weak.begin(), none_match->weak.end());
  read.none = none_match->any;
  return read;
}

}  // namespace kintsugi::admin
