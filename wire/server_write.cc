#include "base/invariant.h"
#include "wire/server_messages.h"

namespace kintsugi::wire {

void append_authentication(std::string& out, AuthKind kind, std::string_view data) {
  FrameWriter(out, server::kAuthentication).u32(static_cast<std::uint32_t>(kind)).bytes(data);
}

void append_sasl_mechanisms(std::string& out, std::span<const std::string_view> mechanisms) {
  FrameWriter frame(out, server::kAuthentication);
  frame.u32(static_cast<std::uint32_t>(AuthKind::kSasl));
  for (std::string_view name : mechanisms) frame.cstring(name);
  frame.u8(0);
}

void append_parameter_status(std::string& out, std::string_view name, std::string_view value) {
  FrameWriter(out, server::kParameterStatus).cstring(name).cstring(value);
}

void append_backend_key(std::string& out, BackendKey key) {
  FrameWriter(out, server::kBackendKeyData).u32(key.pid).u32(key.secret);
}

void append_negotiate_version(std::string& out, std::uint32_t newest_minor,
                              std::span<const std::string_view> unknown_options) {
  FrameWriter frame(out, server::kNegotiateVersion);
  frame.u32(std::uint32_t{3} << 16 | newest_minor).u32(static_cast<std::uint32_t>(unknown_options.size()));
  for (std::string_view option : unknown_options) frame.cstring(option);
}

void append_ready_for_query(std::string& out, TransactionStatus status) {
  FrameWriter(out, server::kReadyForQuery).u8(static_cast<std::uint8_t>(status));
}

void append_command_complete(std::string& out, std::string_view tag) {
  FrameWriter(out, server::kCommandComplete).cstring(tag);
}

namespace {
std::uint16_t checked_count(std::size_t count) {
  INVARIANT(count <= UINT16_MAX, "a message that we write counts at most 65535 things");
  return static_cast<std::uint16_t>(count);
}
}  // namespace

void append_row_description(std::string& out, std::span<const Column> columns) {
  FrameWriter frame(out, server::kRowDescription);
  frame.u16(checked_count(columns.size()));
  for (const Column& column : columns)
    frame.cstring(column.name)
        .u32(column.table_oid)
        .i16(column.table_column)
        .u32(column.type_oid)
        .i16(column.type_size)
        .i32(column.type_modifier)
        .i16(column.format);
}

void append_parameter_description(std::string& out, std::span<const std::uint32_t> type_oids) {
  FrameWriter frame(out, server::kParameterDescription);
  frame.u16(checked_count(type_oids.size()));
  for (std::uint32_t oid : type_oids) frame.u32(oid);
}

void append_notification(std::string& out, const Notification& notification) {
  FrameWriter(out, server::kNotification)
      .u32(notification.pid)
      .cstring(notification.channel)
      .cstring(notification.payload);
}

void append_copy_start(std::string& out, char type, const CopyStart& start) {
  FrameWriter frame(out, type);
  frame.u8(start.binary).u16(checked_count(start.column_formats.size()));
  for (std::int16_t format : start.column_formats) frame.i16(format);
}

void append_data_row(std::string& out, std::span<const std::optional<std::string_view>> values) {
  FrameWriter frame(out, server::kDataRow);
  frame.u16(checked_count(values.size()));
  for (const auto& value : values) {
    if (value) {
      frame.u32(static_cast<std::uint32_t>(value->size())).bytes(*value);
    } else {
      frame.i32(-1);
    }
  }
}

void append_empty(std::string& out, char type) {
  FrameWriter(out, type);
}

}  // namespace kintsugi::wire
