#include "executor/copy_split.h"

#include <algorithm>
#include <cstring>

#include "base/invariant.h"
#include "executor/copy_format.h"
#include "shardmap/key_encoding.h"
#include "wire/frame.h"

namespace kintsugi::executor {
namespace {

using planner::CopyIn;
using shardmap::KeyType;
using shardmap::ShardletState;

constexpr std::size_t kBinaryFixed = 19;  // signature, flags, length of the extension

// Integer keys may come as any of the integer types: a binary value says which by its length.
std::uint32_t binary_type_of(KeyType type, std::size_t size) {
  if (type != KeyType::kSmallint && type != KeyType::kInt && type != KeyType::kBigint) return 0;
  switch (size) {
    case 2: return 21;
    case 4: return 23;
    case 8: return 20;
    default: return 0;
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// What a backslash and the characters behind it stand for; takes them off `text`, which begins behind the
// backslash.
char unescape(std::string_view& text) {
  const char c = text.front();
  text.remove_prefix(1);
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'v': return '\v';
    case 'x': {
      if (text.empty() || hex_digit(text.front()) < 0) return c;
      int value = 0;
      for (int i = 0; i < 2 && !text.empty() && hex_digit(text.front()) >= 0; ++i) {
        value = value * 16 + hex_digit(text.front());
        text.remove_prefix(1);
      }
      return static_cast<char>(value);
    }
    default: break;
  }
  if (c < '0' || c > '7') return c;
  int value = c - '0';
  for (int i = 0; i < 2 && !text.empty() && text.front() >= '0' && text.front() <= '7'; ++i) {
    value = value * 8 + (text.front() - '0');
    text.remove_prefix(1);
  }
  return static_cast<char>(value);
}

}  // namespace

CopySplitter::CopySplitter(const CopyIn& plan, shardmap::MapPtr map, std::uint64_t max_row)
    : plan_(plan), map_(std::move(map)), max_row_(max_row), outputs_(plan.shards.size()) {
  for (std::size_t i = 0; i < plan.key_columns.size(); ++i) {
    fields_.push_back({.column = static_cast<std::size_t>(plan.key_columns[i]), .key = i});
    last_column_ = std::max(last_column_, fields_.back().column);
  }
  std::sort(fields_.begin(), fields_.end(), [](const Field& a, const Field& b) { return a.column < b.column; });
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    if (output_of_.size() <= plan.shards[i]) output_of_.resize(plan.shards[i] + 1, SIZE_MAX);
    output_of_[plan.shards[i]] = i;
  }
  begun_ = plan.format != CopyIn::Format::kBinary && !plan.header;
}

Result<CopySplitter> CopySplitter::make(const CopyIn& plan, shardmap::MapPtr map, std::uint64_t max_row) {
  CopySplitter splitter(plan, std::move(map), max_row);
  if (plan.map.empty()) return splitter;
  splitter.mapping_ = splitter.map_->mapping(plan.map);
  if (splitter.mapping_ == nullptr)
    return fail(sqlstate::kUndefinedObject, "there is no shard map \"" + plan.map + "\"");
  INVARIANT(plan.key_columns.size() == splitter.mapping_->key_types().size(), "a plan names every key column");
  return splitter;
}

tl::unexpected<Error> CopySplitter::with_line(Error error) const {
  if (!error.detail.empty()) error.detail += " ";
  error.detail +=
      (plan_.format == CopyIn::Format::kBinary ? "COPY, row " : "COPY, line ") + std::to_string(line_) + ".";
  return fail(std::move(error));
}

Status CopySplitter::take(std::string_view piece) {
  if (ended_) return {};
  if (mapping_ == nullptr) {
    to_all(piece);
    return {};
  }
  const bool binary = plan_.format == CopyIn::Format::kBinary;
  Status status;
  if (!rest_.empty()) {
    rest_ += piece;
    piece = rest_;
  }
  const std::size_t used = binary ? take_tuples(piece, status) : take_lines(piece, false, status);
  if (!status) return status;
  if (ended_) {
    rest_.clear();
    return {};
  }
  const std::string_view left = piece.substr(used);
  if (left.size() > max_row_) {
    ++line_;
    return with_line({.sqlstate = std::string(sqlstate::kProgramLimitExceeded),
                      .message = "a row of COPY data is longer than " + std::to_string(max_row_) + " bytes",
                      .hint = "Raise limits.max_message."});
  }
  if (rest_.empty()) {
    rest_.assign(left);
  } else {
    rest_.erase(0, used);
  }
  return {};
}

Status CopySplitter::finish() {
  if (mapping_ == nullptr || ended_) return {};
  if (plan_.format == CopyIn::Format::kBinary) {
    // PostgreSQL says what is wrong with data that end so.
    to_all(rest_);
    rest_.clear();
    return {};
  }
  Status status;
  const std::size_t used = take_lines(rest_, true, status);
  if (status) INVARIANT(ended_ || used == rest_.size(), "the last line ends with the data");
  rest_.clear();
  return status;
}

void CopySplitter::to_all(std::string_view row) {
  for (std::string& output : outputs_) output += row;
}

// ---- text and CSV ----

// Where the first line of `bytes` ends, its ending included; 0 while it does not. Goes on where it stopped.
std::size_t CopySplitter::end_of_line(std::string_view bytes, bool last) {
  const bool csv = plan_.format == CopyIn::Format::kCsv;
  // An escape that is the quote itself is two quotes: they turn the state over twice.
  const char escape = csv ? (plan_.escape == plan_.quote ? '\0' : plan_.escape) : '\\';
  std::size_t at = seen_;
  std::size_t glanced = 0;  // where the next newline is known to be
  for (; at < bytes.size(); ++at) {
    if (!csv && !after_escape_ && ending_ == Ending::kNewline) {
      // The rest of the line in two glances, when there is nothing in it.
      if (at >= glanced) {
        const auto* end = static_cast<const char*>(std::memchr(bytes.data() + at, '\n', bytes.size() - at));
        glanced = end != nullptr ? static_cast<std::size_t>(end - bytes.data()) : bytes.size();
      }
      const auto* slash = static_cast<const char*>(std::memchr(bytes.data() + at, '\\', glanced - at));
      at = slash != nullptr ? static_cast<std::size_t>(slash - bytes.data()) : glanced;
      if (at == bytes.size()) break;
    }
    const char c = bytes[at];
    if (csv) {
      if (in_quotes_ && c == escape && escape != '\0') after_escape_ = !after_escape_;
      if (c == plan_.quote && !after_escape_) in_quotes_ = !in_quotes_;
      if (c != escape || escape == '\0') after_escape_ = false;
      if (in_quotes_) continue;
    } else if (std::exchange(after_escape_, false)) {
      continue;
    } else if (c == escape) {
      after_escape_ = true;
      continue;
    }
    if (c != '\n' && c != '\r') continue;
    if (ending_ == Ending::kUnknown) {
      // The first line says how lines end. A return at the end of what there is may be half an ending.
      if (c == '\r' && at + 1 == bytes.size() && !last) break;
      ending_ =
          c == '\n' || (at + 1 < bytes.size() && bytes[at + 1] == '\n') ? Ending::kNewline : Ending::kReturn;
    }
    if (c == (ending_ == Ending::kNewline ? '\n' : '\r')) {
      seen_ = 0;
      return at + 1;
    }
  }
  seen_ = at;
  if (!last || bytes.empty()) return 0;
  seen_ = 0;
  return bytes.size();
}

std::size_t CopySplitter::take_lines(std::string_view bytes, bool last, Status& status) {
  std::size_t at = 0;
  while (at < bytes.size() && !ended_) {
    const std::size_t size = end_of_line(bytes.substr(at), last);
    if (size == 0) break;
    const std::string_view whole = bytes.substr(at, size);
    at += size;
    std::string_view line = whole;
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    status = on_line(line, whole);
    if (!status) break;
  }
  return at;
}

Status CopySplitter::on_line(std::string_view line, std::string_view whole) {
  ++line_;
  after_escape_ = in_quotes_ = false;
  if (line == "\\.") {
    ended_ = true;
    return {};
  }
  if (!begun_) {
    begun_ = true;
    to_all(whole);
    return {};
  }
  for (Field& field : fields_) field.present = false;
  const bool enough = plan_.format == CopyIn::Format::kCsv ? csv_fields(line) : text_fields(line);
  if (!enough) {
    return with_line({.sqlstate = "22P04",
                      .message = "missing data for the sharding key of a row",
                      .hint = "A row has fewer columns than the COPY names."});
  }
  return give(whole);
}

// Finds the key's columns in a line of text format; false when it has too few.
bool CopySplitter::text_fields(std::string_view line) {
  std::size_t column = 0;
  std::size_t next = 0;
  for (;;) {
    std::size_t end = 0;
    for (; end < line.size() && line[end] != plan_.delimiter; ++end) {
      if (line[end] == '\\' && end + 1 < line.size()) ++end;
    }
    if (column == fields_[next].column) {
      Field& field = fields_[next];
      std::string_view raw = line.substr(0, end);
      field.present = true;
      field.null = raw == plan_.null_text;
      field.value.clear();
      while (!raw.empty()) {
        const std::size_t plain = std::min(raw.find('\\'), raw.size());
        field.value += raw.substr(0, plain);
        raw.remove_prefix(plain);
        if (raw.size() < 2) {
          field.value += raw;
          break;
        }
        raw.remove_prefix(1);
        field.value += unescape(raw);
      }
      if (++next == fields_.size()) return true;
    }
    if (end >= line.size()) return false;
    line.remove_prefix(end + 1);
    ++column;
  }
}

bool CopySplitter::csv_fields(std::string_view line) {
  std::size_t column = 0, next = 0, at = 0;
  for (;;) {
    Field* field = column == fields_[next].column ? &fields_[next] : nullptr;
    if (field != nullptr) {
      field->present = true;
      field->value.clear();
    }
    bool quoted = false, inside = false;
    for (; at < line.size(); ++at) {
      const char c = line[at];
      if (!inside && c == plan_.delimiter) break;
      if (inside && c == plan_.escape && at + 1 < line.size() &&
          (line[at + 1] == plan_.quote || line[at + 1] == plan_.escape)) {
        ++at;
      } else if (c == plan_.quote) {
        inside = !inside;
        quoted = true;
        continue;
      }
      if (field != nullptr) field->value += line[at];
    }
    if (field != nullptr) {
      const bool force_null = field->key < plan_.force_null.size() && plan_.force_null[field->key];
      const bool never = field->key < plan_.force_not_null.size() && plan_.force_not_null[field->key];
      field->null = field->value == plan_.null_text && (quoted ? force_null : !never);
      if (++next == fields_.size()) return true;
    }
    if (at >= line.size()) return false;
    ++at;
    ++column;
  }
}

// ---- binary ----

std::size_t CopySplitter::take_tuples(std::string_view bytes, Status& status) {
  std::size_t at = 0;
  if (!begun_) {
    if (bytes.size() < kBinaryFixed) return 0;
    const std::size_t size = kBinaryFixed + wire::load_u32(bytes.data() + kBinaryFixed - 4);
    if (bytes.size() < size) return 0;
    // A header that is none is PostgreSQL's to refuse.
    to_all(bytes.substr(0, size));
    begun_ = true;
    at = size;
  }
  while (!ended_ && bytes.size() - at >= 2) {
    const std::size_t columns = wire::load_u16(bytes.data() + at);
    if (columns == 0xffff) {
      to_all(kBinaryCopyTrailer);
      ended_ = true;
      break;
    }
    std::size_t end = at + 2;
    bool whole = true;
    for (std::size_t i = 0; i < columns; ++i) {
      if (bytes.size() - end < 4) {
        whole = false;
        break;
      }
      const auto size = static_cast<std::int32_t>(wire::load_u32(bytes.data() + end));
      end += 4;
      if (size <= 0) continue;
      if (bytes.size() - end < static_cast<std::size_t>(size)) {
        whole = false;
        break;
      }
      end += static_cast<std::size_t>(size);
    }
    if (!whole) break;
    status = on_tuple(bytes.substr(at, end - at));
    at = end;
    if (!status) break;
  }
  return at;
}

Status CopySplitter::on_tuple(std::string_view tuple) {
  ++line_;
  wire::BodyReader in(tuple);
  const std::size_t columns = in.u16();
  std::size_t next = 0;
  for (std::size_t i = 0; i < columns && next < fields_.size(); ++i) {
    const std::int32_t size = in.i32();
    const std::string_view value = size > 0 ? in.bytes(static_cast<std::size_t>(size)) : std::string_view();
    Field& field = fields_[next];
    if (i != field.column) continue;
    field.present = true;
    field.null = size < 0;
    field.value = value;
    ++next;
  }
  if (next < fields_.size())
    return with_line({.sqlstate = "22P04", .message = "missing data for the sharding key of a row"});
  return give(tuple);
}

// ---- a row and its shard ----

Status CopySplitter::give(std::string_view row) {
  const bool binary = plan_.format == CopyIn::Format::kBinary;
  const auto& types = mapping_->key_types();
  key_.clear();
  std::size_t at = 0;
  // Few columns: looked for in the order of the key.
  for (std::size_t k = 0; k < types.size(); ++k) {
    for (at = 0; fields_[at].key != k; ++at) {
    }
    const Field& field = fields_[at];
    if (field.null) {
      return with_line({.sqlstate = std::string(sqlstate::kKeyMissing),
                        .message = "the sharding key of a row is NULL",
                        .hint = "Every row of a sharded table needs its key."});
    }
    const std::size_t begin = key_.size();
    const Status put = binary ? shardmap::append_binary(types[k], binary_type_of(types[k], field.value.size()),
                                                        field.value, key_)
                              : shardmap::append_text(types[k], field.value, key_);
    if (!put) return with_line(put.error());
    if (k < plan_.limits.size() && !planner::store_as(plan_.limits[k], types[k], begin, key_))
      return with_line({.sqlstate = std::string(sqlstate::kNotSupported),
                        .message = "the sharding key of a row has more digits than its column",
                        .hint = "Round it first: where the row belongs depends on it."});
  }
  return to_key_owner(row);
}

Status CopySplitter::to_key_owner(std::string_view row) {
  const auto shardlet = mapping_->find(key_);
  if (!shardlet) {
    return with_line({.sqlstate = std::string(sqlstate::kNoShardlet),
                      .message = "no shardlet of map \"" + plan_.map + "\" holds the key " +
                                 shardmap::describe_key(mapping_->key_types(), key_)});
  }
  switch (shardlet->state()) {
    case ShardletState::kOnline: break;
    case ShardletState::kHeld:
      return with_line({.sqlstate = std::string(sqlstate::kSerializationFailure),
                        .message = "shardlet " + std::string(shardlet->name()) + " is being handed over",
                        .hint = "Retry the transaction."});
    default:
      return with_line({.sqlstate = std::string(sqlstate::kShardletClosed),
                        .message = "shardlet " + std::string(shardlet->name()) + " is " +
                                   std::string(shardmap::name_of(shardlet->state()))});
  }
  const std::size_t output = shardlet->shard() < output_of_.size() ? output_of_[shardlet->shard()] : SIZE_MAX;
  if (output == SIZE_MAX) {
    return with_line({.sqlstate = std::string(sqlstate::kSerializationFailure),
                      .message = "the shard map has changed under the COPY",
                      .hint = "Retry the transaction."});
  }
  outputs_[output] += row;
  ++rows_;
  return {};
}

}  // namespace kintsugi::executor
