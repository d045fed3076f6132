#include "shardmap/chunk.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/invariant.h"
#include "shardmap/entry_lookup.h"

namespace kintsugi::shardmap {
namespace {

void put_size(std::size_t size, std::string& out) {
  for (; size >= 0x80; size >>= 7) out += static_cast<char>(size | 0x80);
  out += static_cast<char>(size);
}

std::size_t get_size(const char*& at) {
  std::size_t size = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    size |= static_cast<std::size_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return size;
  }
}

bool contiguous_in(std::span<const Entry> entries, std::size_t at) {
  const Entry& entry = entries[at];
  return at + 1 < entries.size() && !entry.high.empty() && entry.high == entries[at + 1].low;
}

// Where the lines are, and how far from there their entries; `tail` is how many of the last bits of all heads
// say nothing.
void set_steps(std::span<const std::uint64_t> heads, int tail, ChunkGuide& guide, EntryLine* lines) {
  constexpr std::size_t kLine = EntryLine::kEntries;
  const auto begin_of = [&](std::size_t at) { return heads[at / kLine * kLine] - heads[0]; };
  int line_shift = tail;
  while (begin_of(heads.size() - 1) >> line_shift > Steps::kMax) ++line_shift;
  const auto above_line = [&](std::size_t at) {
    return heads[at] - heads[0] - (begin_of(at) >> line_shift << line_shift);
  };
  int step_shift = tail;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    while (above_line(i) >> step_shift > Steps::kMax) ++step_shift;
  }
  std::fill(std::begin(guide.lines.at), std::end(guide.lines.at), Steps::kUnused);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (i % kLine == 0) {
      guide.lines.at[i / kLine] = Steps::step(begin_of(i), line_shift);
      std::fill(std::begin(lines[i / kLine].steps.at), std::end(lines[i / kLine].steps.at), Steps::kUnused);
    }
    lines[i / kLine].steps.at[i % kLine] = Steps::step(above_line(i), step_shift);
  }
  guide.line_shift = static_cast<std::uint8_t>(line_shift);
  guide.step_shift = static_cast<std::uint8_t>(step_shift);
  guide.exact_steps = step_shift == tail;
}

// By the heads; by their halves, where those say all and the heads are too far apart.
void set_guide(std::vector<std::uint64_t> heads, ChunkGuide& guide, EntryLine* lines) {
  guide.head = heads[0];
  const bool whole = guide.whole_size > 0 && guide.whole_size <= 8;
  const int empty_bytes = whole ? 8 - guide.whole_size : 0;
  set_steps(heads, 8 * empty_bytes, guide, lines);
  const bool digits = std::all_of(heads.begin(), heads.end(),
                                  [&](std::uint64_t head) { return ((head ^ heads[0]) & kHighHalves) == 0; });
  if (guide.exact_steps || !digits) return;
  for (std::uint64_t& head : heads) head = low_halves(head);
  guide.halves = true;
  set_steps(heads, 32 + 4 * empty_bytes, guide, lines);
}

}  // namespace

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first - a.begin());
}

