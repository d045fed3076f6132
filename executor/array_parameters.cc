#include "executor/array_parameters.h"

#include <optional>

#include "base/sql_quote.h"
#include "executor/copy_format.h"
#include "executor/exact_text.h"
#include "wire/frame.h"

namespace kintsugi::executor {
namespace {

constexpr std::uint32_t kText = 25, kTextArray = 1009, kBpchar = 1042, kVarchar = 1043, kNumeric = 1700;
constexpr std::int32_t kHeader = 4;  // in what varchar(n) and numeric(p, s) store

// "::numeric(10,2)" of what has lost it in an array; empty: it has none.
std::string cast_of(const ArrayColumn& column) {
  if (column.modifier < 0) return {};
  const std::int32_t plain = column.modifier - kHeader;
  switch (column.type) {
    case kBpchar: return "::pg_catalog.bpchar(" + std::to_string(plain) + ")";
    case kVarchar: return "::pg_catalog.varchar(" + std::to_string(plain) + ")";
    case kNumeric: {
      const std::int32_t scale = ((plain & 0x7ff) ^ 1024) - 1024;
      return "::pg_catalog.numeric(" + std::to_string(plain >> 16 & 0xffff) + "," + std::to_string(scale) + ")";
    }
    case 1083: return "::pg_catalog.time(" + std::to_string(column.modifier) + ")";
    case 1114: return "::pg_catalog.timestamp(" + std::to_string(column.modifier) + ")";
    case 1184: return "::pg_catalog.timestamptz(" + std::to_string(column.modifier) + ")";
    case 1266: return "::pg_catalog.timetz(" + std::to_string(column.modifier) + ")";
    default: return {};
  }
}

void append_u32(std::string& out, std::uint32_t value) {
  const std::size_t at = out.size();
  out.resize(at + 4);
  wire::store_u32(out.data() + at, value);
}

// One that grows: its elements as they stand in PostgreSQL's binary form of arrays.
class Array {
 public:
  void add(std::optional<std::string_view> value) {
    nulls_ = nulls_ || !value;
    append_u32(body_, value ? static_cast<std::uint32_t>(value->size()) : UINT32_MAX);
    if (value) body_ += *value;
  }

  [[nodiscard]] std::string whole(std::uint32_t type, std::uint32_t count) const {
    std::string array;
    append_u32(array, count > 0 ? 1 : 0);  // dimensions
    append_u32(array, nulls_ ? 1 : 0);
    append_u32(array, type);
    if (count == 0) return array;
    append_u32(array, count);
    append_u32(array, 1);  // the first subscript
    return array + body_;
  }

 private:
  std::string body_;
  bool nulls_ = false;
};

}  // namespace

ArrayColumn array_column(const wire::Column& column) {
  return {.type = column.type_oid,
          .array = array_of_portable(column.type_oid),
          .modifier = column.type_modifier,
          .binary = column.format != 0,
          .name = name_of_portable(column.type_oid)};
}

std::uint32_t parameter_type(const ArrayColumn& column) {
  return column.binary ? column.array : kTextArray;
}

bool is_portable(std::uint32_t type) {
  return array_of_portable(type) != 0;
}

bool has_known_modifier(const ArrayColumn& column) {
  return column.modifier < 0 || !cast_of(column).empty();
}

Result<std::vector<std::string>> arrays_of(std::string_view messages, const std::vector<ArrayColumn>& columns,
                                           std::string& others) {
  std::vector<Array> arrays(columns.size());
  std::uint32_t count = 0;
  while (!messages.empty()) {
    KG_TRY(const auto frame, wire::peek_frame(messages, ~std::uint64_t{0} >> 1));
    if (!frame) break;
    messages.remove_prefix(frame->bytes().size());
    if (frame->type != wire::server::kDataRow) {
      others += frame->bytes();
      continue;
    }
    KG_TRY(const auto values, wire::read_data_row(frame->body));
    if (values.size() != columns.size()) return fail("XX001", "a shard sent a row of another length");
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::optional<std::string> text;
      if (columns[i].exact && values[i]) {
        text = exact_text(columns[i].type, *values[i]);
        if (!text) return fail("XX001", "a shard sent a value that is not well formed");
      }
      arrays[i].add(text ? std::optional<std::string_view>(*text) : values[i]);
    }
    ++count;
  }
  std::vector<std::string> made;
  for (std::size_t i = 0; i < columns.size(); ++i)
    made.push_back(arrays[i].whole(columns[i].binary ? columns[i].type : kText, count));
  return made;
}

std::string relation_of_arrays(const std::string& name, const std::vector<std::string>& names,
                               const std::string& like, const std::vector<ArrayColumn>& columns,
                               std::size_t first) {
  std::string list, values, sources, given;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string separator = i > 0 ? ", " : "", column = "c" + std::to_string(i + 1);
    list += separator + quote_identifier(names[i]);
    values +=
        separator + "v." + column + (columns[i].binary ? "" : "::" + columns[i].name) + cast_of(columns[i]);
    sources += separator + "pg_catalog.unnest($" + std::to_string(first + i) + ")";
    given += separator + column;
  }
  return "WITH " + quote_identifier(name) + " (" + list + ") AS (SELECT * FROM (" + like +
         "\n) AS l WHERE false UNION ALL SELECT " + values + " FROM ROWS FROM (" + sources + ") AS v (" +
         given + ")) ";
}

}  // namespace kintsugi::executor
