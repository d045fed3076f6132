// The inside of a lookup, for the two files that have it: where a key is in a chunk, without a call and with
// one line of memory that the processor's caches do not have. Private to shardmap/.
#pragma once

#include "shardmap/chunk.h"

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
                                                                      std::uint64_t head) {
  if (head < guide.head) return {0, false};
  const std::uint64_t above = head - guide.head;
  const std::size_t at = guide.lines.up_to(Steps::step(above, guide.line_shift)) - 1;
  if ((guide.with_steps >> at & 1) != 0) {
    const EntryLine& line = guide.chunk->lines()[at];
    const std::uint64_t place = std::uint64_t{guide.lines.at[at]} << guide.line_shift;
    const std::uint16_t step = Steps::step(above - place, guide.step_shift);
    const std::size_t in_line = line.steps.up_to(step);
    if (in_line > 0) [[likely]] {
      const std::size_t after = at * EntryLine::kEntries + in_line;
      const bool equal = line.steps.at[in_line - 1] == step;
      if (!equal || is_whole(guide, key)) return {after, equal};
      return guide.chunk->settle(after, head, key);
    }
  }
  return guide.chunk->place_by_heads(at, head, key);
}

}  // namespace kintsugi::shardmap
