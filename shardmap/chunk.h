// A sorted run of a map's entries in one packed block: the unit that an edit copies and that maps of different
// epochs share. Immutable once built; any thread may read. Private to shardmap/ but for the types at the top.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace kintsugi::shardmap {

// A shard's number: given once, never again to another shard of the same store.
using ShardId = std::uint32_t;
inline constexpr ShardId kShardIdMax = (1U << 24) - 1;

enum class ShardletState : std::uint8_t {
  kOnline,
  kReadOnly,
  kOffline,
  kHeld,  // a move is past its fence: statements wait for the next epoch
};

// One entry as it is read or written; the views are somebody else's bytes. In a LIST map `low` is the value and
// `high` is empty.
struct Entry {
  std::string_view low;
  std::string_view high;
  std::string_view name;
  ShardId shard = 0;
  ShardletState state = ShardletState::kOnline;
};

// The eight bytes of `key` from `skip` on as a number; zeros stand for what is missing. For keys that agree
// before `skip` the numbers never contradict the order of the keys.
inline std::uint64_t key_head(std::string_view key, std::size_t skip) {
  std::uint64_t head = 0;
  if (key.size() >= skip + 8) {
    __builtin_memcpy(&head, key.data() + skip, 8);
  } else if (key.size() > skip) {
    __builtin_memcpy(&head, key.data() + skip, key.size() - skip);
  }
  return __builtin_bswap64(head);
}

// How many of `count` ascending numbers are not above `head`; without a branch that could be mispredicted.
inline std::size_t count_up_to(const std::uint64_t* heads, std::size_t count, std::uint64_t head) {
  const std::uint64_t* base = heads;
  while (count > 1) {
    const std::size_t half = count / 2;
    base += static_cast<std::size_t>(base[half - 1] <= head) * half;
    count -= half;
  }
  return static_cast<std::size_t>(base - heads) + (count == 1 && *base <= head ? 1 : 0);
}

// Of `after` keys whose heads are not above ours, those whose head is ours are still to be compared whole.
template <class HeadOf, class LowOf>
std::size_t settle_equal_heads(std::size_t after, std::uint64_t head, std::string_view key, HeadOf head_of,
                               LowOf low_of) {
  std::size_t first = after;
  while (first > 0 && head_of(first - 1) == head) --first;
  while (first < after) {
    const std::size_t middle = (first + after) / 2;
    if (low_of(middle) <= key) {
      first = middle + 1;
    } else {
      after = middle;
    }
  }
  return after;
}

// In memory: this header (one cache line), a sample of the heads (two), blocks of 16 heads and routes (three
// each), offsets, and the bytes. A lookup waits for memory twice: header with sample, then one block.
class alignas(64) Chunk {
 public:
  static constexpr std::size_t kEntriesMax = 256;

  // `entries` are sorted by low, without duplicates, and do not overlap. At least one.
  static std::shared_ptr<const Chunk> build(std::uint32_t id, std::span<const Entry> entries);

  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  struct Place {
    std::size_t count = 0;  // how many entries have a low that is not after the key
    bool equal = false;     // the last of them has the key itself
  };
  [[nodiscard]] Place place_of(std::string_view key) const;
  [[nodiscard]] std::size_t count_not_after(std::string_view key) const { return place_of(key).count; }

  [[nodiscard]] ShardId shard(std::size_t at) const { return route(at) >> 8; }
  [[nodiscard]] ShardletState state(std::size_t at) const {
    return static_cast<ShardletState>(route(at) & 0x7f);
  }
  // The entry ends where the next one in this chunk begins.
  [[nodiscard]] bool contiguous(std::size_t at) const { return (route(at) & 0x80) != 0; }
  [[nodiscard]] std::string_view low(std::size_t at) const;
  [[nodiscard]] std::string_view high(std::size_t at) const;
  [[nodiscard]] std::string_view name(std::size_t at) const;
  [[nodiscard]] Entry at(std::size_t at) const { return {low(at), high(at), name(at), shard(at), state(at)}; }
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  static constexpr std::size_t kBlock = 16;
  static constexpr std::size_t kPrefixInline = 32;
  struct Block {
    std::uint64_t heads[kBlock];   // unused ones are the highest number
    std::uint32_t routes[kBlock];  // shard << 8 | contiguous << 7 | state
  };
  static_assert(sizeof(Block) == 192);

  Chunk() = default;
  [[nodiscard]] const std::uint64_t* sample() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
  [[nodiscard]] const Block* blocks() const {
    return reinterpret_cast<const Block*>(sample() + kEntriesMax / kBlock);
  }
  [[nodiscard]] std::uint32_t route(std::size_t at) const { return blocks()[at / kBlock].routes[at % kBlock]; }
  [[nodiscard]] const std::uint32_t* offsets() const {  // size + 1
    return reinterpret_cast<const std::uint32_t*>(blocks() + (size_ + kBlock - 1) / kBlock);
  }
  // An entry here is low size, high size, low, high, name.
  [[nodiscard]] const char* blob() const { return reinterpret_cast<const char*>(offsets() + size_ + 1); }

  std::uint32_t size_ = 0;
  std::uint32_t id_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t prefix_size_ = 0;
  std::uint32_t whole_size_ =
      0;  // not 0: every low has this size and its head holds all of it behind the prefix
  const char* prefix_ = nullptr;  // what all lows begin with: in the header when it fits
  char inline_prefix_[kPrefixInline] = {};
};
static_assert(sizeof(Chunk) == 64);

// The length of what both begin with.
std::size_t common_prefix(std::string_view a, std::string_view b);

}  // namespace kintsugi::shardmap
