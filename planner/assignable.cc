#include "planner/assignable.h"

#include "planner/key_value.h"

namespace kintsugi::planner {

using parser::SlotKind;
using shardmap::KeyType;

std::optional<Error> unassignable(SlotKind literal, KeyType type, const std::string& column) {
  if (type == KeyType::kText) return std::nullopt;
  std::string name;
  switch (literal) {
    case SlotKind::kTrue:
    case SlotKind::kFalse:
      if (type == KeyType::kBoolean) return std::nullopt;
      name = "boolean";
      break;
    case SlotKind::kBits:
    case SlotKind::kHexBits: name = "bit"; break;
    case SlotKind::kInteger:
    case SlotKind::kBigInteger:
    case SlotKind::kNumeric:
      if (is_number(type)) return std::nullopt;
      name = literal == SlotKind::kNumeric ? "numeric" : literal == SlotKind::kInteger ? "integer" : "bigint";
      break;
    default: return std::nullopt;
  }
  return Error{.sqlstate = "42804",
               .message = "column \"" + column + "\" is of type " + std::string(shardmap::name_of(type)) +
                          " but expression is of type " + name,
               .hint = "You will need to rewrite or cast the expression."};
}

}  // namespace kintsugi::planner
