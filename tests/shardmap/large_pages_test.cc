#include "shardmap/large_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace kintsugi::shardmap {

TEST(LargePages, BlocksBeginAtALineDoNotOverlapAndOutliveTheirPages) {
  struct Block {
    std::shared_ptr<void> memory;
    std::size_t bytes;
  };
  std::vector<Block> blocks;
  {
    LargePages pages;
    // Odd sizes over several pieces, and one that is too large for any.
    for (std::size_t i = 0; i < 700; ++i) {
      const std::size_t bytes = i == 350 ? std::size_t{3} << 20 : 1 + i * 37;
      blocks.push_back({pages.take(bytes), bytes});
      std::memset(blocks.back().memory.get(), static_cast<int>(i % 251), bytes);
    }
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].memory.reset();
  for (std::size_t i = 1; i < blocks.size(); i += 2) {
    const auto* at = static_cast<const unsigned char*>(blocks[i].memory.get());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0U);
    for (std::size_t byte = 0; byte < blocks[i].bytes; ++byte) ASSERT_EQ(at[byte], i % 251) << i;
  }
}

}  // namespace kintsugi::shardmap
