#include "executor/copy_format.h"

#include <algorithm>
#include <array>

#include "executor/exact_text.h"
#include "wire/client_messages.h"

namespace kintsugi::executor {
namespace {

struct Portable {
  std::string_view name;
  std::uint32_t type, array;
};
constexpr std::array kPortable = {
    Portable{"\"char\"", 18, 1002},
    Portable{"bigint", 20, 1016},
    Portable{"bit", 1560, 1561},
    Portable{"bit varying", 1562, 1563},
    Portable{"boolean", 16, 1000},
    Portable{"box", 603, 1020},
    Portable{"bytea", 17, 1001},
    Portable{"character", 1042, 1014},
    Portable{"character varying", 1043, 1015},
    Portable{"cidr", 650, 651},
    Portable{"date", 1082, 1182},
    Portable{"double precision", 701, 1022},
    Portable{"inet", 869, 1041},
    Portable{"integer", 23, 1007},
    Portable{"interval", 1186, 1187},
    Portable{"json", 114, 199},
    Portable{"jsonb", 3802, 3807},
    Portable{"macaddr", 829, 1040},
    Portable{"money", 790, 791},
    Portable{"name", 19, 1003},
    Portable{"numeric", 1700, 1231},
    Portable{"oid", 26, 1028},
    Portable{"point", 600, 1017},
    Portable{"real", 700, 1021},
    Portable{"smallint", 21, 1005},
    Portable{"text", 25, 1009},
    Portable{"time with time zone", 1266, 1270},
    Portable{"time without time zone", 1083, 1183},
    Portable{"timestamp with time zone", 1184, 1185},
    Portable{"timestamp without time zone", 1114, 1115},
    Portable{"uuid", 2950, 2951},
};

}  // namespace

std::optional<std::uint32_t> portable_type(std::string_view name) {
  bool array = false;
  while (name.ends_with("[]")) {
    array = true;
    name.remove_suffix(2);
  }
  // "numeric(10,2)", "timestamp(3) without time zone"
  std::string plain(name);
  if (const std::size_t open = plain.find('('); open != std::string::npos) {
    const std::size_t close = plain.find(')', open);
    if (close == std::string::npos) return std::nullopt;
    plain.erase(open, close - open + 1);
  }
  const auto* found = std::find_if(kPortable.begin(), kPortable.end(),
                                   [&plain](const Portable& each) { return each.name == plain; });
  if (found == kPortable.end()) return std::nullopt;
  return array ? found->array : found->type;
}

std::uint32_t array_of_portable(std::uint32_t type) {
  const auto* found = std::find_if(kPortable.begin(), kPortable.end(),
                                   [type](const Portable& each) { return each.type == type; });
  return found == kPortable.end() ? 0 : found->array;
}

std::string name_of_portable(std::uint32_t type) {
  // Those of SQL's names without a length that mean another type than this one.
  if (type == 1042) return "pg_catalog.bpchar";
  if (type == 1560) return "pg_catalog.\"bit\"";
  const auto* found = std::find_if(kPortable.begin(), kPortable.end(),
                                   [type](const Portable& each) { return each.type == type; });
  if (found == kPortable.end()) return {};
  static constexpr std::string_view kNames[] = {"\"char\"", "box",  "bytea", "cidr",    "date",
                                                "inet",     "json", "jsonb", "macaddr", "money",
                                                "name",     "oid",  "point", "text",    "uuid"};
  const bool is_name = std::find(std::begin(kNames), std::end(kNames), found->name) != std::end(kNames);
  return (is_name ? "pg_catalog." : "") + std::string(found->name);
}

Status append_copy_line(std::string_view data_row, const std::vector<std::uint32_t>& types, std::string& out) {
  wire::BodyReader in(data_row);
  wire::FrameWriter line(out, wire::client::kCopyData);
  const std::size_t columns = in.u16();
  for (std::size_t i = 0; i < columns && in.ok(); ++i) {
    if (i > 0) line.u8('\t');
    const std::int32_t size = in.i32();
    if (size < 0) {
      line.bytes("\\N");
      continue;
    }
    std::string_view value = in.bytes(static_cast<std::size_t>(size));
    if (const auto exact = i < types.size() ? exact_text(types[i], value) : std::nullopt) {
      line.bytes(*exact);
      continue;
    }
    while (!value.empty()) {
      const std::size_t plain = std::min(value.find_first_of("\b\f\n\r\t\v\\"), value.size());
      line.bytes(value.substr(0, plain));
      value.remove_prefix(plain);
      if (value.empty()) break;
      static constexpr std::string_view kRaw = "\b\f\n\r\t\v\\", kEscaped = "bfnrtv\\";
      line.u8('\\').u8(static_cast<std::uint8_t>(kEscaped[kRaw.find(value.front())]));
      value.remove_prefix(1);
    }
  }
  line.u8('\n');
  if (!in.done()) return fail("XX001", "a shard sent a row that is not well formed");
  return {};
}

}  // namespace kintsugi::executor
