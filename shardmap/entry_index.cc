#include "shardmap/entry_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/invariant.h"
#include "shardmap/entry_lookup.h"

namespace kintsugi::shardmap {

// The first chunk takes whatever is before the second: its own first key is not in the directory.
std::size_t EntryIndex::chunk_of(std::string_view key) const {
  const std::size_t common = std::min(key.size(), prefix_.size());
  if (const int order = key.substr(0, common).compare(std::string_view(prefix_).substr(0, common));
      order != 0) {
    return order < 0 ? 0 : chunks_.size() - 1;
  }
  if (key.size() < prefix_.size()) return 0;
  if (halves_) return slow_chunk_of(key);
  const std::uint64_t head = key_head(key, prefix_.size());
  const std::size_t after = heads_up_to(head);
  if (after == 0 || heads_[after - 1] != head) return after;
  return settle_equal_heads(
      after, head, key, [this](std::size_t i) { return heads_[i]; },
      [this](std::size_t i) { return chunks_[i + 1]->low(0); });
}

EntryIndex::Found EntryIndex::find_by_comparing(std::string_view key) const {
  const std::size_t chunk = chunk_of(key);
  return {chunk, chunks_[chunk]->place_of(key)};
}

void EntryIndex::index_heads() {
  parts_.clear();
  if (heads_.empty()) return;
  first_head_ = heads_.front();
  halves_ = heads_.size() > 1 && std::all_of(heads_.begin(), heads_.end(), [this](std::uint64_t head) {
              return ((head ^ first_head_) & kHighHalves) == 0;
            });
  if (halves_) std::transform(heads_.begin(), heads_.end(), heads_.begin(), low_halves);
  const std::uint64_t range = heads_.back() - heads_.front();
  const std::size_t parts_max = std::bit_ceil(2 * heads_.size());
  part_shift_ = 0;
  while (range >> part_shift_ >= parts_max) ++part_shift_;
  const std::size_t count = (range >> part_shift_) + 1;
  parts_.reserve(count + 1);
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const std::size_t part = (heads_[i] - heads_.front()) >> part_shift_;
    while (parts_.size() <= part) parts_.push_back(static_cast<std::uint32_t>(i));
  }
  parts_.push_back(static_cast<std::uint32_t>(heads_.size()));
  heads_.insert(heads_.end(), 2, ~std::uint64_t{0});
}

void EntryIndex::index_prefix() {
  const std::size_t size = prefix_.size();
  prefix_begin_ = prefix_end_ = prefix_mask_ = 0;
  __builtin_memcpy(&prefix_begin_, prefix_.data(), std::min<std::size_t>(size, 8));
  std::memset(&prefix_mask_, 0xff, std::min<std::size_t>(size, 8));
  if (size >= 8) __builtin_memcpy(&prefix_end_, prefix_.data() + size - 8, 8);
}

void EntryIndex::put_chunk(std::size_t at, std::shared_ptr<const Chunk> chunk) {
  guides_[at] = chunk->guide();
  chunks_[at] = std::move(chunk);
}

void EntryIndex::add_chunk(std::size_t at, std::shared_ptr<const Chunk> chunk) {
  const auto place = static_cast<std::ptrdiff_t>(at);
  guides_.insert(guides_.begin() + place, chunk->guide());
  ids_.insert(ids_.begin() + place, chunk->id());
  chunks_.insert(chunks_.begin() + place, std::move(chunk));
}

EntryPosition EntryIndex::position_after(std::string_view key) const {
  if (chunks_.empty()) return {0, 0};
  const Found found = find(key);
  return found.place.count == guides_[found.chunk].size ? EntryPosition{found.chunk + 1, 0}
                                                        : EntryPosition{found.chunk, found.place.count};
}

EntryPosition EntryIndex::position_from(std::string_view key) const {
  const EntryPosition after = position_after(key);
  if (after == EntryPosition{0, 0}) return after;
  const EntryPosition before = after.at > 0
                                   ? EntryPosition{after.chunk, after.at - 1}
                                   : EntryPosition{after.chunk - 1, chunks_[after.chunk - 1]->size() - 1};
  return chunks_[before.chunk]->low(before.at) == key ? before : after;
}

