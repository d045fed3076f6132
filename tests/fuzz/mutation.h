// Random changes of bytes, for tests that have no libFuzzer.
#pragma once

#include <random>
#include <string>

namespace kintsugi::fuzz {

// Overwrites, inserts, removes and repeats bytes, with a taste for the values that break parsers.
inline std::string mutated(std::string bytes, std::mt19937& random) {
  constexpr unsigned char kNasty[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe, 'S', 'P', ',', '=', '\'', '"', '$'};
  for (auto changes = 1 + random() % 4; changes > 0; --changes) {
    std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    char byte =
        random() % 2 ? static_cast<char>(kNasty[random() % sizeof kNasty]) : static_cast<char>(random());
    switch (random() % 4) {
      case 0:
        if (!bytes.empty()) bytes[at] = byte;
        break;
      case 1: bytes.insert(at, 1, byte); break;
      case 2:
        if (!bytes.empty()) bytes.erase(at, 1 + random() % 4);
        break;
      default: bytes.insert(at, bytes.substr(at, random() % 8)); break;
    }
  }
  return bytes;
}

}  // namespace kintsugi::fuzz
