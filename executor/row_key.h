// Columns of a result row as bytes whose memcmp is PostgreSQL's ORDER BY: only types whose order needs no
// collation (text, varchar, name and bpchar under "C"). Any thread; allocates when `key` has no room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kintsugi::executor {

struct KeyOrder {
  std::uint32_t type = 0;  // pg_type OID
  bool binary = false;     // the format of the values
  bool descending = false;
  bool nulls_first = false;
};

// Whether values of this type can be ordered here. In text format dates and times are read in ISO style only,
// and floats as exactly as they are written: a planner gives such sort columns as hidden ones, which come in
// binary.
[[nodiscard]] bool can_order(std::uint32_t type);

// Appends one value (none: NULL). The end of each value is part of it, so several may stand one behind the
// other. 0A000 for a type that cannot be ordered here, XX001 for a value that is not of its type and format.
Status append_row_key(const KeyOrder& order, std::optional<std::string_view> value, std::string& key);

}  // namespace kintsugi::executor
