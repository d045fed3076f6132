// What a client sends: parsed into views over its bytes, and written (the router is a client of the shards).
#pragma once

#include <span>
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
  [[nodiscard]] std::string_view get(std::string_view name) const;  // empty when absent
};
using InitialPacket = std::variant<SslRequest, GssEncRequest, CancelRequest, StartupMessage>;

// The packet at the head of `bytes` and its size; nothing while bytes are missing. 08P01 when malformed; a version
// that is not 3.x is an error with SQLSTATE 0A000 and PostgreSQL's words.
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
Result<BindValues> read_bind_values(const BindMessage& bind);
Result<DescribeMessage> read_describe(std::string_view body);
Result<CloseMessage> read_close(std::string_view body);
Result<ExecuteMessage> read_execute(std::string_view body);
Result<std::string_view> read_copy_fail(std::string_view body);

// ---- written ----
void append_startup(std::string& out, std::span<const std::pair<std::string, std::string>> parameters);
void append_ssl_request(std::string& out);
void append_cancel_request(std::string& out, CancelRequest request);
void append_query(std::string& out, std::string_view text);
void append_parse(std::string& out, std::string_view statement, std::string_view text, std::string_view type_oids);
void append_bind(std::string& out, std::string_view portal, std::string_view statement, std::string_view tail);
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
