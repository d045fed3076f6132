#include "tests/wire/every_message.h"

#include <functional>

namespace kintsugi::wire {

using namespace std::string_view_literals;

namespace {
std::string oids(std::initializer_list<std::uint32_t> list) {
  std::string raw(4 * list.size(), '\0');
  std::size_t at = 0;
  for (auto oid : list) store_u32(raw.data() + 4 * at++, oid);
  return raw;
}

Sample sample(std::string name, const std::function<void(std::string&)>& write, bool any_body = false) {
  Sample result{std::move(name), {}, any_body};
  write(result.frame);
  return result;
}

BindValues bind_values() {
  BindValues bind;
  bind.values.push_back({.is_null = false, .binary = false, .bytes = "42"});
  bind.values.push_back({.is_null = true, .binary = true, .bytes = {}});
  bind.values.push_back({.is_null = false, .binary = true, .bytes = "\0\0\0\x07"sv});
  bind.values.push_back({.is_null = false, .binary = false, .bytes = ""});
  bind.result_formats = {1, 0};
  return bind;
}
}  // namespace

std::vector<Sample> client_samples() {
  std::vector<Sample> all;
  auto add = [&](std::string name, const std::function<void(std::string&)>& write, bool any_body = false) {
    all.push_back(sample(std::move(name), write, any_body));
  };
  add("query", [](auto& out) { append_query(out, "select 1; select 'two'"); });
  add("query_empty", [](auto& out) { append_query(out, ""); });
  add("parse", [](auto& out) { append_parse(out, "s1", "select $1, $2", oids({23, 25})); });
  add("parse_plain", [](auto& out) { append_parse(out, "", "select 1", ""); });
  add("bind", [](auto& out) { append_bind(out, "p1", "s1", bind_values()); });
  add("bind_empty", [](auto& out) { append_bind(out, "", "", BindValues{}); });
  add("bind_one_format", [](auto& out) {
    append_bind(out, "", "s", "\0\x01\0\x01\0\x02\0\0\0\x02xy\xff\xff\xff\xff\0\x01\0\x01"sv);
  });
  add("describe_statement", [](auto& out) { append_describe(out, 'S', "s1"); });
  add("describe_portal", [](auto& out) { append_describe(out, 'P', ""); });
  add("close", [](auto& out) { append_close(out, 'S', "s1"); });
  add("execute", [](auto& out) { append_execute(out, "p1", 100); });
  add("sync", [](auto& out) { append_sync(out); });
  add("flush", [](auto& out) { append_flush(out); });
  add("terminate", [](auto& out) { append_terminate(out); });
  add(
      "copy_data", [](auto& out) { append_copy_data(out, "1\tone\n"); }, true);
  add("copy_done", [](auto& out) { append_copy_done(out); });
  add("copy_fail", [](auto& out) { append_copy_fail(out, "no more"); });
  add("password", [](auto& out) { append_password(out, "secret"); });
  add(
      "sasl_initial", [](auto& out) { append_sasl_initial(out, "SCRAM-SHA-256", "n,,n=,r=abc"); }, true);
  add(
      "sasl_response", [](auto& out) { append_sasl_response(out, "c=biws,r=abcdef,p=AAAA"); }, true);
  return all;
}

std::vector<Sample> server_samples() {
  std::vector<Sample> all;
  auto add = [&](std::string name, const std::function<void(std::string&)>& write, bool any_body = false) {
    all.push_back(sample(std::move(name), write, any_body));
  };
  add("auth_ok", [](auto& out) { append_authentication(out, AuthKind::kOk); });
  add("auth_md5", [](auto& out) { append_authentication(out, AuthKind::kMd5, "salt"); });
  add("auth_sasl", [](auto& out) {
    const std::string_view names[] = {"SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"};
    append_sasl_mechanisms(out, names);
  });
  add(
      "auth_continue", [](auto& out) { append_authentication(out, AuthKind::kSaslContinue, "r=abc"); }, true);
  add("key", [](auto& out) { append_backend_key(out, {77, 0xdeadbeef}); });
  add("status", [](auto& out) { append_parameter_status(out, "server_version", "15.8"); });
  add("ready", [](auto& out) { append_ready_for_query(out, TransactionStatus::kInTransaction); });
  add("complete", [](auto& out) { append_command_complete(out, "INSERT 0 1"); });
  add("notification", [](auto& out) { append_notification(out, {7, "channel", "payload"}); });
  add("row_description", [](auto& out) {
    const Column columns[] = {{"id", 16384, 1, 20, 8, -1, 1}, {"name", 16384, 2, 1043, -1, 24, 0}};
    append_row_description(out, columns);
  });
  add("row_description_empty", [](auto& out) { append_row_description(out, {}); });
  add("data_row", [](auto& out) {
    const std::optional<std::string_view> values[] = {"42", std::nullopt, ""};
    append_data_row(out, values);
  });
  add("parameter_description", [](auto& out) {
    const std::uint32_t types[] = {23, 25};
    append_parameter_description(out, types);
  });
  add("copy_in", [](auto& out) { append_copy_start(out, server::kCopyIn, {true, {1, 1}}); });
  add("copy_out", [](auto& out) { append_copy_start(out, server::kCopyOut, {false, {0}}); });
  add("negotiate", [](auto& out) {
    const std::string_view options[] = {"_pq_.one", "_pq_.two"};
    append_negotiate_version(out, 0, options);
  });
  ErrorReport report{"ERROR", "42P01", "relation \"t\" does not exist", "a detail", "a hint", "a context", 15};
  add("error", [&](auto& out) { append_error(out, report); });
  add("notice", [&](auto& out) { append_notice(out, {"WARNING", "01000", "careful", "", "", "", 0}); });
  for (char type : {server::kParseComplete, server::kBindComplete, server::kCloseComplete, server::kNoData,
                    server::kEmptyQuery, server::kPortalSuspended, server::kCopyDone})
    add(std::string("empty_") + type, [&](auto& out) { append_empty(out, type); });
  add(
      "copy_data", [](auto& out) { append_copy_data(out, "1\tone\n"); }, true);
  return all;
}

std::vector<Sample> initial_samples() {
  std::vector<Sample> all;
  all.push_back(sample("startup", [](auto& out) {
    const std::pair<std::string, std::string> parameters[] = {
        {"user", "app"}, {"database", "shop"}, {"_pq_.x", "1"}};
    append_startup(out, parameters);
  }));
  all.push_back(sample("ssl", [](auto& out) { append_ssl_request(out); }));
  all.push_back(sample("gss", [](auto& out) { out = "\0\0\0\x08\x04\xd2\x16\x30"sv; }));
  all.push_back(sample("cancel", [](auto& out) { append_cancel_request(out, {77, 0xdeadbeef}); }));
  return all;
}

namespace {
// For messages without a body.
Status expect_empty(std::string_view body) {
  return BodyReader(body).finish();
}

Result<std::string> rewrite_bind(std::string_view body) {
  KG_TRY(auto bind, read_bind(body));
  KG_TRY(auto values, read_bind_values(bind));
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    auto one = read_bind_value(bind, i);
    if (!one || one->is_null != values.values[i].is_null || one->binary != values.values[i].binary ||
        one->bytes != values.values[i].bytes)
      return fail(sqlstate::kInternal, "one value of a Bind is not what all of them are");
  }
  std::string anew, same;
  append_bind(anew, bind.portal, bind.statement, values);
  // Formats may be spelled in several ways; what they mean has to survive.
  auto again = read_bind(std::string_view(anew).substr(kHeaderBytes));
  if (!again || !read_bind_values(*again))
    return fail(sqlstate::kInternal, "a Bind that we wrote does not read");
  append_bind(same, bind.portal, bind.statement, bind.tail);
  return same;
}

Result<std::string> rewrite_password(std::string_view body) {
  // Which of the three it is, only the conversation says: all readers have to survive all bodies.
  std::string out;
  if (auto sasl = read_sasl_initial(body); sasl && sasl->data) {
    append_sasl_initial(out, sasl->mechanism, *sasl->data);
  } else if (auto password = read_password(body)) {
    append_password(out, *password);
  } else {
    append_sasl_response(out, body);
  }
  return out;
}
}  // namespace