std::shared_ptr<const Chunk> Chunk::build(std::uint32_t id, std::span<const Entry> entries, LargePages* pages) {
  INVARIANT(!entries.empty() && entries.size() <= kEntriesMax, "a chunk has an entry, and not too many");
  const std::size_t count = entries.size();
  constexpr std::size_t kLine = EntryLine::kEntries;
  // Sorted keys: what the first and the last share, all share.
  const std::size_t skip = common_prefix(entries.front().low, entries.back().low);
  std::string blob;
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint64_t> heads;
  offsets.reserve(count + 1);
  heads.reserve(count);
  bool wide = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Entry& entry = entries[i];
    INVARIANT(i == 0 || entries[i - 1].low < entry.low, "entries ascend");
    heads.push_back(key_head(entry.low, skip));
    wide = wide || entry.shard >= kWideShard;
    offsets.push_back(static_cast<std::uint32_t>(blob.size()));
    const std::string_view high = contiguous_in(entries, i) ? std::string_view() : entry.high;
    put_size(entry.low.size(), blob);
    put_size(high.size(), blob);
    blob += entry.low;
    blob += high;
    blob += entry.name;
  }
  offsets.push_back(static_cast<std::uint32_t>(blob.size()));

  const std::size_t line_count = (count + kLine - 1) / kLine;
  const std::size_t bytes = sizeof(Chunk) + count * sizeof(heads[0]) +
                            (wide ? count * sizeof(std::uint32_t) : 0) + offsets.size() * sizeof(offsets[0]) +
                            blob.size();
  LargePages::Block memory = pages != nullptr ? pages->take(line_count * sizeof(EntryLine), bytes)
                                              : take_alone(line_count * sizeof(EntryLine), bytes);
  auto* chunk = new (memory.back) Chunk;
  auto* lines = new (memory.front) EntryLine[line_count];
  chunk->id_ = id;
  chunk->bytes_ = static_cast<std::uint32_t>(line_count * sizeof(EntryLine) + bytes);
  chunk->wide_ = wide;

  ChunkGuide& guide = chunk->guide_;
  guide.entries = lines;
  guide.size = static_cast<std::uint8_t>(count);
  guide.prefix_size = static_cast<std::uint32_t>(skip);
  const std::size_t size = entries.front().low.size();
  const bool whole =
      std::all_of(entries.begin(), entries.end(), [size](const Entry& e) { return e.low.size() == size; });
  if (whole && size <= skip + 8) guide.whole_size = static_cast<std::uint8_t>(size - skip);
  set_guide(heads, guide, lines);
  for (std::size_t i = 0; i < line_count * kLine; ++i) {
    std::uint16_t& route = lines[i / kLine].routes[i % kLine];
    route = 0;
    if (i >= count) continue;
    route = static_cast<std::uint16_t>(std::min(entries[i].shard, kWideShard) << 3 |
                                       (contiguous_in(entries, i) ? 4U : 0U) |
                                       static_cast<std::uint32_t>(entries[i].state));
  }
  std::copy(heads.begin(), heads.end(), const_cast<std::uint64_t*>(chunk->heads()));
  if (wide) {
    std::transform(entries.begin(), entries.end(), const_cast<std::uint32_t*>(chunk->wide_shards()),
                   [](const Entry& entry) { return entry.shard; });
  }
  std::copy(offsets.begin(), offsets.end(), const_cast<std::uint32_t*>(chunk->offsets()));
  std::memcpy(const_cast<char*>(chunk->blob()), blob.data(), blob.size());
  chunk->prefix_ = chunk->low(0).data();
  if (skip <= kPrefixInline) {
    std::memcpy(chunk->inline_prefix_, chunk->prefix_, skip);
    chunk->prefix_ = chunk->inline_prefix_;
  }
  return {std::move(memory.owner), chunk};
}

Chunk::Place Chunk::place_of(std::string_view key) const {
  const std::size_t common = std::min<std::size_t>(key.size(), guide_.prefix_size);
  if (const int order = std::memcmp(key.data(), prefix_, common); order != 0)
    return {order < 0 ? 0 : size(), false};
  if (key.size() < guide_.prefix_size) return {0, false};
  return place_behind_prefix(guide_, key, key_head(key, guide_.prefix_size));
}

// Where guide and line do not tell: the head is between the line's place and its first entry, or not of the
// chunk's kind.
Chunk::Place Chunk::place_by_heads(std::uint64_t head, std::string_view key) const {
  return settle_steps(count_up_to(heads(), size(), head), head, key);
}

// Of `after` entries whose steps are not above the key's, the last ones' heads may be.
Chunk::Place Chunk::settle_steps(std::size_t after, std::uint64_t head, std::string_view key) const {
  while (after > 0 && heads()[after - 1] > head) --after;
  const bool equal = after > 0 && heads()[after - 1] == head;
  if (!equal || is_whole(guide_, key)) return {after, equal};
  return settle(after, head, key);
}

// Of `after` entries whose heads are not above the key's, the last have the same.
Chunk::Place Chunk::settle(std::size_t after, std::uint64_t head, std::string_view key) const {
  after = settle_equal_heads(
      after, head, key, [this](std::size_t i) { return heads()[i]; }, [this](std::size_t i) { return low(i); });
  return {after, after > 0 && low(after - 1) == key};
}

std::string_view Chunk::low(std::size_t at) const {
  const char* read = blob() + offsets()[at];
  const std::size_t low_size = get_size(read);
  get_size(read);
  return {read, low_size};
}

std::string_view Chunk::high(std::size_t at) const {
  if (contiguous(route(at))) return low(at + 1);
  const char* read = blob() + offsets()[at];
  const std::size_t low_size = get_size(read);
  const std::size_t high_size = get_size(read);
  return {read + low_size, high_size};
}

std::string_view Chunk::name(std::size_t at) const {
  const char* read = blob() + offsets()[at];
  const std::size_t low_size = get_size(read);
  const std::size_t high_size = get_size(read);
  read += low_size + high_size;
  return {read, static_cast<std::size_t>(blob() + offsets()[at + 1] - read)};
}

std::vector<Entry> Chunk::entries() const {
  std::vector<Entry> all;
  all.reserve(size() + 1);
  for (std::size_t i = 0; i < size(); ++i) all.push_back(at(i));
  return all;
}

}  // namespace kintsugi::shardmap
