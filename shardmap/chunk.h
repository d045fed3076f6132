// A sorted run of a map's entries in one packed block: the unit that an edit copies and that maps of different
// epochs share. Immutable once built; any thread may read. Private to shardmap/ but for the types at the top.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "shardmap/large_pages.h"

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
    return __builtin_bswap64(head);
  }
  if (key.size() <= skip) return 0;
  const std::size_t missing = skip + 8 - key.size();  // 1 to 7
  if (key.size() >= 8) {
    __builtin_memcpy(&head, key.data() + key.size() - 8, 8);
    return __builtin_bswap64(head) << (8 * missing);
  }
  for (std::size_t i = skip; i < key.size(); ++i) head = head << 8 | static_cast<unsigned char>(key[i]);
  return head << (8 * missing);
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

// Sixteen ascending numbers of two bytes, which are compared with one at once.
struct Steps {
  static constexpr std::size_t kCount = 16;
  static constexpr std::uint16_t kMax = 0xfffd;
  static constexpr std::uint16_t kBeyond = 0xfffe;  // what is looked for and further than kMax
  static constexpr std::uint16_t kUnused = 0xffff;
  std::uint16_t at[kCount];

  // The step to what is so far above.
  static std::uint16_t step(std::uint64_t above, int shift) {
    return static_cast<std::uint16_t>(std::min<std::uint64_t>(above >> shift, kBeyond));
  }
  // How many are not above `step`, which is not kUnused.
  [[nodiscard]] inline std::size_t up_to(std::uint16_t step) const;
};

// Heads that differ only in the low half of each byte, as digits do, are told apart by those halves as well:
// the eight of them in the first four bytes, in the same order.
inline constexpr std::uint64_t kHighHalves = 0xf0f0f0f0f0f0f0f0;
inline std::uint64_t low_halves(std::uint64_t head) {
  head &= ~kHighHalves;
  head = (head | head >> 4) & 0x00ff00ff00ff00ff;
  head = (head | head >> 8) & 0x0000ffff0000ffff;
  return (head | head >> 16) << 32;
}

// Sixteen neighbouring entries of a chunk, as little as tells them apart: one cache line.
struct alignas(64) EntryLine {
  static constexpr std::size_t kEntries = Steps::kCount;
  // How far each head is above the place of the line (ChunkGuide), in units of its step_shift.
  Steps steps;
  std::uint16_t routes[kEntries];  // shard << 3 | contiguous << 2 | state
};
static_assert(sizeof(EntryLine) == 64);

class Chunk;

// What a lookup has to know of a chunk before it reads it: one cache line. The directory has these side by
// side, so that they stay in the processor's caches when the chunks themselves do not.
struct alignas(64) ChunkGuide {
  static constexpr std::size_t kLines = 14;
  static constexpr std::uint8_t kNotWhole = 0xff;
  // How far each line's first head is above the chunk's, in units of line_shift, rounded down: the line's
  // place.
  Steps lines;
  std::uint64_t head = 0;  // the first entry's, behind the prefix
  const EntryLine* entries = nullptr;
  std::uint32_t prefix_size = 0;  // of what all lows begin with
  std::uint8_t size = 0;
  // How long every low is behind the prefix, when that is the same for all and at most 8: its head is all of
  // it.
  std::uint8_t whole_size = kNotWhole;
  std::uint8_t line_shift = 0;
  std::uint8_t step_shift = 0;
  bool halves = false;       // lines and steps are of low_halves() of the heads
  bool exact_steps = false;  // step_shift leaves nothing out: who has an entry's step has its head
};
static_assert(sizeof(ChunkGuide) == 64);

// In memory: the lines, beside those of other chunks; and this header with the guide, the heads, offsets, and
// the bytes. Who has the guide elsewhere waits for memory once, for one line; only where the steps leave
// something out and the key's is that of an entry, for the heads as well.
class alignas(64) Chunk {
 public:
  static constexpr std::size_t kEntriesMax = ChunkGuide::kLines * EntryLine::kEntries;

