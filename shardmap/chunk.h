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

// How many of `count` sorted keys are not after `key`, given their heads behind a common prefix; `low_of(i)` is
// asked only where heads are equal.
template <class LowOf>
std::size_t count_not_after(const std::uint64_t* heads, std::size_t count, std::string_view prefix,
                            std::string_view key, LowOf low_of) {
  if (count == 0) return 0;
  const std::size_t skip = prefix.size();
  const std::size_t common = key.size() < skip ? key.size() : skip;
  if (const int order = __builtin_memcmp(key.data(), prefix.data(), common); order != 0)
    return order < 0 ? 0 : count;
  if (key.size() < skip) return 0;
  const std::uint64_t head = key_head(key, skip);
  const std::uint64_t* base = heads;
  for (std::size_t length = count; length > 1;) {
    const std::size_t half = length / 2;
    base += base[half - 1] <= head ? half : 0;
    length -= half;
  }
  std::size_t after = static_cast<std::size_t>(base - heads) + (*base <= head ? 1 : 0);
  if (after == 0 || heads[after - 1] != head) return after;
  std::size_t first = after - 1;  // heads[first, after) equal ours: compare the whole keys of these
  while (first > 0 && heads[first - 1] == head) --first;
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

class Chunk {
 public:
  static constexpr std::size_t kEntriesMax = 256;

  // `entries` are sorted by low, without duplicates, and do not overlap. At least one.
  static std::shared_ptr<const Chunk> build(std::uint32_t id, std::span<const Entry> entries);

  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // How many entries have a low that is not after `key`.
  [[nodiscard]] std::size_t count_not_after(std::string_view key) const {
    return shardmap::count_not_after(heads_, size_, {prefix_, prefix_size_}, key,
                                     [this](std::size_t at) { return low(at); });
  }

  [[nodiscard]] ShardId shard(std::size_t at) const { return routes_[at] >> 8; }
  [[nodiscard]] ShardletState state(std::size_t at) const {
    return static_cast<ShardletState>(routes_[at] & 0x7f);
  }
  // The entry ends where the next one in this chunk begins.
  [[nodiscard]] bool contiguous(std::size_t at) const { return (routes_[at] & 0x80) != 0; }
  [[nodiscard]] std::string_view low(std::size_t at) const;
  [[nodiscard]] std::string_view high(std::size_t at) const;
  [[nodiscard]] std::string_view name(std::size_t at) const;
  [[nodiscard]] Entry at(std::size_t at) const { return {low(at), high(at), name(at), shard(at), state(at)}; }
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  Chunk() = default;

  // All of these point into the block that this object heads.
  const std::uint64_t* heads_ = nullptr;
  const std::uint32_t* routes_ = nullptr;  // shard << 8 | contiguous << 7 | state
  const std::uint32_t* offsets_ =
      nullptr;  // size + 1; an entry in the blob is low size, high size, low, high, name
  const char* blob_ = nullptr;
  const char* prefix_ = nullptr;
  std::uint32_t prefix_size_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t id_ = 0;
  std::uint32_t bytes_ = 0;
};

// The length of what both begin with.
std::size_t common_prefix(std::string_view a, std::string_view b);

}  // namespace kintsugi::shardmap
