// The entries of one map in key order: chunks, and a directory over them. Copying it copies the directory and
// shares the chunks. Lookups allocate nothing; any thread may call them. The changing calls are for the thread
// that makes a new map, which ends with `finish()`. Private to shardmap/ but for ShardletView and EntrySpan.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardmap/chunk.h"
#include "shardmap/name_index.h"

namespace kintsugi::shardmap {

// One entry where it lies: valid as long as its ShardMap.
class ShardletView {
 public:
  ShardletView(const Chunk* chunk, std::size_t at) : ShardletView(chunk, at, chunk->route(at)) {}
  // With what the entry's line has of it: the chunk is not read.
  ShardletView(const Chunk* chunk, std::size_t at, std::uint16_t route)
      : chunk_(chunk), at_(static_cast<std::uint16_t>(at)), route_(route) {}
  [[nodiscard]] ShardId shard() const { return chunk_->shard(at_, route_); }
  [[nodiscard]] ShardletState state() const { return Chunk::state(route_); }
  [[nodiscard]] std::string_view name() const { return chunk_->name(at_); }
  [[nodiscard]] std::string_view low() const { return chunk_->low(at_); }    // LIST: the value
  [[nodiscard]] std::string_view high() const { return chunk_->high(at_); }  // LIST: empty
  [[nodiscard]] Entry entry() const { return chunk_->at(at_); }
  // A RANGE entry that ends where the next begins, known without reading either.
  [[nodiscard]] bool ends_at_next() const { return Chunk::contiguous(route_); }

 private:
  const Chunk* chunk_;
  std::uint16_t at_;
  std::uint16_t route_;
};

// Where an entry is: the chunk's place in the directory and the entry's in the chunk.
struct EntryPosition {
  std::size_t chunk = 0;
  std::size_t at = 0;
  friend auto operator<=>(const EntryPosition&, const EntryPosition&) = default;
};

class EntryIndex;

// Entries one after the other, in key order.
class EntrySpan {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = ShardletView;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = ShardletView;
    Iterator(const EntryIndex* index, EntryPosition position) : index_(index), position_(position) {}
    ShardletView operator*() const;
    Iterator& operator++();
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.position_ == b.position_; }

   private:
    const EntryIndex* index_;
    EntryPosition position_;
  };
  EntrySpan(const EntryIndex* index, EntryPosition begin, EntryPosition end)
      : index_(index), begin_(begin), end_(end) {}
  [[nodiscard]] Iterator begin() const { return {index_, begin_}; }
  [[nodiscard]] Iterator end() const { return {index_, end_}; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }

 private:
  const EntryIndex* index_;
  EntryPosition begin_;
  EntryPosition end_;
};

// What all maps of a ShardMap share while one of them is changed.
struct ChunkRegister {
  NameIndex names;
  std::uint32_t next_chunk = 1;
};

class EntryIndex {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const;

  // The last entry whose low is not after `key`, and the entry whose low is `key`: in entry_lookup.h.
  [[nodiscard]] inline std::optional<ShardletView> floor(std::string_view key) const;
  [[nodiscard]] inline std::optional<ShardletView> exact(std::string_view key) const;
  // RANGE: the entries that share a key with [low, high). LIST: those whose value is in it. An empty `high` is
  // no end.
  [[nodiscard]] EntrySpan overlapping(std::string_view low, std::string_view high) const;
  [[nodiscard]] EntrySpan all() const { return {this, {0, 0}, {chunks_.size(), 0}}; }
  [[nodiscard]] const Chunk* chunk_with_id(std::uint32_t id) const;

  // ---- while a new map is made; floor() and overlapping() are not to be used between a change and finish().
  void insert(const Entry& entry, ChunkRegister& chunks);
  void erase(std::string_view low, ChunkRegister& chunks);
  // Puts another entry with the same low in its place.
  void replace(const Entry& entry, ChunkRegister& chunks);
  [[nodiscard]] std::optional<ShardletView> slow_floor(std::string_view key) const;
  [[nodiscard]] std::optional<ShardletView> slow_after(
      std::string_view key) const;  // the first with a low after it
  // Appends an entry that is after all others; its bytes are copied. For loading.
  void append(const Entry& entry, ChunkRegister& chunks, std::vector<std::uint64_t>& name_pairs);
  void finish();

 private:
  friend class EntrySpan::Iterator;
  struct Found {
    std::size_t chunk = 0;  // where the key would be
    Chunk::Place place;
  };
  [[nodiscard]] inline Found find(std::string_view key) const;
  [[nodiscard]] Found find_by_comparing(std::string_view key) const;
  [[nodiscard]] inline ShardletView entry(std::size_t chunk, std::size_t at) const;
  [[nodiscard]] std::size_t chunk_of(std::string_view key) const;
  [[nodiscard]] inline bool behind_prefix(std::string_view key) const;
  [[nodiscard]] inline std::size_t heads_up_to(std::uint64_t head) const;
  void index_heads();
  void index_prefix();
  void put_chunk(std::size_t at, std::shared_ptr<const Chunk> chunk);
  void add_chunk(std::size_t at, std::shared_ptr<const Chunk> chunk);
  [[nodiscard]] std::size_t slow_chunk_of(std::string_view key) const;
  [[nodiscard]] EntryPosition position_after(std::string_view key) const;  // first with low > key
  [[nodiscard]] EntryPosition position_from(std::string_view key) const;   // first with low >= key
  void flush_appended();

  std::vector<std::shared_ptr<const Chunk>> chunks_;
  std::vector<ChunkGuide> guides_;  // of the chunks
  std::vector<std::uint32_t> ids_;  // of the chunks, for chunk_with_id
  // Of the chunks' first keys, but for the first chunk's, behind what those share, or the halves of all
  // (low_halves); then two highest.
  std::vector<std::uint64_t> heads_;
  bool halves_ = false;
  std::uint64_t first_head_ = 0;    // the first of them, not halved
  std::string prefix_;              // what those keys share
  std::uint64_t prefix_begin_ = 0;  // its first eight bytes, and which of them there are
  std::uint64_t prefix_mask_ = 0;
  std::uint64_t prefix_end_ = 0;  // its last eight, where it has so many
  // The range of the heads cut into equal parts: how many heads are before each part. Where keys are spread
  // evenly a part has a few; where not, a search within it does the rest.
  std::vector<std::uint32_t> parts_;
  int part_shift_ = 0;
  std::size_t size_ = 0;
  struct Pending {
    std::string low, high, name;
    ShardId shard;
    ShardletState state;
  };
  std::vector<Pending> pending_;  // appended, not yet in a chunk; the strings are used again
  std::size_t pending_count_ = 0;
  std::uint32_t pending_id_ = 0;
  LargePages pages_;  // for the chunks of a map that is loaded and turns out to be large
};

inline ShardletView EntrySpan::Iterator::operator*() const {
  return {index_->chunks_[position_.chunk].get(), position_.at};
}
inline EntrySpan::Iterator& EntrySpan::Iterator::operator++() {
  if (++position_.at == index_->chunks_[position_.chunk]->size()) position_ = {position_.chunk + 1, 0};
  return *this;
}

}  // namespace kintsugi::shardmap
