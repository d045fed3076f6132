// What pgoutput (protocol version 1) says of changes, as far as it tells which rows they are. Bytes in, values
// out; the values look into the bytes. Private to splitmerge/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace kintsugi::splitmerge {

// Told before the first change of a relation, and again when it has become another.
struct ChangedRelation {
  std::uint32_t id = 0;
  std::string schema, name;
  std::vector<std::string> columns;
};

// A row's values as text. None: NULL, or a large value that an update has left as it was, or a column that does
// not belong to the row's identity.
using ChangedTuple = std::vector<std::optional<std::string_view>>;

struct RowChange {
  std::uint32_t relation = 0;
  std::optional<ChangedTuple> before;  // of an update only when it changes the row's identity, or tells all
  std::optional<ChangedTuple> after;
};

// The transaction whose changes follow; it is committed.
struct ChangingTransaction {
  std::uint32_t xid = 0;
};

// Nothing: a message that is of no matter here (the end of a transaction, a type's name).
using ChangeMessage = std::variant<std::monostate, ChangingTransaction, ChangedRelation, RowChange>;

// 08P01 when the bytes are no such message.
Result<ChangeMessage> read_change(std::string_view message);

}  // namespace kintsugi::splitmerge
