// Which chunks hold the entries of a shardlet, by its name: a sorted multiset of (hash of name, chunk id), one
// pair an entry, in leaves that copies of the index share. Eight bytes an entry. Changed while a new map is
// made, by one thread; read by any afterwards. Private to shardmap/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace kintsugi::shardmap {

class NameIndex {
 public:
  void insert(std::string_view name, std::uint32_t chunk);
  void erase(std::string_view name, std::uint32_t chunk);                   // one pair; it must be there
  void erase_chunks(const std::function<bool(std::uint32_t chunk)>& gone);  // all pairs of these chunks
  // Makes the index of many pairs at once; replaces what was there.
  void assign(std::vector<std::uint64_t> pairs);
  [[nodiscard]] static std::uint64_t pair_of(std::string_view name, std::uint32_t chunk);

  // Each chunk once, ascending. Chunks of other names with the same hash may be among them.
  [[nodiscard]] std::vector<std::uint32_t> chunks_of(std::string_view name) const;

  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::size_t kLeafMax = 1024;
  using Leaf = std::vector<std::uint64_t>;

  [[nodiscard]] std::size_t leaf_for(std::uint64_t pair) const;  // the first leaf that may hold it

  std::vector<std::shared_ptr<const Leaf>> leaves_;  // none is empty
};

}  // namespace kintsugi::shardmap
