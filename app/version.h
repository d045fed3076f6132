// The version of the program; CMakeLists.txt has it from project(VERSION).
#pragma once

#include <string_view>

namespace kintsugi::app {
inline constexpr std::string_view kVersion = KINTSUGI_VERSION;
}
