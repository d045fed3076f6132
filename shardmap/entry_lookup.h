// The inside of a lookup, for the files that have it: where a key is in a map, without a call and with one line
// of memory that the processor's caches do not have. How few instructions it is decides whether the processor
// begins the next lookup while it waits. Private to shardmap/.
#pragma once

#include "shardmap/entry_index.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace kintsugi::shardmap {

inline std::size_t Steps::up_to(std::uint16_t step) const {
#ifdef __SSE2__
  const __m128i wanted = _mm_set1_epi16(static_cast<short>(step));
  const __m128i left = _mm_subs_epu16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), wanted);
  const __m128i right = _mm_subs_epu16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 8)), wanted);
  const __m128i zero = _mm_setzero_si128();
  const int not_above =
      _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(left, zero), _mm_cmpeq_epi16(right, zero)));
  return static_cast<std::size_t>(__builtin_ctz(~static_cast<unsigned>(not_above)));  // they ascend
#else
  std::size_t count = 0;
  for (const std::uint16_t other : at) count += other <= step ? 1 : 0;
  return count;
#endif
}

[[gnu::always_inline]] inline Chunk::Place Chunk::place_behind_prefix(const ChunkGuide& guide,
                                                                      std::string_view key,
                                                                      std::uint64_t head) const {
  if (head < guide.head) return {0, false};
  std::uint64_t above = head - guide.head;
  if (guide.halves) {
    if (((head ^ guide.head) & kHighHalves) != 0) return place_by_heads(head, key);
    above = low_halves(head) - low_halves(guide.head);
  }
  const std::size_t at = guide.lines.up_to(Steps::step(above, guide.line_shift)) - 1;
  const EntryLine& line = guide.entries[at];
  const std::uint64_t place = std::uint64_t{guide.lines.at[at]} << guide.line_shift;
  const std::uint16_t step = Steps::step(above - place, guide.step_shift);
  const std::size_t in_line = line.steps.up_to(step);
  if (in_line == 0) [[unlikely]]
    return place_by_heads(head, key);
  const std::size_t after = at * EntryLine::kEntries + in_line;
  if (line.steps.at[in_line - 1] != step) return {after, false};
  if (guide.exact_steps && is_whole(guide, key)) return {after, true};
  return settle_steps(after, head, key);
}

// How many of the heads are not above this one.
[[gnu::always_inline]] inline std::size_t EntryIndex::heads_up_to(std::uint64_t head) const {
  if (heads_.empty() || head < heads_.front()) return 0;
  const std::size_t part = std::min((head - heads_.front()) >> part_shift_, parts_.size() - 2);
  const std::size_t first = parts_[part];
  const std::size_t count = parts_[part + 1] - first;
  // What comes after the part is above it: two are compared without asking how many there are.
  if (count <= 2)
    return first +
           std::min<std::size_t>(count, (heads_[first] <= head ? 1 : 0) + (heads_[first + 1] <= head ? 1 : 0));
  return first + count_up_to(heads_.data() + first, count, head);
}

// Whether the key begins with the directory's prefix; false as well when it is too short to be asked quickly.
[[gnu::always_inline]] inline bool EntryIndex::behind_prefix(std::string_view key) const {
  const std::size_t size = prefix_.size();
  if (key.size() < std::max<std::size_t>(size, 8)) return false;
  std::uint64_t begin = 0;
  __builtin_memcpy(&begin, key.data(), 8);
  if (size <= 8) return ((begin ^ prefix_begin_) & prefix_mask_) == 0;
  if (size > 16) return key.starts_with(prefix_);
  std::uint64_t end = 0;
  __builtin_memcpy(&end, key.data() + size - 8, 8);
  return ((begin ^ prefix_begin_) | (end ^ prefix_end_)) == 0;
}

// Without reading the chunk's header: what of its prefix is behind the directory's is in the directory's heads.
[[gnu::always_inline]] inline EntryIndex::Found EntryIndex::find(std::string_view key) const {
  if (!behind_prefix(key)) [[unlikely]]
    return find_by_comparing(key);
  std::uint64_t head = key_head(key, prefix_.size());
  std::size_t bits = 8;  // of a byte of the key
  if (halves_) {
    if (((head ^ first_head_) & kHighHalves) != 0) return find_by_comparing(key);
    head = low_halves(head);
    bits = 4;
  }
  const std::size_t chunk = heads_up_to(head);
  if (chunk == 0 || heads_[chunk - 1] == head) [[unlikely]]
    return find_by_comparing(key);
  const ChunkGuide& guide = guides_[chunk];
  const std::size_t more = guide.prefix_size - prefix_.size();  // huge when it is shorter
  const std::uint64_t differ = head ^ heads_[chunk - 1];
  if (more >= 8 || differ >> 1 >> (63 - bits * more) != 0 || key.size() < guide.prefix_size) [[unlikely]]
    return find_by_comparing(key);
  return {chunk, chunks_[chunk]->place_behind_prefix(guide, key, key_head(key, guide.prefix_size))};
}

inline ShardletView EntryIndex::entry(std::size_t chunk, std::size_t at) const {
  return {chunks_[chunk].get(), at, Chunk::route(guides_[chunk], at)};
}

inline std::optional<ShardletView> EntryIndex::floor(std::string_view key) const {
  if (chunks_.empty()) return std::nullopt;
  const Found found = find(key);
  if (found.place.count == 0) return std::nullopt;
  return entry(found.chunk, found.place.count - 1);
}

inline std::optional<ShardletView> EntryIndex::exact(std::string_view key) const {
  if (chunks_.empty()) return std::nullopt;
  const Found found = find(key);
  if (!found.place.equal) return std::nullopt;
  return entry(found.chunk, found.place.count - 1);
}

}  // namespace kintsugi::shardmap
