// The console: admin/console/index.html, made part of the program when it is built.
#pragma once

#include <string_view>

namespace kintsugi::admin {

[[nodiscard]] std::string_view console_page();

}  // namespace kintsugi::admin
