// What the modifier of a key column's type does to a value that is stored: varchar(4) cuts blanks off,
// numeric(10,2) and timestamp(3) round. The row belongs where the stored key is. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "shardmap/key_type.h"

namespace kintsugi::planner {

struct KeyLimit {
  int characters = -1;  // of a text; -1: no limit
  int digits = -1;      // behind the point; -1: no limit

  [[nodiscard]] bool any() const { return characters >= 0 || digits >= 0; }
  friend bool operator==(const KeyLimit&, const KeyLimit&) = default;
};

// `type_name` as format_type() writes it.
[[nodiscard]] KeyLimit limit_of(std::string_view type_name);

// Makes what stands in `key` from `begin` on, one column, what PostgreSQL stores; false: it would be rounded,
// and only PostgreSQL knows to what. A text that is too long for it is cut: PostgreSQL refuses it wherever it
// comes.
[[nodiscard]] bool store_as(KeyLimit limit, shardmap::KeyType type, std::size_t begin, std::string& key);

}  // namespace kintsugi::planner
