// Memory for many small blocks that live about as long as each other. It is taken in pieces of 2 MB, for each
// of which the kernel is asked for one page: a processor knows the places of few pages by heart, and a lookup
// in a map of a million entries would otherwise wait for the page's place as well as for the memory. One thread
// at a time may take; blocks may be given back on any.
#pragma once

#include <cstddef>
#include <memory>

namespace kintsugi::shardmap {

class LargePages {
 public:
  // Begins at a cache line. The piece that it is from goes back when the last of its blocks does.
  [[nodiscard]] std::shared_ptr<void> take(std::size_t bytes);

 private:
  std::shared_ptr<std::byte> piece_;
  std::size_t taken_ = 0;
};

// The same without pieces: for a block that comes alone.
[[nodiscard]] std::shared_ptr<void> take_alone(std::size_t bytes);

}  // namespace kintsugi::shardmap
