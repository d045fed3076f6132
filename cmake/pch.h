// Standard headers that nearly every file includes, compiled once a target. Each file still names what it uses.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
