#include "shardmap/chunk.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/invariant.h"

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
  const std::size_t bytes = sizeof(Chunk) + line_count * sizeof(EntryLine) + count * sizeof(heads[0]) +
                            (wide ? count * sizeof(std::uint32_t) : 0) + offsets.size() * sizeof(offsets[0]) +
                            blob.size();
  std::shared_ptr<void> memory = pages != nullptr ? pages->take(bytes) : take_alone(bytes);
  auto* chunk = new (memory.get()) Chunk;
  chunk->id_ = id;
  chunk->bytes_ = static_cast<std::uint32_t>(bytes);
  chunk->wide_ = wide;

  ChunkGuide& guide = chunk->guide_;
  guide.chunk = chunk;
  guide.size = static_cast<std::uint8_t>(count);
  guide.prefix_size = static_cast<std::uint32_t>(skip);
  std::fill(std::begin(guide.heads), std::end(guide.heads), ~std::uint64_t{0});
  const std::size_t size = entries.front().low.size();
  const bool whole =
      std::all_of(entries.begin(), entries.end(), [size](const Entry& e) { return e.low.size() == size; });
  if (whole && size <= skip + 8) guide.whole_size = static_cast<std::uint8_t>(size - skip);
  for (std::size_t i = 0; i < count; i += kLine) {
    guide.heads[i / kLine] = heads[i];
    if ((heads[std::min(i + kLine, count) - 1] - heads[i]) >> guide.step_shift() <= EntryLine::kStepMax)
      guide.with_steps |= static_cast<std::uint16_t>(1U << i / kLine);
  }
  auto* lines = const_cast<EntryLine*>(chunk->lines());
  for (std::size_t i = 0; i < line_count * kLine; ++i) {
    EntryLine& line = lines[i / kLine];
    line.steps[i % kLine] = EntryLine::kUnused;
    line.routes[i % kLine] = 0;
    if (i >= count) continue;
    line.steps[i % kLine] =
        static_cast<std::uint16_t>((heads[i] - guide.heads[i / kLine]) >> guide.step_shift());
    line.routes[i % kLine] = static_cast<std::uint16_t>(std::min(entries[i].shard, kWideShard) << 3 |
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
  return {std::move(memory), chunk};
}

Chunk::Place Chunk::place_of(std::string_view key) const {
  const std::size_t common = std::min<std::size_t>(key.size(), guide_.prefix_size);
  if (const int order = std::memcmp(key.data(), prefix_, common); order != 0)
    return {order < 0 ? 0 : size(), false};
  if (key.size() < guide_.prefix_size) return {0, false};
  return place_behind_prefix(guide_, key);
}

Chunk::Place Chunk::place_behind_prefix(const ChunkGuide& guide, std::string_view key) {
  constexpr std::size_t kLine = EntryLine::kEntries;
  const std::uint64_t head = key_head(key, guide.prefix_size);
  std::size_t at = 0;
  for (const std::uint64_t first : guide.heads) at += first <= head ? 1 : 0;
  if (at == 0) return {0, false};
  at = std::min(at, (guide.size + kLine - 1) / kLine) - 1;
  const Chunk& chunk = *guide.chunk;
  const EntryLine& line = chunk.lines()[at];
  const std::uint64_t* heads = chunk.heads();
  std::size_t after = at * kLine;
  bool equal = false;
  if ((guide.with_steps >> at & 1) != 0) {
    const std::uint64_t above = (head - guide.heads[at]) >> guide.step_shift();
    const auto step = static_cast<std::uint16_t>(std::min<std::uint64_t>(above, EntryLine::kBeyond));
    std::uint16_t in_line = 0;
    for (const std::uint16_t other : line.steps) in_line += other <= step ? 1 : 0;
    after += in_line;
    equal = line.steps[in_line - 1] == step;
  } else {
    __builtin_prefetch(line.routes);  // whoever asks wants to know the shard
    const std::uint64_t* here = heads + after;
    const std::size_t count = std::min<std::size_t>(kLine, guide.size - after);
    for (std::size_t i = 0; i < count; ++i) after += here[i] <= head ? 1 : 0;
    equal = heads[after - 1] == head;
  }
  const std::size_t rest = key.size() - guide.prefix_size;
  if (!equal || (rest <= 8 && rest == guide.whole_size)) return {after, equal};
  after = settle_equal_heads(
      after, head, key, [heads](std::size_t i) { return heads[i]; },
      [&chunk](std::size_t i) { return chunk.low(i); });
  return {after, after > 0 && chunk.low(after - 1) == key};
}

std::string_view Chunk::low(std::size_t at) const {
  const char* read = blob() + offsets()[at];
  const std::size_t low_size = get_size(read);
  get_size(read);
  return {read, low_size};
}

std::string_view Chunk::high(std::size_t at) const {
  if (contiguous(at)) return low(at + 1);
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
