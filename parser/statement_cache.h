// What was learned of statements, by their normal form. One cache a thread, no locks. Bounded in bytes: what
// was not used for longest goes first. A hit compares the whole normal form, not only its hash, and allocates
// nothing.
//
// `Value` is the caller's: the parsed Statement and the analysis hung on it. What else an answer depends on
// (the map's epoch, the search_path) goes into `context`, which is compared too: old contexts are never found
// again and age away.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parser/normalise.h"

namespace kintsugi::parser {

struct StatementCacheCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

template <class Value>
class StatementCache {
 public:
  explicit StatementCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  StatementCache(const StatementCache&) = delete;
  StatementCache& operator=(const StatementCache&) = delete;

  // nullptr: not known. The pointer is good until the next insert.
  Value* find(const Normaliser& statement, std::uint64_t context) {
    const auto [begin, end] = index_.equal_range(hash(statement, context));
    for (auto i = begin; i != end; ++i) {
      Entry& entry = *i->second;
      if (entry.context != context || entry.key != statement.key() || !pins_match(entry, statement)) continue;
      entries_.splice(entries_.begin(), entries_, i->second);
      ++counters_.hits;
      return &entry.value;
    }
    ++counters_.misses;
    return nullptr;
  }

  // `value_bytes` is what the value holds. `pinned` names slots whose values the analysis depends on, the
  // sequence's name in nextval('s'), say: only texts with the same ones there will find it. Values too large
  // for the cache are not kept, nullptr then.
  Value* insert(const Normaliser& statement, std::uint64_t context, Value value, std::size_t value_bytes,
                const std::vector<std::uint32_t>& pinned = {}) {
    Entry entry{std::string(statement.key()), context, 0, 0, {}, std::move(value)};
    for (const std::uint32_t slot : pinned)
      entry.pins.emplace_back(slot, std::string(statement.slots()[slot].token.of(statement.text())));
    entry.hash = hash(statement, context);
    entry.bytes = sizeof(Entry) + 64 + entry.key.size() + value_bytes;
    for (const auto& [slot, text] : entry.pins)
      entry.bytes += sizeof(std::pair<std::uint32_t, std::string>) + text.size();
    if (entry.bytes > bytes_max_ / 4) return nullptr;
    while (counters_.bytes + entry.bytes > bytes_max_ && !entries_.empty()) evict();
    counters_.bytes += entry.bytes;
    ++counters_.entries;
    entries_.push_front(std::move(entry));
    index_.emplace(entries_.front().hash, entries_.begin());
    return &entries_.front().value;
  }

  void clear() {
    entries_.clear();
    index_.clear();
    counters_.entries = 0;
    counters_.bytes = 0;
  }

  [[nodiscard]] const StatementCacheCounters& counters() const { return counters_; }

 private:
  struct Entry {
    std::string key;
    std::uint64_t context;
    std::uint64_t hash;
    std::size_t bytes;
    std::vector<std::pair<std::uint32_t, std::string>> pins;
    Value value;
  };
  using Entries = std::list<Entry>;
  struct SameHash {
    std::size_t operator()(std::uint64_t hash) const { return hash; }
  };

  static std::uint64_t hash(const Normaliser& statement, std::uint64_t context) {
    return XXH3_64bits_withSeed(statement.key().data(), statement.key().size(), context);
  }

  static bool pins_match(const Entry& entry, const Normaliser& statement) {
    for (const auto& [slot, text] : entry.pins)
      if (slot >= statement.slots().size() || statement.slots()[slot].token.of(statement.text()) != text)
        return false;
    return true;
  }

  void evict() {
    const auto oldest = std::prev(entries_.end());
    const auto [begin, end] = index_.equal_range(oldest->hash);
    for (auto i = begin; i != end; ++i) {
      if (i->second != oldest) continue;
      index_.erase(i);
      break;
    }
    counters_.bytes -= oldest->bytes;
    --counters_.entries;
    ++counters_.evictions;
    entries_.pop_back();
  }

  std::size_t bytes_max_;
  Entries entries_;
  std::unordered_multimap<std::uint64_t, typename Entries::iterator, SameHash> index_;
  StatementCacheCounters counters_;
};

}  // namespace kintsugi::parser
