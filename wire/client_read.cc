#include <algorithm>
#include <array>

#include "wire/client_messages.h"

namespace kintsugi::wire {

namespace client {
namespace {
constexpr std::string_view kTypes = "BCcdfDEHFPpQSX";
constexpr std::string_view kShortTypes = "CcfDEHSX";
constexpr std::uint64_t kShortBody = 10000;         // as PostgreSQL: PQ_SMALL_MESSAGE_LIMIT
constexpr std::uint64_t kLongestBody = 0x3fffffff;  // PostgreSQL's own: beyond it nothing was meant

constexpr std::array<bool, 256> table_of(std::string_view types) {
  std::array<bool, 256> table{};
  for (const char type : types) table[static_cast<unsigned char>(type)] = true;
  return table;
}
constexpr auto kIsKnown = table_of(kTypes);
constexpr auto kIsShort = table_of(kShortTypes);
}  // namespace

bool is_known(char type) {
  return kIsKnown[static_cast<unsigned char>(type)];
}

Error unknown_type(char type) {
  return frame_error::violation("invalid frontend message type " +
                                std::to_string(static_cast<unsigned char>(type)))
      .value();
}

std::uint64_t max_body(char type, std::uint64_t max_message) {
  return kIsShort[static_cast<unsigned char>(type)] ? std::min(kShortBody, max_message) : max_message;
}

Result<std::optional<FrameHead>> peek(std::string_view bytes, std::uint64_t max_message) {
  if (!bytes.empty() && !is_known(bytes[0])) return fail(unknown_type(bytes[0]));
  auto head = peek_head(bytes, bytes.empty() ? max_message : max_body(bytes[0], max_message));
  if (head || kIsShort[static_cast<unsigned char>(bytes[0])]) return head;
  const std::uint32_t length = load_u32(bytes.data() + 1);
  if (length < 4 || length - 4 > kLongestBody) return head;
  return fail(sqlstate::kLimitReached,
              "a message of " + std::to_string(length - 4) + " bytes is longer than the " +
                  std::to_string(max_message) + " that are allowed",
              "Send less at once, or raise limits.max_message.");
}
}  // namespace client

Result<std::string_view> read_query(std::string_view body) {
  BodyReader in(body);
  std::string_view text = in.cstring();
  KG_CHECK(in.finish());
  return text;
}

Result<ParseMessage> read_parse(std::string_view body) {
  BodyReader in(body);
  ParseMessage parse;
  parse.statement = in.cstring();
  parse.text = in.cstring();
  parse.type_oids = in.bytes(std::size_t{4} * in.u16());
  KG_CHECK(in.finish());
  return parse;
}

Result<BindMessage> read_bind(std::string_view body) {
  BodyReader in(body);
  BindMessage bind;
  bind.portal = in.cstring();
  bind.statement = in.cstring();
  bind.tail = in.rest();
  // The shortest tail is three counts of zero. What they count is checked by who reads them.
  if (in.ok() && bind.tail.size() < 6) in.fail_short();
  KG_CHECK(in.finish());
  return bind;
}

namespace {
// The head of a Bind's tail: how the parameters are encoded and how many there are. The values follow in `in`.
struct BindHead {
  std::string_view formats;
  std::size_t format_count = 0, value_count = 0;

