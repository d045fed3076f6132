#include "base/invariant.h"
#include "wire/client_messages.h"

namespace kintsugi::wire {

void append_query(std::string& out, std::string_view text) {
  FrameWriter(out, client::kQuery).cstring(text);
}

void append_parse(std::string& out, std::string_view statement, std::string_view text,
                  std::string_view type_oids) {
  INVARIANT(type_oids.size() % 4 == 0 && type_oids.size() / 4 <= UINT16_MAX,
            "a Parse has at most 65535 type oids");
  FrameWriter(out, client::kParse)
      .cstring(statement)
      .cstring(text)
      .u16(static_cast<std::uint16_t>(type_oids.size() / 4))
      .bytes(type_oids);
}

void append_bind(std::string& out, std::string_view portal, std::string_view statement, std::string_view tail) {
  FrameWriter(out, client::kBind).cstring(portal).cstring(statement).bytes(tail);
}

void append_bind(std::string& out, std::string_view portal, std::string_view statement,
                 const BindValues& bind) {
  INVARIANT(bind.values.size() <= UINT16_MAX && bind.result_formats.size() <= UINT16_MAX,
            "a Bind has at most 65535 parameters and result formats");
  FrameWriter frame(out, client::kBind);
  frame.cstring(portal).cstring(statement);
  bool any_binary = false;
  for (const auto& value : bind.values) any_binary |= value.binary;
  frame.u16(any_binary ? static_cast<std::uint16_t>(bind.values.size()) : 0);
  if (any_binary)
    for (const auto& value : bind.values) frame.u16(value.binary);
  frame.u16(static_cast<std::uint16_t>(bind.values.size()));
  for (const auto& value : bind.values) {
    if (value.is_null) {
      frame.i32(-1);
    } else {
      frame.u32(static_cast<std::uint32_t>(value.bytes.size())).bytes(value.bytes);
    }
  }
  frame.u16(static_cast<std::uint16_t>(bind.result_formats.size()));
  for (std::int16_t format : bind.result_formats) frame.i16(format);
}

namespace {
void append_target(std::string& out, char type, char kind, std::string_view name) {
  INVARIANT(kind == 'S' || kind == 'P', "Describe and Close name a statement or a portal");
  FrameWriter(out, type).u8(static_cast<std::uint8_t>(kind)).cstring(name);
}
}  // namespace

void append_describe(std::string& out, char kind, std::string_view name) {
  append_target(out, client::kDescribe, kind, name);
}
void append_close(std::string& out, char kind, std::string_view name) {
  append_target(out, client::kClose, kind, name);
}

void append_execute(std::string& out, std::string_view portal, std::int32_t max_rows) {
  FrameWriter(out, client::kExecute).cstring(portal).i32(max_rows);
}

void append_sync(std::string& out) {
  FrameWriter(out, client::kSync);
}
void append_flush(std::string& out) {
  FrameWriter(out, client::kFlush);
}
void append_terminate(std::string& out) {
  FrameWriter(out, client::kTerminate);
}

void append_copy_data(std::string& out, std::string_view bytes) {
  FrameWriter(out, client::kCopyData).bytes(bytes);
}
void append_copy_done(std::string& out) {
  FrameWriter(out, client::kCopyDone);
}
void append_copy_fail(std::string& out, std::string_view reason) {
  FrameWriter(out, client::kCopyFail).cstring(reason);
}

void append_password(std::string& out, std::string_view password) {
  FrameWriter(out, client::kPassword).cstring(password);
}
void append_sasl_initial(std::string& out, std::string_view mechanism, std::string_view data) {
  FrameWriter(out, client::kPassword)
      .cstring(mechanism)
      .u32(static_cast<std::uint32_t>(data.size()))
      .bytes(data);
}
void append_sasl_response(std::string& out, std::string_view data) {
  FrameWriter(out, client::kPassword).bytes(data);
}

}  // namespace kintsugi::wire
