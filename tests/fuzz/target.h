// A fuzz target is a function over bytes and the seeds that it starts from. One source, two programs: with
// clang a libFuzzer program of its own (the `fuzz` preset), with any compiler a case of kg_fuzz_replay, which
// runs the seeds, the kept corpus (tests/fuzz/corpus/<name>/) and mutations of both.
//
//   namespace {
//   void fuzz(std::string_view input) { ... CHECK_THAT(property); }
//   std::vector<std::string> seeds() { return {...}; }
//   }
//   KINTSUGI_FUZZ_TARGET(wire_startup, fuzz, seeds)
//
// and a line `kintsugi_fuzz(wire_startup ROOMS wire)` in tests/fuzz/CMakeLists.txt.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::fuzz {

using Run = void (*)(std::string_view);
using Seeds = std::vector<std::string> (*)();

struct Target {
  std::string name;
  Run run;
  Seeds seeds;
};
inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}
struct Registered {
  Registered(std::string name, Run run, Seeds seeds) { targets().push_back({std::move(name), run, seeds}); }
};

[[noreturn]] inline void broken(const char* property, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, property);
  std::abort();
}

// Writes the seeds, one file each, into a folder that is there.
inline void write_seeds(const std::string& folder, Seeds seeds) {
  int number = 0;
  for (const std::string& seed : seeds()) {
    std::string path = folder + "/seed" + std::to_string(number++);
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (!file || std::fwrite(seed.data(), 1, seed.size(), file) != seed.size())
      broken("seeds are written", path.c_str(), 0);
    std::fclose(file);
  }
}

}  // namespace kintsugi::fuzz

#define CHECK_THAT(property) \
  (static_cast<bool>(property) ? void(0) : ::kintsugi::fuzz::broken(#property, __FILE__, __LINE__))

#ifdef KINTSUGI_LIBFUZZER
// KINTSUGI_FUZZ_SEEDS=<folder> makes the program write its seeds there and end.
#define KINTSUGI_FUZZ_TARGET(name, run, seeds)                                     \
  extern "C" int LLVMFuzzerInitialize(int*, char***) {                             \
    if (const char* folder = std::getenv("KINTSUGI_FUZZ_SEEDS")) {                 \
      ::kintsugi::fuzz::write_seeds(folder, seeds);                                \
      std::exit(0);                                                                \
    }                                                                              \
    return 0;                                                                      \
  }                                                                                \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) { \
    run({reinterpret_cast<const char*>(data), n});                                 \
    return 0;                                                                      \
  }
#else
#define KINTSUGI_FUZZ_TARGET(name, run, seeds) \
  static const ::kintsugi::fuzz::Registered registered_##name(#name, run, seeds);
#endif
