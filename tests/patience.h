// How much longer things may take in this build than in the release build. The one factor for deadlines in
// tests; cmake/rooms.cmake has the same one for ctest's.
#pragma once

namespace kintsugi {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kPatience = 4;
#else
inline constexpr int kPatience = 1;
#endif

}  // namespace kintsugi
