#include "executor/fold.h"

#include <charconv>

#include "executor/decimal_sum.h"
#include "executor/row_key.h"
#include "wire/frame.h"

namespace kintsugi::executor {
namespace {

using planner::Fold;
using planner::FoldColumn;

// Sums of 64-bit numbers: as many as there can be shards never leave it.
__extension__ using Wide = __int128;

constexpr std::uint32_t kInt8 = 20, kInt2 = 21, kInt4 = 23, kNumeric = 1700;
constexpr std::uint32_t kBool = 16;

int bytes_of(std::uint32_t type) {
  switch (type) {
    case kInt2: return 2;
    case kInt4: return 4;
    default: return 8;
  }
}

std::string_view name_of(std::uint32_t type) {
  switch (type) {
    case kInt2: return "smallint";
    case kInt4: return "integer";
    default: return "bigint";
  }
}

tl::unexpected<Error> damaged() {
  return fail("XX001", "a shard sent a partial result that is not of its type");
}

Result<std::int64_t> read_integer(std::uint32_t type, bool binary, std::string_view value) {
  std::int64_t number = 0;
  if (!binary) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) return damaged();
    return number;
  }
  if (value.size() != static_cast<std::size_t>(bytes_of(type))) return damaged();
  std::uint64_t bits = static_cast<unsigned char>(value.front()) >= 0x80 ? UINT64_MAX : 0;
  for (const char c : value) bits = bits << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(bits);
}

std::string write_integer(std::uint32_t type, bool binary, std::int64_t number) {
  if (!binary) return std::to_string(number);
  std::string value;
  for (int i = bytes_of(type) - 1; i >= 0; --i)
    value += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
  return value;
}

Result<Cell> sum_of(const FoldColumn& column, bool binary, const std::vector<Cell>& cells) {
  const bool integer = column.type == kInt2 || column.type == kInt4 || column.type == kInt8;
  if (!integer && column.type != kNumeric) {
    return fail(sqlstate::kInternal,
                "a plan sums a type that no router sums, OID " + std::to_string(column.type));
  }
  Wide total = 0;
  DecimalSum decimals;
  bool any = false;
  for (const Cell& cell : cells) {
    if (!cell) continue;
    any = true;
    if (integer) {
      KG_TRY(const std::int64_t number, read_integer(column.type, binary, *cell));
      total += number;
    } else {
      KG_CHECK(decimals.add(*cell, binary));
    }
  }
  if (!any) return Cell();
  if (!integer) return Cell(decimals.to_value(binary));
  const Wide end = Wide{1} << (8 * bytes_of(column.type) - 1);
  if (total >= end || total < -end) return fail("22003", std::string(name_of(column.type)) + " out of range");
  return Cell(write_integer(column.type, binary, static_cast<std::int64_t>(total)));
}

Result<Cell> extreme_of(const FoldColumn& column, bool binary, const std::vector<Cell>& cells) {
  const KeyOrder order{.type = column.type, .binary = binary, .descending = column.fold == Fold::kMax};
  const Cell* best = nullptr;
  std::string best_key, key;
  for (const Cell& cell : cells) {
    if (!cell) continue;
    key.clear();
    KG_CHECK(append_row_key(order, *cell, key));
    if (best != nullptr && key >= best_key) continue;
    best = &cell;
    best_key.swap(key);
  }
  return best != nullptr ? *best : Cell();
}

Result<Cell> both_of(const FoldColumn& column, bool binary, const std::vector<Cell>& cells) {
  if (column.type != kBool) return fail(sqlstate::kInternal, "a plan joins truth values that are none");
  const std::string yes = binary ? std::string(1, '\1') : "t";
  const std::string no = binary ? std::string(1, '\0') : "f";
  const std::string& deciding = column.fold == Fold::kAnd ? no : yes;
  Cell result;
  for (const Cell& cell : cells) {
    if (!cell) continue;
    if (*cell != yes && *cell != no) return damaged();
    if (!result || *cell == deciding) result = cell;
  }
  return result;
}

}  // namespace

Result<Cell> fold_column(const FoldColumn& column, bool binary, const std::vector<Cell>& cells) {
  switch (column.fold) {
    case Fold::kFirst: return cells.front();
    case Fold::kSum: return sum_of(column, binary, cells);
    case Fold::kMin:
    case Fold::kMax: return extreme_of(column, binary, cells);
    case Fold::kAnd:
    case Fold::kOr: return both_of(column, binary, cells);
  }
  return fail(sqlstate::kInternal, "a plan folds in an unknown way");
}

}  // namespace kintsugi::executor
