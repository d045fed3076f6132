// How a row of a shard becomes a row of COPY FROM STDIN. A DataRow's body in binary is a tuple of binary COPY
// byte for byte; where a type's binary form holds OIDs that differ from shard to shard, rows go as text.
// Private to executor/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kintsugi::executor {

// The OID of a built-in type whose binary form is the same everywhere, by its name as format_type() writes it
// (with or without a length, also of an array); nothing for all others.
[[nodiscard]] std::optional<std::uint32_t> portable_type(std::string_view name);
// The array type of such a type; 0 when it is none of them, or an array itself.
[[nodiscard]] std::uint32_t array_of_portable(std::uint32_t type);

// What a cast calls such a type, without a length; empty when it is none of them.
[[nodiscard]] std::string name_of_portable(std::uint32_t type);

inline constexpr std::string_view kBinaryCopyHeader{"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", 19};
inline constexpr std::string_view kBinaryCopyTrailer{"\xff\xff", 2};

// The body of a DataRow as a whole CopyData message with one line of COPY's text format. Its values are text,
// but those whose type in `types` has an exact text (exact_text.h). XX001 when it is not well formed.
Status append_copy_line(std::string_view data_row, const std::vector<std::uint32_t>& types, std::string& out);

}  // namespace kintsugi::executor
