#include "wire/server_messages.h"

namespace kintsugi::wire {

namespace server {
namespace {
constexpr std::string_view kTypes = "RK23CWdcGHDIEVvnNAtS1sZT";
}

bool is_known(char type) {
  return type != 0 && kTypes.find(type) != std::string_view::npos;
}

Error unknown_type(char type) {
  return frame_error::violation("invalid backend message type " +
                                std::to_string(static_cast<unsigned char>(type)))
      .value();
}
}  // namespace server

Result<Authentication> read_authentication(std::string_view body) {
  BodyReader in(body);
  Authentication auth{static_cast<AuthKind>(in.u32()), in.rest()};
  KG_CHECK(in.finish());
  switch (auth.kind) {
    case AuthKind::kOk:
    case AuthKind::kKerberos:
    case AuthKind::kCleartext:
    case AuthKind::kGss:
    case AuthKind::kSspi:
      if (!auth.data.empty()) return frame_error::invalid_format();
      return auth;
    case AuthKind::kMd5:
      if (auth.data.size() != 4) return frame_error::invalid_format();
      return auth;
    case AuthKind::kGssContinue:
    case AuthKind::kSasl:
    case AuthKind::kSaslContinue:
    case AuthKind::kSaslFinal: return auth;
  }
  return frame_error::violation("authentication method " +
                                std::to_string(static_cast<std::uint32_t>(auth.kind)) + " not supported");
}

Result<std::vector<std::string_view>> read_sasl_mechanisms(std::string_view data) {
  BodyReader in(data);
  std::vector<std::string_view> mechanisms;
  for (std::string_view name = in.cstring(); !name.empty(); name = in.cstring()) mechanisms.push_back(name);
  KG_CHECK(in.finish());
  return mechanisms;
}

Result<ParameterStatus> read_parameter_status(std::string_view body) {
  BodyReader in(body);
  ParameterStatus status{in.cstring(), in.cstring()};
  KG_CHECK(in.finish());
  return status;
}

Result<BackendKey> read_backend_key(std::string_view body) {
  BodyReader in(body);
  BackendKey key{in.u32(), in.u32()};
  KG_CHECK(in.finish());
  return key;
}

Result<TransactionStatus> read_ready_for_query(std::string_view body) {
  BodyReader in(body);
  auto status = static_cast<char>(in.u8());
  KG_CHECK(in.finish());
  if (status != 'I' && status != 'T' && status != 'E') return frame_error::invalid_format();
  return static_cast<TransactionStatus>(status);
}

Result<std::string_view> read_command_complete(std::string_view body) {
  BodyReader in(body);
  std::string_view tag = in.cstring();
  KG_CHECK(in.finish());
  return tag;
}

Result<Notification> read_notification(std::string_view body) {
  BodyReader in(body);
  Notification notification{in.u32(), in.cstring(), in.cstring()};
  KG_CHECK(in.finish());
  return notification;
}

namespace {
// A count of things that take at least `each` bytes: zero, and the reader failed, when they cannot be there.
std::size_t read_count(BodyReader& in, std::size_t each) {
  std::size_t count = in.u16();
  if (in.ok() && in.left() < count * each) in.fail_short();
  return in.ok() ? count : 0;
}
}  // namespace

Result<std::vector<Column>> read_row_description(std::string_view body) {
  BodyReader in(body);
  std::size_t count = read_count(in, 19);
  std::vector<Column> columns;
  columns.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i)
    columns.push_back(Column{in.cstring(), in.u32(), in.i16(), in.u32(), in.i16(), in.i32(), in.i16()});
  KG_CHECK(in.finish());
  return columns;
}

Result<std::vector<std::optional<std::string_view>>> read_data_row(std::string_view body) {
  BodyReader in(body);
  std::size_t count = read_count(in, 4);
  std::vector<std::optional<std::string_view>> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    std::int32_t length = in.i32();
    if (length < -1) in.fail_short();
    if (length < 0) {
      values.emplace_back();
    } else {
      values.emplace_back(in.bytes(static_cast<std::size_t>(length)));
    }
  }
  KG_CHECK(in.finish());
  return values;
}

Result<CopyStart> read_copy_start(std::string_view body) {
  BodyReader in(body);
  std::uint8_t format = in.u8();
  std::size_t count = read_count(in, 2);
  CopyStart start{format == 1, {}};
  start.column_formats.reserve(count);
  for (std::size_t i = 0; i < count; ++i) start.column_formats.push_back(in.i16());
  KG_CHECK(in.finish());
  if (format > 1) return frame_error::invalid_format();
  return start;
}

Result<std::vector<std::uint32_t>> read_parameter_description(std::string_view body) {
  BodyReader in(body);
  std::size_t count = read_count(in, 4);
  std::vector<std::uint32_t> oids;
  oids.reserve(count);
  for (std::size_t i = 0; i < count; ++i) oids.push_back(in.u32());
  KG_CHECK(in.finish());
  return oids;
}

Result<NegotiateVersion> read_negotiate_version(std::string_view body) {
  BodyReader in(body);
  NegotiateVersion negotiate;
  negotiate.newest_minor = in.u32() & 0xffff;
  std::size_t count = in.u32();
  if (in.ok() && in.left() < count) in.fail_short();
  for (std::size_t i = 0; i < count && in.ok(); ++i) negotiate.unknown_options.push_back(in.cstring());
  KG_CHECK(in.finish());
  return negotiate;
}

}  // namespace kintsugi::wire
