// What a client sends: parsed into views over its bytes, and written (the router is a client of the shards).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wire/frame.h"

namespace kintsugi::wire {

// The type bytes of a client's messages.
namespace client {
inline constexpr char kBind = 'B', kClose = 'C', kCopyData = 'd', kCopyDone = 'c', kCopyFail = 'f',
                      kDescribe = 'D', kExecute = 'E', kFlush = 'H', kFunctionCall = 'F', kParse = 'P',
                      kPassword = 'p', kQuery = 'Q', kSync = 'S', kTerminate = 'X';
[[nodiscard]] bool is_known(char type);
// 08P01, "invalid frontend message type 33": what PostgreSQL answers to any other.
[[nodiscard]] Error unknown_type(char type);
// PostgreSQL's own bound for the bodies that have no business being long (Sync, Describe, Execute, ...: 10000),
// else `max_message`.
[[nodiscard]] std::uint64_t max_body(char type, std::uint64_t max_message);
// peek_head for a client's bytes after its startup, as PostgreSQL reads them: an unknown type is refused from
// its one byte, a length (which differs by type, see max_body) from the head. Nothing is to be waited for or
// buffered before this has said yes.
[[nodiscard]] Result<std::optional<FrameHead>> peek(std::string_view bytes, std::uint64_t max_message);
}  // namespace client

// ---- before a type byte exists: int32 length, int32 code ----
inline constexpr std::uint32_t kMaxInitialPacket = 10000;  // as PostgreSQL: MAX_STARTUP_PACKET_LENGTH

struct SslRequest {};
struct GssEncRequest {};
struct CancelRequest {
  std::uint32_t pid = 0;
  std::uint32_t secret = 0;
};
struct StartupMessage {
  std::uint16_t major = 3;
  std::uint16_t minor = 0;
  std::vector<std::pair<std::string, std::string>> parameters;  // in the client's order; names as sent
  // Empty when absent. A name sent twice counts as sent the last time, as in PostgreSQL.
  [[nodiscard]] std::string_view get(std::string_view name) const;
  // 28000 when there is none, in PostgreSQL's words.
  [[nodiscard]] Result<std::string_view> user() const;
  // The user's name when none is given, as in PostgreSQL.
  [[nodiscard]] std::string_view database() const;
  // The names that begin with "_pq_.": protocol options. We know none, so all of them go into
  // append_negotiate_version, which has to be sent when there is one or `minor` is above 0.
  [[nodiscard]] std::vector<std::string_view> protocol_options() const;
};
using InitialPacket = std::variant<SslRequest, GssEncRequest, CancelRequest, StartupMessage>;

// The packet at the head of `bytes` and its size; nothing while bytes are missing. The packet owns its strings.
// 08P01 when malformed; a version that is not 3.x is an error with SQLSTATE 0A000 and PostgreSQL's words.
struct InitialPacketRead {
  InitialPacket packet;
  std::size_t size = 0;
};
Result<std::optional<InitialPacketRead>> read_initial_packet(std::string_view bytes);

// ---- the messages of a session; views live as long as the frame's buffer ----
struct ParseMessage {
  std::string_view statement;
  std::string_view text;
  std::string_view type_oids;  // raw: 4 bytes each
  [[nodiscard]] std::size_t type_count() const { return type_oids.size() / 4; }
  [[nodiscard]] std::uint32_t type_oid(std::size_t i) const { return load_u32(type_oids.data() + 4 * i); }
};
struct BindMessage {
  std::string_view portal;
  std::string_view statement;
  std::string_view tail;  // everything after the statement's name, as it came: formats, values, result formats
};
// The parameters of a Bind, for the planner. Checked against the message's own lengths.
struct BindValues {
  struct Value {
    bool is_null = false;
    bool binary = false;
    std::string_view bytes;
  };
  std::vector<Value> values;
  std::vector<std::int16_t> result_formats;
};

// What a client answers when asked for its password: all three have type byte 'p'; the server knows what it
// asked for.
struct SaslInitialResponse {
  std::string_view mechanism;
  std::optional<std::string_view> data;
};
inline constexpr std::uint32_t kMaxPasswordPacket = 65535;  // as PostgreSQL: PG_MAX_AUTH_TOKEN_LENGTH
inline constexpr std::uint32_t kMaxSaslMessage = 1024;      // as PostgreSQL: PG_MAX_SASL_MESSAGE_LENGTH

struct DescribeMessage {
  char kind = 'S';  // S statement, P portal
  std::string_view name;
};
struct CloseMessage {
  char kind = 'S';
  std::string_view name;
};
struct ExecuteMessage {
  std::string_view portal;
  std::int32_t max_rows = 0;
};

// Each fails with 08P01 when the body is not exactly such a message.
Result<std::string_view> read_query(std::string_view body);
Result<ParseMessage> read_parse(std::string_view body);
Result<BindMessage> read_bind(std::string_view body);
// Also 22023 for a format code that is neither text nor binary.
Result<BindValues> read_bind_values(const BindMessage& bind);
// One parameter of a Bind without an allocation: for the routing key in $n (index n - 1). 08P01 when the
// message is malformed up to and including that value, or has no such parameter.
Result<BindValues::Value> read_bind_value(const BindMessage& bind, std::size_t index);
Result<DescribeMessage> read_describe(std::string_view body);
Result<CloseMessage> read_close(std::string_view body);
Result<ExecuteMessage> read_execute(std::string_view body);
Result<std::string_view> read_copy_fail(std::string_view body);
Result<std::string_view> read_password(std::string_view body);
Result<SaslInitialResponse> read_sasl_initial(std::string_view body);

// ---- written ----
void append_startup(std::string& out, std::span<const std::pair<std::string, std::string>> parameters);
void append_ssl_request(std::string& out);
void append_cancel_request(std::string& out, CancelRequest request);
void append_query(std::string& out, std::string_view text);
void append_parse(std::string& out, std::string_view statement, std::string_view text,
                  std::string_view type_oids);
void append_bind(std::string& out, std::string_view portal, std::string_view statement, std::string_view tail);
// The same with the parameters and result formats written anew: at most 65535 of each.
void append_bind(std::string& out, std::string_view portal, std::string_view statement,
                 const BindValues& values);
void append_describe(std::string& out, char kind, std::string_view name);
void append_close(std::string& out, char kind, std::string_view name);
void append_execute(std::string& out, std::string_view portal, std::int32_t max_rows);
void append_sync(std::string& out);
void append_flush(std::string& out);
void append_terminate(std::string& out);
void append_copy_data(std::string& out, std::string_view bytes);
void append_copy_done(std::string& out);
void append_copy_fail(std::string& out, std::string_view reason);
void append_password(std::string& out, std::string_view password);
void append_sasl_initial(std::string& out, std::string_view mechanism, std::string_view data);
void append_sasl_response(std::string& out, std::string_view data);

}  // namespace kintsugi::wire
