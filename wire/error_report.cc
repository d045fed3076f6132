// ErrorResponse and NoticeResponse: a list of (field byte, string), closed by a zero byte.
#include <charconv>

#include "wire/server_messages.h"

namespace kintsugi::wire {

namespace {
// The next field of a report; a zero byte for its end. Fails with the reader.
struct Field {
  char type = 0;
  std::string_view text;
};
Field next_field(BodyReader& in) {
  Field field;
  field.type = static_cast<char>(in.u8());
  if (field.type != 0) field.text = in.cstring();
  if (!in.ok()) field.type = 0;
  return field;
}

int position_of(std::string_view digits) {
  int position = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), position);
  return error == std::errc() && end == digits.data() + digits.size() && position > 0 ? position : 0;
}

void append_report(std::string& out, char type, const ErrorReport& report) {
  FrameWriter frame(out, type);
  auto field = [&](char name, std::string_view text) {
    frame.u8(static_cast<std::uint8_t>(name)).cstring(text);
  };
  field('S', report.severity);
  field('V', report.severity);
  field('C', report.sqlstate);
  field('M', report.message);
  if (!report.detail.empty()) field('D', report.detail);
  if (!report.hint.empty()) field('H', report.hint);
  if (report.position > 0) field('P', std::to_string(report.position));
  if (!report.context.empty()) field('W', report.context);
  if (!report.routine.empty()) field('R', report.routine);
  frame.u8(0);
}
}  // namespace

Result<ErrorReport> read_error(std::string_view body) {
  BodyReader in(body);
  ErrorReport report;
  bool has_untranslated = false;
  for (Field field = next_field(in); field.type != 0; field = next_field(in)) {
    switch (field.type) {
      case 'S':  // translated, and all there is before PostgreSQL 9.6
        if (!has_untranslated) report.severity = field.text;
        break;
      case 'V':
        report.severity = field.text;
        has_untranslated = true;
        break;
      case 'C': report.sqlstate = field.text; break;
      case 'M': report.message = field.text; break;
      case 'D': report.detail = field.text; break;
      case 'H': report.hint = field.text; break;
      case 'W': report.context = field.text; break;
      case 'P': report.position = position_of(field.text); break;
      default: break;
    }
  }
  KG_CHECK(in.finish());
  return report;
}

void append_error(std::string& out, const ErrorReport& report) {
  append_report(out, server::kError, report);
}

void append_notice(std::string& out, const ErrorReport& report) {
  append_report(out, server::kNotice, report);
}

void append_error(std::string& out, std::string_view severity, const Error& error, std::string_view routine) {
  append_error(out, ErrorReport{.severity = std::string(severity),
                                .sqlstate = error.sqlstate,
                                .message = error.message,
                                .detail = error.detail,
                                .hint = error.hint,
                                .context = {},
                                .position = error.position,
                                .routine = std::string(routine)});
}

void append_error_with_context(std::string& out, const Frame& frame, std::string_view line) {
  if (!read_error(frame.body)) {
    out.append(frame.bytes());
    return;
  }
  FrameWriter writer(out, frame.type);
  bool added = false;
  BodyReader in(frame.body);
  for (Field field = next_field(in); field.type != 0; field = next_field(in)) {
    writer.u8(static_cast<std::uint8_t>(field.type));
    if (field.type == 'W' && !added) {
      writer.bytes(field.text).bytes("\n");
      writer.cstring(line);
      added = true;
    } else {
      writer.cstring(field.text);
    }
  }
  if (!added) writer.u8('W').cstring(line);
  writer.u8(0);
}

}  // namespace kintsugi::wire