Result<std::string> rewrite_client(char type, std::string_view body) {
  std::string out;
  switch (type) {
    case client::kBind: return rewrite_bind(body);
    case client::kPassword: return rewrite_password(body);
    case client::kQuery: {
      KG_TRY(auto text, read_query(body));
      append_query(out, text);
      return out;
    }
    case client::kParse: {
      KG_TRY(auto parse, read_parse(body));
      for (std::size_t i = 0; i < parse.type_count(); ++i) (void)parse.type_oid(i);
      append_parse(out, parse.statement, parse.text, parse.type_oids);
      return out;
    }
    case client::kDescribe: {
      KG_TRY(auto describe, read_describe(body));
      append_describe(out, describe.kind, describe.name);
      return out;
    }
    case client::kClose: {
      KG_TRY(auto close, read_close(body));
      append_close(out, close.kind, close.name);
      return out;
    }
    case client::kExecute: {
      KG_TRY(auto execute, read_execute(body));
      append_execute(out, execute.portal, execute.max_rows);
      return out;
    }
    case client::kCopyFail: {
      KG_TRY(auto reason, read_copy_fail(body));
      append_copy_fail(out, reason);
      return out;
    }
    case client::kCopyData: append_copy_data(out, body); return out;
    case client::kCopyDone:
    case client::kFlush:
    case client::kSync:
    case client::kTerminate:
      KG_CHECK(expect_empty(body));
      append_empty(out, type);
      return out;
    default: return fail(client::unknown_type(type));
  }
}