  // `entries` are sorted by low, without duplicates, and do not overlap. At least one. In `pages` when it is
  // one of many that come together.
  static std::shared_ptr<const Chunk> build(std::uint32_t id, std::span<const Entry> entries,
                                            LargePages* pages = nullptr);

  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  [[nodiscard]] const ChunkGuide& guide() const { return guide_; }
  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] std::size_t size() const { return guide_.size; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  struct Place {
    std::size_t count = 0;  // how many entries have a low that is not after the key
    bool equal = false;     // the last of them has the key itself
  };
  [[nodiscard]] Place place_of(std::string_view key) const;
  // The same by a copy of the chunk's guide, for a key that begins with what all its lows begin with; `head` is
  // the key's behind that. The chunk itself is read where the guide and a line do not tell.
  [[nodiscard]] inline Place place_behind_prefix(const ChunkGuide& guide, std::string_view key,
                                                 std::uint64_t head) const;
  [[nodiscard]] std::size_t count_not_after(std::string_view key) const { return place_of(key).count; }

  // An entry's shard, state, and whether it ends where the next one in this chunk begins, as its line has them.
  [[nodiscard]] std::uint16_t route(std::size_t at) const { return route(guide_, at); }
  [[nodiscard]] static std::uint16_t route(const ChunkGuide& guide, std::size_t at) {
    return guide.entries[at / EntryLine::kEntries].routes[at % EntryLine::kEntries];
  }
  [[nodiscard]] ShardId shard(std::size_t at, std::uint16_t route) const {
    const ShardId narrow = route >> 3;
    return narrow == kWideShard ? wide_shards()[at] : narrow;
  }
  static ShardletState state(std::uint16_t route) { return static_cast<ShardletState>(route & 3); }
  static bool contiguous(std::uint16_t route) { return (route & 4) != 0; }
  [[nodiscard]] std::string_view low(std::size_t at) const;
  [[nodiscard]] std::string_view high(std::size_t at) const;
  [[nodiscard]] std::string_view name(std::size_t at) const;
  [[nodiscard]] Entry at(std::size_t at) const {
    return {low(at), high(at), name(at), shard(at, route(at)), state(route(at))};
  }
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  static constexpr std::size_t kPrefixInline = 40;
  static constexpr ShardId kWideShard = 0x1fff;  // its number is among the wide ones

  Chunk() = default;
  // The key's head is all of it, as is that of every low.
  [[nodiscard]] static bool is_whole(const ChunkGuide& guide, std::string_view key) {
    return guide.whole_size <= 8 && key.size() - guide.prefix_size == guide.whole_size;
  }
  [[nodiscard]] Place place_by_heads(std::uint64_t head, std::string_view key) const;
  [[nodiscard]] Place settle_steps(std::size_t after, std::uint64_t head, std::string_view key) const;
  [[nodiscard]] Place settle(std::size_t after, std::uint64_t head, std::string_view key) const;
  [[nodiscard]] const std::uint64_t* heads() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
  [[nodiscard]] const std::uint32_t* wide_shards() const {  // `size` of them, or none
    return reinterpret_cast<const std::uint32_t*>(heads() + guide_.size);
  }
  [[nodiscard]] const std::uint32_t* offsets() const {  // size + 1
    return wide_shards() + (wide_ ? guide_.size : 0);
  }
  // An entry here is low size, high size, low, high, name.
  [[nodiscard]] const char* blob() const { return reinterpret_cast<const char*>(offsets() + guide_.size + 1); }

  ChunkGuide guide_;
  std::uint32_t id_ = 0;
  std::uint32_t bytes_ = 0;
  bool wide_ = false;
  const char* prefix_ = nullptr;  // what all lows begin with: in the header when it fits
  char inline_prefix_[kPrefixInline] = {};
};
static_assert(sizeof(Chunk) == 128 && std::is_trivially_destructible_v<Chunk>);

// The length of what both begin with.
std::size_t common_prefix(std::string_view a, std::string_view b);

}  // namespace kintsugi::shardmap
