// Rows that are few as the array parameters of the statement that goes on with them: one array a column, and
// the text that makes a relation of them again. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "wire/server_messages.h"

namespace kintsugi::executor {

struct ArrayColumn {
  std::uint32_t type = 0, array = 0;  // pg_type OIDs on the server that will get them
  std::int32_t modifier = -1;
  bool binary = false;  // its values came so, and go as an array of `array`; else as texts, which are cast
  bool exact = false;   // they came in binary and go as exact_text()
  std::string name;     // of the type, as a cast has it
};

// Built-in types that unnest() gives back as they were; `array` is 0 for those that PostgreSQL has to be asked
// for.
[[nodiscard]] ArrayColumn array_column(const wire::Column& column);
// Whether the values of such a type have the same binary form on every server, whatever the session's settings.
[[nodiscard]] bool is_portable(std::uint32_t type);
// Whether its length or precision can be said again.
[[nodiscard]] bool has_known_modifier(const ArrayColumn& column);

// What the column's parameter is: texts are text[], whose NULLs no setting takes for words.
[[nodiscard]] std::uint32_t parameter_type(const ArrayColumn& column);

// The value of each column's parameter, in binary. `messages`: DataRows, and what came with them (notices),
// which goes to `others`. XX001 when a row is not well formed.
Result<std::vector<std::string>> arrays_of(std::string_view messages, const std::vector<ArrayColumn>& columns,
                                           std::string& others);

// "WITH name (columns) AS (...) ", for `$first` and those after it. `like` is the query whose rows they are: it
// is not run, but lends its columns' collations, which no array has.
std::string relation_of_arrays(const std::string& name, const std::vector<std::string>& names,
                               const std::string& like, const std::vector<ArrayColumn>& columns,
                               std::size_t first);

}  // namespace kintsugi::executor