namespace {
Result<std::string> rewrite_report(char type, std::string_view body) {
  KG_TRY(auto report, read_error(body));
  std::string out, with_context;
  type == server::kError ? append_error(out, report) : append_notice(out, report);
  std::string original;
  FrameWriter(original, type).bytes(body);
  auto frame = peek_frame(original, original.size());
  append_error_with_context(with_context, **frame, "shard s1");
  auto extended = read_error(std::string_view(with_context).substr(kHeaderBytes));
  if (!extended || extended->message != report.message || with_context.find("shard s1") == std::string::npos)
    return fail(sqlstate::kInternal, "a report lost something when its context grew");
  return out;
}

Result<std::string> rewrite_authentication(std::string_view body) {
  KG_TRY(auto auth, read_authentication(body));
  std::string out;
  if (auth.kind == AuthKind::kSasl) {
    KG_TRY(auto mechanisms, read_sasl_mechanisms(auth.data));
    append_sasl_mechanisms(out, mechanisms);
  } else {
    append_authentication(out, auth.kind, auth.data);
  }
  return out;
}

// The messages that are a count and a list.
Result<std::string> rewrite_list(char type, std::string_view body) {
  std::string out;
  switch (type) {
    case server::kRowDescription: {
      KG_TRY(auto columns, read_row_description(body));
      append_row_description(out, columns);
      return out;
    }
    case server::kDataRow: {
      KG_TRY(auto values, read_data_row(body));
      append_data_row(out, values);
      return out;
    }
    case server::kParameterDescription: {
      KG_TRY(auto types, read_parameter_description(body));
      append_parameter_description(out, types);
      return out;
    }
    default: {
      KG_TRY(auto start, read_copy_start(body));
      append_copy_start(out, type, start);
      return out;
    }
  }
}
}  // namespace

Result<std::string> rewrite_server(char type, std::string_view body) {
  std::string out;
  switch (type) {
    case server::kAuthentication: return rewrite_authentication(body);
    case server::kError:
    case server::kNotice: return rewrite_report(type, body);
    case server::kBackendKeyData: {
      KG_TRY(auto key, read_backend_key(body));
      append_backend_key(out, key);
      return out;
    }
    case server::kParameterStatus: {
      KG_TRY(auto status, read_parameter_status(body));
      append_parameter_status(out, status.name, status.value);
      return out;
    }
    case server::kReadyForQuery: {
      KG_TRY(auto status, read_ready_for_query(body));
      append_ready_for_query(out, status);
      return out;
    }
    case server::kCommandComplete: {
      KG_TRY(auto tag, read_command_complete(body));
      append_command_complete(out, tag);
      return out;
    }
    case server::kNotification: {
      KG_TRY(auto notification, read_notification(body));
      append_notification(out, notification);
      return out;
    }
    case server::kRowDescription:
    case server::kDataRow:
    case server::kParameterDescription:
    case server::kCopyIn:
    case server::kCopyOut:
    case server::kCopyBoth: return rewrite_list(type, body);
    case server::kNegotiateVersion: {
      KG_TRY(auto negotiate, read_negotiate_version(body));
      append_negotiate_version(out, negotiate.newest_minor, negotiate.unknown_options);
      return out;
    }
    case server::kCopyData: append_copy_data(out, body); return out;
    case server::kParseComplete:
    case server::kBindComplete:
    case server::kCloseComplete:
    case server::kNoData:
    case server::kEmptyQuery:
    case server::kPortalSuspended:
    case server::kCopyDone:
      KG_CHECK(expect_empty(body));
      append_empty(out, type);
      return out;
    default: return fail(server::unknown_type(type));
  }
}

bool one_spelling_server(char type) {
  return type != server::kError && type != server::kNotice && type != server::kNegotiateVersion;
}

}  // namespace kintsugi::wire
