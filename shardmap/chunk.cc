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
  std::vector<std::uint32_t> routes;
  offsets.reserve(count + 1);
  routes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Entry& entry = entries[i];
    INVARIANT(i == 0 || entries[i - 1].low < entry.low, "entries ascend");
    const bool contiguous = i + 1 < count && !entry.high.empty() && entry.high == entries[i + 1].low;
    offsets.push_back(static_cast<std::uint32_t>(blob.size()));
    routes.push_back(entry.shard << 8 | (contiguous ? 0x80U : 0U) | static_cast<std::uint32_t>(entry.state));
    const std::string_view high = contiguous ? std::string_view() : entry.high;
    put_size(entry.low.size(), blob);
    put_size(high.size(), blob);
    blob += entry.low;
    blob += high;
    blob += entry.name;
  }
  offsets.push_back(static_cast<std::uint32_t>(blob.size()));

  // Header, prefix (so that it is near), heads, routes, offsets, blob.
  const std::size_t prefix_room = (skip + 7) / 8 * 8;
  const std::size_t bytes = sizeof(Chunk) + prefix_room + count * 8 + count * 4 + (count + 1) * 4 + blob.size();
  char* block = static_cast<char*>(::operator new(bytes));
  auto* chunk = new (block) Chunk;
  char* at = block + sizeof(Chunk);
  std::memcpy(at, entries.front().low.data(), skip);
  chunk->prefix_ = at;
  chunk->prefix_size_ = static_cast<std::uint32_t>(skip);
  at += prefix_room;
  auto* heads = reinterpret_cast<std::uint64_t*>(at);
  for (std::size_t i = 0; i < count; ++i) heads[i] = key_head(entries[i].low, skip);
  chunk->heads_ = heads;
  at += count * 8;
  std::memcpy(at, routes.data(), count * 4);
  chunk->routes_ = reinterpret_cast<const std::uint32_t*>(at);
  at += count * 4;
  std::memcpy(at, offsets.data(), (count + 1) * 4);
  chunk->offsets_ = reinterpret_cast<const std::uint32_t*>(at);
  at += (count + 1) * 4;
  std::memcpy(at, blob.data(), blob.size());
  chunk->blob_ = at;
  chunk->size_ = static_cast<std::uint32_t>(count);
  chunk->id_ = id;
  chunk->bytes_ = static_cast<std::uint32_t>(bytes);
  return {chunk, [](const Chunk* done) {
            done->~Chunk();
            ::operator delete(const_cast<void*>(static_cast<const void*>(done)));
          }};
}

std::string_view Chunk::low(std::size_t at) const {
  const char* read = blob_ + offsets_[at];
  const std::size_t low_size = get_size(read);
  get_size(read);
  return {read, low_size};
}

std::string_view Chunk::high(std::size_t at) const {
  if (contiguous(at)) return low(at + 1);
  const char* read = blob_ + offsets_[at];
  const std::size_t low_size = get_size(read);
  const std::size_t high_size = get_size(read);
  return {read + low_size, high_size};
}

std::string_view Chunk::name(std::size_t at) const {
  const char* read = blob_ + offsets_[at];
  const std::size_t low_size = get_size(read);
  const std::size_t high_size = get_size(read);
  read += low_size + high_size;
  return {read, static_cast<std::size_t>(blob_ + offsets_[at + 1] - read)};
}

std::vector<Entry> Chunk::entries() const {
  std::vector<Entry> all;
  all.reserve(size_ + 1);
  for (std::size_t i = 0; i < size_; ++i) all.push_back(at(i));
  return all;
}

}  // namespace kintsugi::shardmap
