// How much longer things may take in this build than in the release build: the factor for deadlines in tests.
// (ctest's own bounds have one in cmake/rooms.cmake.)
#pragma once

namespace kintsugi {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kPatience = 4;
#else
inline constexpr int kPatience = 1;
#endif

}  // namespace kintsugi
