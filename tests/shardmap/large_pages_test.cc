#include "shardmap/large_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace kintsugi::shardmap {

TEST(LargePages, BlocksBeginAtALineDoNotOverlapAndOutliveTheirPages) {
  struct Taken {
    LargePages::Block block;
    std::size_t front;
    std::size_t back;
  };
  std::vector<Taken> taken;
  {
    LargePages pages;
    // Odd sizes over several pieces, and one that is too large for any.
    for (std::size_t i = 0; i < 700; ++i) {
      const std::size_t front = i * 11 % 900;
      const std::size_t back = i == 350 ? std::size_t{3} << 20 : 1 + i * 37;
      taken.push_back({i == 7 ? take_alone(front, back) : pages.take(front, back), front, back});
      std::memset(taken.back().block.front, static_cast<int>(i % 251), front);
      std::memset(taken.back().block.back, static_cast<int>(i % 241), back);
    }
  }
  for (std::size_t i = 0; i < taken.size(); i += 2) taken[i].block.owner.reset();
  for (std::size_t i = 1; i < taken.size(); i += 2) {
    const auto& [block, front, back] = taken[i];
    for (const std::byte* part : {block.front, block.back})
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part) % 64, 0U);
    for (std::size_t at = 0; at < front; ++at) ASSERT_EQ(block.front[at], std::byte(i % 251)) << i;
    for (std::size_t at = 0; at < back; ++at) ASSERT_EQ(block.back[at], std::byte(i % 241)) << i;
  }
}

}  // namespace kintsugi::shardmap
