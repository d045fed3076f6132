// INVARIANT(condition, "what we promised"): stays on in release builds. For our own broken promises only; bytes
// from a peer, a file or a user never reach one, they are errors.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace kintsugi {
[[noreturn]] inline void invariant_broken(const char* condition, const char* promise, const char* file,
                                          int line) {
  std::fprintf(stderr, "kintsugi: internal error at %s:%d: %s (%s)\n", file, line, promise, condition);
  std::abort();
}
}  // namespace kintsugi

#define INVARIANT(condition, promise)     \
  (static_cast<bool>(condition) ? void(0) \
                                : ::kintsugi::invariant_broken(#condition, promise, __FILE__, __LINE__))
