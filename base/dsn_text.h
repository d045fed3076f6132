// A connection string as it may be shown. Pure.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi {

inline constexpr std::string_view kHiddenPassword = "***";

// The same with every password as ***, in the keyword form and in a URL.
[[nodiscard]] std::string without_password(std::string_view dsn);

}  // namespace kintsugi
