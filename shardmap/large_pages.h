// Memory for many small blocks that live about as long as each other. It is taken in pieces of 2 MB, for each
// of which the kernel is asked for one page: a processor knows the places of few pages by heart, and a lookup
// in a map of a million entries would otherwise wait for the page's place as well as for the memory. One thread
// at a time may take; blocks may be given back on any. A block has two parts, of which the first ones of all
// blocks of a piece lie side by side: what is read often goes there, and is close together even where the
// kernel has no large pages to give.
#pragma once

#include <cstddef>
#include <memory>

namespace kintsugi::shardmap {

class LargePages {
 public:
  struct Block {
    std::shared_ptr<void> owner;  // of both
    std::byte* front = nullptr;   // both begin at a cache line
    std::byte* back = nullptr;
  };
  // The piece that it is from goes back when the last of its blocks does.
  [[nodiscard]] Block take(std::size_t front, std::size_t back);

 private:
  std::shared_ptr<std::byte> piece_;
  std::size_t front_ = 0;  // where the free part of the piece begins
  std::size_t back_ = 0;   // and ends
};

// The same without pieces: for a block that comes alone.
[[nodiscard]] LargePages::Block take_alone(std::size_t front, std::size_t back);

}  // namespace kintsugi::shardmap
