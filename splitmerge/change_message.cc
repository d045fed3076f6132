#include "splitmerge/change_message.h"

#include "wire/frame.h"

namespace kintsugi::splitmerge {
namespace {

using wire::BodyReader;

constexpr std::size_t kColumnBytes = 10;  // at least: flags, an empty name, type and modifier

std::size_t read_count(BodyReader& in, std::size_t each) {
  const std::size_t count = in.u16();
  if (in.ok() && in.left() < count * each) in.fail_short();
  return in.ok() ? count : 0;
}

Result<ChangeMessage> read_relation(BodyReader in) {
  ChangedRelation relation;
  relation.id = in.u32();
  relation.schema = in.cstring();
  relation.name = in.cstring();
  in.u8();  // how its rows are identified
  const std::size_t count = read_count(in, kColumnBytes);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    in.u8();
    relation.columns.emplace_back(in.cstring());
    in.u32();
    in.u32();
  }
  KG_CHECK(in.finish());
  return relation;
}

ChangedTuple read_tuple(BodyReader& in) {
  ChangedTuple tuple;
  const std::size_t count = read_count(in, 1);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    switch (in.u8()) {
      case 'n':
      case 'u': tuple.emplace_back(); break;
      case 't': tuple.emplace_back(in.bytes(in.u32())); break;
      default: in.fail_short();
    }
  }
  return tuple;
}

Result<ChangeMessage> read_row(BodyReader in) {
  RowChange change;
  change.relation = in.u32();
  while (in.ok() && in.left() > 0) {
    switch (in.u8()) {
      case 'K':
      case 'O': change.before = read_tuple(in); break;
      case 'N': change.after = read_tuple(in); break;
      default: in.fail_short();
    }
  }
  KG_CHECK(in.finish());
  return change;
}

}  // namespace

Result<ChangeMessage> read_change(std::string_view message) {
  BodyReader in(message);
  switch (in.u8()) {
    case 'R': return read_relation(in);
    case 'I':
    case 'U':
    case 'D': return read_row(in);
    case 'B': {
      in.bytes(16);  // where and when it was committed
      const ChangingTransaction begun{in.u32()};
      KG_CHECK(in.finish());
      return begun;
    }
    case 'C':
    case 'O':
    case 'Y':
    case 'T':
    case 'M': return ChangeMessage{};
    default: return fail(sqlstate::kProtocolViolation, "a message of a replication slot is of no known kind");
  }
}

}  // namespace kintsugi::splitmerge
