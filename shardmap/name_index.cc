#include "shardmap/name_index.h"

#include <xxhash.h>

#include <algorithm>
#include <unordered_map>

#include "base/invariant.h"

namespace kintsugi::shardmap {

std::uint64_t NameIndex::pair_of(std::string_view name, std::uint32_t chunk) {
  return (XXH3_64bits(name.data(), name.size()) >> 32 << 32) | chunk;
}

std::size_t NameIndex::leaf_for(std::uint64_t pair) const {
  const auto found = std::partition_point(leaves_.begin(), leaves_.end(),
                                          [pair](const auto& leaf) { return leaf->back() < pair; });
  return static_cast<std::size_t>(found - leaves_.begin());
}

void NameIndex::insert(std::string_view name, std::uint32_t chunk) {
  const std::uint64_t pair = pair_of(name, chunk);
  if (leaves_.empty()) {
    leaves_.push_back(std::make_shared<const Leaf>(Leaf{pair}));
    return;
  }
  const std::size_t at = std::min(leaf_for(pair), leaves_.size() - 1);
  Leaf leaf;
  leaf.reserve(leaves_[at]->size() + 1);
  leaf = *leaves_[at];
  leaf.insert(std::upper_bound(leaf.begin(), leaf.end(), pair), pair);
  if (leaf.size() > kLeafMax) {
    const auto middle = leaf.begin() + static_cast<std::ptrdiff_t>(leaf.size() / 2);
    leaves_.insert(leaves_.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                   std::make_shared<const Leaf>(middle, leaf.end()));
    leaf.erase(middle, leaf.end());
  }
  leaves_[at] = std::make_shared<const Leaf>(std::move(leaf));
}

void NameIndex::erase(std::string_view name, std::uint32_t chunk) {
  const std::uint64_t pair = pair_of(name, chunk);
  const std::size_t at = leaf_for(pair);
  INVARIANT(at < leaves_.size(), "a name that is erased is there");
  Leaf leaf = *leaves_[at];
  const auto found = std::lower_bound(leaf.begin(), leaf.end(), pair);
  INVARIANT(found != leaf.end() && *found == pair, "a name that is erased is there");
  leaf.erase(found);
  if (leaf.empty()) {
    leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(at));
  } else {
    leaves_[at] = std::make_shared<const Leaf>(std::move(leaf));
  }
}

void NameIndex::erase_chunks(const std::function<bool(std::uint32_t chunk)>& gone) {
  std::unordered_map<std::uint32_t, bool> known;
  std::vector<std::uint64_t> kept;
  for (const auto& leaf : leaves_) {
    for (const std::uint64_t pair : *leaf) {
      const auto chunk = static_cast<std::uint32_t>(pair);
      const auto [at, fresh] = known.try_emplace(chunk, false);
      if (fresh) at->second = gone(chunk);
      if (!at->second) kept.push_back(pair);
    }
  }
  assign(std::move(kept));
}

void NameIndex::assign(std::vector<std::uint64_t> pairs) {
  std::sort(pairs.begin(), pairs.end());
  leaves_.clear();
  constexpr std::size_t kFill = kLeafMax * 3 / 4;
  for (std::size_t begin = 0; begin < pairs.size(); begin += kFill) {
    const auto first = pairs.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = pairs.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kFill, pairs.size()));
    leaves_.push_back(std::make_shared<const Leaf>(first, last));
  }
}

std::vector<std::uint32_t> NameIndex::chunks_of(std::string_view name) const {
  const std::uint64_t first = pair_of(name, 0);
  std::vector<std::uint32_t> chunks;
  for (std::size_t at = leaf_for(first); at < leaves_.size(); ++at) {
    const Leaf& leaf = *leaves_[at];
    for (auto i = std::lower_bound(leaf.begin(), leaf.end(), first); i != leaf.end(); ++i) {
      if (*i >> 32 != first >> 32) return chunks;
      const auto chunk = static_cast<std::uint32_t>(*i);
      if (chunks.empty() || chunks.back() != chunk) chunks.push_back(chunk);
    }
  }
  return chunks;
}

std::size_t NameIndex::bytes() const {
  std::size_t total = leaves_.capacity() * sizeof(leaves_[0]);
  for (const auto& leaf : leaves_) total += leaf->capacity() * sizeof(std::uint64_t) + 48;
  return total;
}

}  // namespace kintsugi::shardmap
