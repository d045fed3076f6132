#include "shardmap/chunk.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

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

}  // namespace

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first - a.begin());
}

std::shared_ptr<const Chunk> Chunk::build(std::uint32_t id, std::span<const Entry> entries) {
  INVARIANT(!entries.empty(), "a chunk has an entry");
  const std::size_t count = entries.size();
  // Sorted keys: what the first and the last share, all share.
  const std::size_t skip = common_prefix(entries.front().low, entries.back().low);
  std::string blob;
  std::vector<std::uint32_t> offsets;
  std::vector<Block> blocks((count + kBlock - 1) / kBlock);
  for (Block& block : blocks) std::fill(std::begin(block.heads), std::end(block.heads), ~std::uint64_t{0});
  offsets.reserve(count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const Entry& entry = entries[i];
    INVARIANT(i == 0 || entries[i - 1].low < entry.low, "entries ascend");
    const bool contiguous = i + 1 < count && !entry.high.empty() && entry.high == entries[i + 1].low;
    Block& block = blocks[i / kBlock];
    block.heads[i % kBlock] = key_head(entry.low, skip);
    block.routes[i % kBlock] =
        entry.shard << 8 | (contiguous ? 0x80U : 0U) | static_cast<std::uint32_t>(entry.state);
    offsets.push_back(static_cast<std::uint32_t>(blob.size()));
    const std::string_view high = contiguous ? std::string_view() : entry.high;
    put_size(entry.low.size(), blob);
    put_size(high.size(), blob);
    blob += entry.low;
    blob += high;
    blob += entry.name;
  }
  offsets.push_back(static_cast<std::uint32_t>(blob.size()));

  constexpr std::size_t kSampleBytes = kEntriesMax / kBlock * sizeof(std::uint64_t);
  const std::size_t bytes = sizeof(Chunk) + kSampleBytes + blocks.size() * sizeof(Block) +
                            offsets.size() * sizeof(offsets[0]) + blob.size();
  constexpr std::align_val_t kAlign{alignof(Chunk)};
  auto* chunk = new (::operator new(bytes, kAlign)) Chunk;
  chunk->size_ = static_cast<std::uint32_t>(count);
  chunk->id_ = id;
  chunk->bytes_ = static_cast<std::uint32_t>(bytes);
  auto* sample = const_cast<std::uint64_t*>(chunk->sample());
  std::fill(sample, sample + kEntriesMax / kBlock, ~std::uint64_t{0});
  for (std::size_t i = 0; i < blocks.size(); ++i) sample[i] = blocks[i].heads[0];
  std::memcpy(const_cast<Block*>(chunk->blocks()), blocks.data(), blocks.size() * sizeof(Block));
  std::memcpy(const_cast<std::uint32_t*>(chunk->offsets()), offsets.data(),
              offsets.size() * sizeof(offsets[0]));
  std::memcpy(const_cast<char*>(chunk->blob()), blob.data(), blob.size());
  chunk->prefix_size_ = static_cast<std::uint32_t>(skip);
  chunk->prefix_ = chunk->low(0).data();
  const std::size_t size = entries.front().low.size();
  const bool whole =
      std::all_of(entries.begin(), entries.end(), [size](const Entry& e) { return e.low.size() == size; });
  if (whole && size <= skip + 8) chunk->whole_size_ = static_cast<std::uint32_t>(size);
  if (skip <= kPrefixInline) {
    std::memcpy(chunk->inline_prefix_, chunk->prefix_, skip);
    chunk->prefix_ = chunk->inline_prefix_;
  }
  return {chunk, [](const Chunk* done) {
            done->~Chunk();
            ::operator delete(const_cast<void*>(static_cast<const void*>(done)), kAlign);
          }};
}

Chunk::Place Chunk::place_of(std::string_view key) const {
  const std::size_t common = std::min<std::size_t>(key.size(), prefix_size_);
  if (const int order = std::memcmp(key.data(), prefix_, common); order != 0)
    return {order < 0 ? 0 : size_, false};
  if (key.size() < prefix_size_) return {0, false};
  const std::uint64_t head = key_head(key, prefix_size_);
  std::size_t block = 0;
  for (std::size_t i = 0; i < kEntriesMax / kBlock; ++i) block += sample()[i] <= head ? 1 : 0;
  if (block == 0) return {0, false};
  block = std::min(block, (size_ + kBlock - 1) / kBlock) - 1;
  const Block& found = blocks()[block];
  std::size_t after = 0;
  for (std::uint64_t other : found.heads) after += other <= head ? 1 : 0;
  const std::size_t in_block = std::min<std::size_t>(after, size_ - block * kBlock);
  const bool equal = in_block > 0 && found.heads[in_block - 1] == head;
  after = block * kBlock + in_block;
  if (!equal || key.size() == whole_size_) return {after, equal};
  after = settle_equal_heads(
      after, head, key, [this](std::size_t at) { return blocks()[at / kBlock].heads[at % kBlock]; },
      [this](std::size_t at) { return low(at); });
  return {after, after > 0 && low(after - 1) == key};
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
  all.reserve(size_ + 1);
  for (std::size_t i = 0; i < size_; ++i) all.push_back(at(i));
  return all;
}

}  // namespace kintsugi::shardmap