EntrySpan EntryIndex::overlapping(std::string_view low, std::string_view high) const {
  if (!high.empty() && high <= low) return {this, {0, 0}, {0, 0}};
  EntryPosition begin = position_from(low);
  const EntryPosition end = high.empty() ? EntryPosition{chunks_.size(), 0} : position_from(high);
  // The entry before may reach into the range.
  if (begin != EntryPosition{0, 0}) {
    const EntryPosition before = begin.at > 0
                                     ? EntryPosition{begin.chunk, begin.at - 1}
                                     : EntryPosition{begin.chunk - 1, chunks_[begin.chunk - 1]->size() - 1};
    if (chunks_[before.chunk]->high(before.at) > low) begin = before;
  }
  if (end <= begin) return {this, begin, begin};  // LIST: no value between
  return {this, begin, end};
}

const Chunk* EntryIndex::chunk_with_id(std::uint32_t id) const {
  const auto found = std::find(ids_.begin(), ids_.end(), id);
  return found == ids_.end() ? nullptr : chunks_[static_cast<std::size_t>(found - ids_.begin())].get();
}

std::size_t EntryIndex::slow_chunk_of(std::string_view key) const {
  const auto after = std::partition_point(chunks_.begin(), chunks_.end(),
                                          [key](const auto& chunk) { return chunk->low(0) <= key; });
  return after == chunks_.begin() ? 0 : static_cast<std::size_t>(after - chunks_.begin()) - 1;
}

std::optional<ShardletView> EntryIndex::slow_floor(std::string_view key) const {
  if (chunks_.empty()) return std::nullopt;
  const Chunk* chunk = chunks_[slow_chunk_of(key)].get();
  const std::size_t count = chunk->count_not_after(key);
  if (count == 0) return std::nullopt;
  return ShardletView(chunk, count - 1);
}

std::optional<ShardletView> EntryIndex::slow_after(std::string_view key) const {
  if (chunks_.empty()) return std::nullopt;
  const std::size_t at = slow_chunk_of(key);
  const std::size_t count = chunks_[at]->count_not_after(key);
  if (count < chunks_[at]->size()) return ShardletView(chunks_[at].get(), count);
  if (at + 1 < chunks_.size()) return ShardletView(chunks_[at + 1].get(), 0);
  return std::nullopt;
}

void EntryIndex::insert(const Entry& entry, ChunkRegister& chunks) {
  ++size_;
  if (chunks_.empty()) {
    const std::uint32_t id = chunks.next_chunk++;
    add_chunk(0, Chunk::build(id, {&entry, 1}));
    chunks.names.insert(entry.name, id);
    return;
  }
  const std::size_t at = slow_chunk_of(entry.low);
  const std::shared_ptr<const Chunk> old = chunks_[at];
  std::vector<Entry> entries = old->entries();
  const auto place = static_cast<std::ptrdiff_t>(old->count_not_after(entry.low));
  entries.insert(entries.begin() + place, entry);
  chunks.names.insert(entry.name, old->id());
  if (entries.size() <= Chunk::kEntriesMax) {
    put_chunk(at, Chunk::build(old->id(), entries));
    return;
  }
  // Keys that come in ascending order fill a chunk rather than halve it.
  const bool ascending = at + 1 == chunks_.size() && place + 1 == static_cast<std::ptrdiff_t>(entries.size());
  const std::size_t left = ascending ? entries.size() - 1 : entries.size() / 2;
  const std::uint32_t id = chunks.next_chunk++;
  for (std::size_t i = left; i < entries.size(); ++i) {
    chunks.names.erase(entries[i].name, old->id());
    chunks.names.insert(entries[i].name, id);
  }
  put_chunk(at, Chunk::build(old->id(), std::span(entries).first(left)));
  add_chunk(at + 1, Chunk::build(id, std::span(entries).subspan(left)));
}

