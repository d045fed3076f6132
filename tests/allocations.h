// Counts what a thread allocates: replaces operator new of the whole test program, so one file of it includes
// this. The compiler may not look into these: inlined into a caller they look like a mismatched pair to g++ 12.
#pragma once

#include <cstdlib>
#include <new>

namespace kintsugi::testing {
inline thread_local std::size_t allocations = 0;
inline thread_local std::size_t largest_allocation = 0;  // in bytes; whoever asks sets it to 0 first
}  // namespace kintsugi::testing

[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++kintsugi::testing::allocations;
  if (size > kintsugi::testing::largest_allocation) kintsugi::testing::largest_allocation = size;
  return std::malloc(size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
