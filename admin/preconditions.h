// The conditions of a request, by the entity tags that it names (RFC 9110, 13). The tag of every answer about
// the map is its epoch. Pure.
#pragma once

#include <string_view>

#include "admin/commands/epoch_condition.h"

namespace kintsugi::admin {

struct Preconditions {
  EpochCondition epoch;
  bool none = false;  // If-None-Match: *, which wants that there is nothing yet

  [[nodiscard]] bool given() const { return epoch.one_of || !epoch.unwanted.empty(); }
  // Whether a GET has nothing new to tell.
  [[nodiscard]] bool not_modified(std::uint64_t now) const;
};

// Of the two headers, several of one name put together with commas; empty: it was not sent. "W/" tags are no
// match for If-Match and are one for If-None-Match. An error where a header is no list of tags.
Result<Preconditions> read_preconditions(std::string_view if_match, std::string_view if_none_match);

}  // namespace kintsugi::admin