void EntryIndex::erase(std::string_view low, ChunkRegister& chunks) {
  INVARIANT(!chunks_.empty(), "an entry that is erased is there");
  const std::size_t at = slow_chunk_of(low);
  const std::shared_ptr<const Chunk> old = chunks_[at];
  const std::size_t count = old->count_not_after(low);
  INVARIANT(count > 0 && old->low(count - 1) == low, "an entry that is erased is there");
  chunks.names.erase(old->name(count - 1), old->id());
  --size_;
  std::vector<Entry> entries = old->entries();
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(count) - 1);
  if (entries.empty()) {
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(at));
    guides_.erase(guides_.begin() + static_cast<std::ptrdiff_t>(at));
    ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(at));
  } else {
    put_chunk(at, Chunk::build(old->id(), entries));
  }
}

void EntryIndex::replace(const Entry& entry, ChunkRegister& chunks) {
  INVARIANT(!chunks_.empty(), "an entry that is replaced is there");
  const std::size_t at = slow_chunk_of(entry.low);
  const std::shared_ptr<const Chunk> old = chunks_[at];
  const std::size_t count = old->count_not_after(entry.low);
  INVARIANT(count > 0 && old->low(count - 1) == entry.low, "an entry that is replaced is there");
  std::vector<Entry> entries = old->entries();
  if (entries[count - 1].name != entry.name) {
    chunks.names.erase(entries[count - 1].name, old->id());
    chunks.names.insert(entry.name, old->id());
  }
  entries[count - 1] = entry;
  put_chunk(at, Chunk::build(old->id(), entries));
}

void EntryIndex::append(const Entry& entry, ChunkRegister& chunks, std::vector<std::uint64_t>& name_pairs) {
  constexpr std::size_t kFill = Chunk::kEntriesMax * 6 / 7;
  if (pending_count_ == kFill) flush_appended();
  if (pending_count_ == 0) pending_id_ = chunks.next_chunk++;
  if (pending_count_ == pending_.size()) pending_.emplace_back();
  Pending& pending = pending_[pending_count_++];
  pending.low.assign(entry.low);
  pending.high.assign(entry.high);
  pending.name.assign(entry.name);
  pending.shard = entry.shard;
  pending.state = entry.state;
  name_pairs.push_back(NameIndex::pair_of(entry.name, pending_id_));
  ++size_;
}

void EntryIndex::flush_appended() {
  if (pending_count_ == 0) return;
  std::vector<Entry> entries;
  entries.reserve(pending_count_);
  for (std::size_t i = 0; i < pending_count_; ++i) {
    const Pending& pending = pending_[i];
    entries.push_back({pending.low, pending.high, pending.name, pending.shard, pending.state});
  }
  constexpr std::size_t kLargeFrom = 64;  // chunks: about half a megabyte
  LargePages* pages = chunks_.size() >= kLargeFrom ? &pages_ : nullptr;
  add_chunk(chunks_.size(), Chunk::build(pending_id_, entries, pages));
  pending_count_ = 0;
}

void EntryIndex::finish() {
  flush_appended();
  pending_.clear();
  pending_.shrink_to_fit();
  pages_ = {};
  heads_.clear();
  halves_ = false;
  prefix_.clear();
  parts_.clear();
  if (chunks_.size() >= 2) {
    const std::string_view first = chunks_[1]->low(0);
    prefix_ = first.substr(0, common_prefix(first, chunks_.back()->low(0)));
  }
  index_prefix();
  if (chunks_.size() < 2) return;
  heads_.reserve(chunks_.size() + 1);
  for (std::size_t i = 1; i < chunks_.size(); ++i)
    heads_.push_back(key_head(chunks_[i]->low(0), prefix_.size()));
  index_heads();
}

std::size_t EntryIndex::bytes() const {
  std::size_t total = chunks_.capacity() * sizeof(chunks_[0]) + guides_.capacity() * sizeof(guides_[0]) +
                      ids_.capacity() * 4 + heads_.capacity() * 8 + parts_.capacity() * 4;
  for (const auto& chunk : chunks_)
    total += chunk->bytes() + 48;  // the shared_ptr's block and the allocator's share
  return total;
}

}  // namespace kintsugi::shardmap
