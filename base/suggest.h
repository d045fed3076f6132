// "did you mean": the one name among the allowed that a typo most likely meant. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi {

// The nearest name by edits (a swap of two neighbours is one); empty when none is near enough to be meant.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& names);

// " (did you mean serve?)", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// "a, b, c"
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

}  // namespace kintsugi