  [[nodiscard]] std::int16_t format(std::size_t i) const {
    if (format_count == 0) return 0;
    return static_cast<std::int16_t>(load_u16(formats.data() + 2 * (format_count == 1 ? 0 : i)));
  }
};

Result<BindHead> read_bind_head(BodyReader& in) {
  BindHead head;
  head.format_count = in.u16();
  head.formats = in.bytes(2 * head.format_count);
  head.value_count = in.u16();
  // A value takes four bytes at least: a count that cannot be true is refused before it is believed.
  if (in.ok() && in.left() < 4 * head.value_count) in.fail_short();
  if (!in.ok()) return tl::unexpected(in.finish().error());
  if (head.format_count > 1 && head.format_count != head.value_count)
    return frame_error::violation("bind message has " + std::to_string(head.format_count) +
                                  " parameter formats but " + std::to_string(head.value_count) + " parameters");
  return head;
}

Result<bool> is_binary(std::int16_t format) {
  if (format != 0 && format != 1)
    return fail(sqlstate::kInvalidParameter, "unsupported format code: " + std::to_string(format));
  return format == 1;
}

BindValues::Value read_value(BodyReader& in) {
  BindValues::Value value;
  std::int32_t length = in.i32();
  if (length == -1) {
    value.is_null = true;
  } else if (length < 0) {
    in.fail_short();
  } else {
    value.bytes = in.bytes(static_cast<std::size_t>(length));
  }
  return value;
}
}  // namespace

Result<BindValues> read_bind_values(const BindMessage& bind) {
  BodyReader in(bind.tail);
  KG_TRY(auto head, read_bind_head(in));
  BindValues result;
  result.values.reserve(head.value_count);
  for (std::size_t i = 0; i < head.value_count; ++i) {
    result.values.push_back(read_value(in));
    if (!in.ok()) break;
    KG_TRY(result.values.back().binary, is_binary(head.format(i)));
  }
  std::size_t result_count = in.u16();
  if (in.ok() && in.left() < 2 * result_count) in.fail_short();
  if (!in.ok()) return tl::unexpected(in.finish().error());
  result.result_formats.reserve(result_count);
  for (std::size_t i = 0; i < result_count; ++i) {
    std::int16_t format = in.i16();
    KG_CHECK(is_binary(format));
    result.result_formats.push_back(format);
  }
  KG_CHECK(in.finish());
  return result;
}

Result<BindValues::Value> read_bind_value(const BindMessage& bind, std::size_t index) {
  BodyReader in(bind.tail);
  KG_TRY(auto head, read_bind_head(in));
  if (index >= head.value_count)
    return frame_error::violation("bind message supplies " + std::to_string(head.value_count) +
                                  " parameters, but the statement needs parameter $" +
                                  std::to_string(index + 1));
  BindValues::Value value;
  for (std::size_t i = 0; i <= index && in.ok(); ++i) value = read_value(in);
  if (!in.ok()) return tl::unexpected(in.finish().error());
  KG_TRY(value.binary, is_binary(head.format(index)));
  return value;
}

namespace {
struct Target {
  char kind;
  std::string_view name;
};

Result<Target> read_target(std::string_view body, std::string_view message) {
  BodyReader in(body);
  Target target{static_cast<char>(in.u8()), in.cstring()};
  KG_CHECK(in.finish());
  if (target.kind != 'S' && target.kind != 'P')
    return frame_error::violation("invalid " + std::string(message) + " message subtype " +
                                  std::to_string(static_cast<unsigned char>(target.kind)));
  return target;
}
}  // namespace

Result<DescribeMessage> read_describe(std::string_view body) {
  KG_TRY(auto target, read_target(body, "DESCRIBE"));
  return DescribeMessage{target.kind, target.name};
}

Result<CloseMessage> read_close(std::string_view body) {
  KG_TRY(auto target, read_target(body, "CLOSE"));
  return CloseMessage{target.kind, target.name};
}

Result<ExecuteMessage> read_execute(std::string_view body) {
  BodyReader in(body);
  ExecuteMessage execute{in.cstring(), in.i32()};
  KG_CHECK(in.finish());
  return execute;
}

Result<std::string_view> read_copy_fail(std::string_view body) {
  return read_query(body);
}

Result<std::string_view> read_password(std::string_view body) {
  if (body.size() > kMaxPasswordPacket) return frame_error::invalid_length();
  BodyReader in(body);
  std::string_view password = in.cstring();
  if (!in.done()) return frame_error::violation("invalid password packet size");
  return password;
}

Result<SaslInitialResponse> read_sasl_initial(std::string_view body) {
  if (body.size() > kMaxSaslMessage) return frame_error::invalid_length();
  BodyReader in(body);
  SaslInitialResponse response;
  response.mechanism = in.cstring();
  std::int32_t length = in.i32();
  if (length < -1) in.fail_short();
  if (length >= 0) response.data = in.bytes(static_cast<std::size_t>(length));
  KG_CHECK(in.finish());
  return response;
}

}  // namespace kintsugi::wire
