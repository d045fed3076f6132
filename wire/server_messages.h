// What a server sends: read from the shards, and written to the clients.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/frame.h"

namespace kintsugi::wire {

namespace server {
inline constexpr char kAuthentication = 'R', kBackendKeyData = 'K', kBindComplete = '2', kCloseComplete = '3',
                      kCommandComplete = 'C', kCopyBoth = 'W', kCopyData = 'd', kCopyDone = 'c', kCopyIn = 'G',
                      kCopyOut = 'H', kDataRow = 'D', kEmptyQuery = 'I', kError = 'E', kFunctionResult = 'V',
                      kNegotiateVersion = 'v', kNoData = 'n', kNotice = 'N', kNotification = 'A',
                      kParameterDescription = 't', kParameterStatus = 'S', kParseComplete = '1',
                      kPortalSuspended = 's', kReadyForQuery = 'Z', kRowDescription = 'T';
[[nodiscard]] bool is_known(char type);
// 08P01: a shard sent something that is no message of protocol 3.0.
[[nodiscard]] Error unknown_type(char type);
}  // namespace server

enum class TransactionStatus : char { kIdle = 'I', kInTransaction = 'T', kFailed = 'E' };

// ---- authentication ----
enum class AuthKind : std::uint32_t {
  kOk = 0,
  kKerberos = 2,
  kCleartext = 3,
  kMd5 = 5,
  kGss = 7,
  kGssContinue = 8,
  kSspi = 9,
  kSasl = 10,
  kSaslContinue = 11,
  kSaslFinal = 12
};
struct Authentication {
  AuthKind kind = AuthKind::kOk;
  std::string_view data;  // md5: the 4 bytes of salt; SASL: the mechanisms or the SCRAM message
};
Result<Authentication> read_authentication(std::string_view body);
Result<std::vector<std::string_view>> read_sasl_mechanisms(std::string_view data);

// ---- errors and notices ----
struct ErrorReport {
  std::string severity = "ERROR";  // ERROR, FATAL, PANIC; WARNING, NOTICE, ... : the untranslated one (field V)
  std::string sqlstate = "XX000";
  std::string message, detail, hint, context;
  int position = 0;
  std::string routine;  // written only: where PostgreSQL raises it; a driver may go by that
};
// Reads the fields that we look at (of an ErrorResponse or a NoticeResponse); the rest passes as bytes.
Result<ErrorReport> read_error(std::string_view body);
void append_error(std::string& out, const ErrorReport& report);
void append_error(std::string& out, std::string_view severity, const Error& error,
                  std::string_view routine = {});
void append_notice(std::string& out, const ErrorReport& report);
// The same ErrorResponse or NoticeResponse with `line` added to its context field (W), or a new one. A frame
// that is not well formed is passed on as it came.
void append_error_with_context(std::string& out, const Frame& frame, std::string_view line);

// ---- the others that we look into ----
struct ParameterStatus {
  std::string_view name, value;
};
struct BackendKey {
  std::uint32_t pid = 0, secret = 0;
};
struct Notification {
  std::uint32_t pid = 0;
  std::string_view channel, payload;
};
struct Column {
  std::string_view name;
  std::uint32_t table_oid = 0;
  std::int16_t table_column = 0;
  std::uint32_t type_oid = 0;
  std::int16_t type_size = 0;
  std::int32_t type_modifier = -1;
  std::int16_t format = 0;  // 0 text, 1 binary
};
struct CopyStart {
  bool binary = false;
  std::vector<std::int16_t> column_formats;
};
Result<ParameterStatus> read_parameter_status(std::string_view body);
Result<BackendKey> read_backend_key(std::string_view body);
Result<TransactionStatus> read_ready_for_query(std::string_view body);
Result<std::string_view> read_command_complete(std::string_view body);
Result<Notification> read_notification(std::string_view body);
Result<std::vector<Column>> read_row_description(std::string_view body);
Result<std::vector<std::optional<std::string_view>>> read_data_row(std::string_view body);
Result<CopyStart> read_copy_start(std::string_view body);  // CopyIn-, CopyOut- and CopyBothResponse
Result<std::vector<std::uint32_t>> read_parameter_description(std::string_view body);
struct NegotiateVersion {
  std::uint32_t newest_minor = 0;
  std::vector<std::string_view> unknown_options;
};
Result<NegotiateVersion> read_negotiate_version(std::string_view body);

// ---- written ----
void append_authentication(std::string& out, AuthKind kind, std::string_view data = {});
void append_sasl_mechanisms(std::string& out, std::span<const std::string_view> mechanisms);
void append_parameter_status(std::string& out, std::string_view name, std::string_view value);
void append_backend_key(std::string& out, BackendKey key);
// NegotiateProtocolVersion. What travels is the whole version, 3 << 16 | minor, as PostgreSQL sends and libpq
// reads it, though the manual speaks of the minor one only.
void append_negotiate_version(std::string& out, std::uint32_t newest_minor,
                              std::span<const std::string_view> unknown_options);
void append_ready_for_query(std::string& out, TransactionStatus status);
void append_command_complete(std::string& out, std::string_view tag);
void append_row_description(std::string& out, std::span<const Column> columns);
void append_parameter_description(std::string& out, std::span<const std::uint32_t> type_oids);
void append_notification(std::string& out, const Notification& notification);
// `type` is server::kCopyIn, kCopyOut or kCopyBoth. CopyData and CopyDone are those of client_messages.h.
void append_copy_start(std::string& out, char type, const CopyStart& start);
void append_data_row(std::string& out, std::span<const std::optional<std::string_view>> values);
void append_empty(std::string& out, char type);  // ParseComplete, BindComplete, NoData, ... : no body

}  // namespace kintsugi::wire
