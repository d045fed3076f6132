#include "app/rest_client.h"

#include <httplib.h>

#include "admin/problem.h"

namespace kintsugi::app {
namespace {

constexpr time_t kConnectTimeout_s = 5, kReadTimeout_s = 3600;

tl::unexpected<Error> problem(const httplib::Response& response) {
  Error error{.sqlstate = "XX000",
              .message = "the router answers with status " + std::to_string(response.status)};
  const Json json = Json::parse(response.body, nullptr, false);
  if (json.is_object()) {
    error.sqlstate = json.value("sqlstate", error.sqlstate);
    error.message = json.value("detail", error.message);
    error.detail = json.value("circumstances", "");
    error.hint = json.value("hint", "");
    if (response.status == 401) {
      error.hint =
          "It is in the file that the router's admin.token_file names (admin.token in its data folder), or was "
          "told by "
          "kintsugi user add. Give it with --token-file or in KINTSUGI_TOKEN.";
    } else if ((response.status == 400 || response.status == 409) &&
               error.hint == admin::usual_hint(response.status)) {
      error.hint.clear();  // it is about REST
    }
  }
  return fail(std::move(error));
}

}  // namespace

std::string url_encoded(const std::string& text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += static_cast<char>(c);
    } else {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  return out;
}

Result<RestReply> RestClient::send(const std::string& method, const std::string& path, const std::string& text,
                                   const char* type) {
  last_status_ = 0;
  std::string at = target_.admin;
  if (at.find("://") == std::string::npos) at = "http://" + at;
  while (at.ends_with('/')) at.pop_back();
  const auto no_address = [this] {
    return fail(sqlstate::kInvalidParameter, "\"" + target_.admin + "\" is no address of a router",
                "It is http://HOST:PORT or https://HOST:PORT, from --admin or KINTSUGI_ADMIN.");
  };
  if (!at.starts_with("http://") && !at.starts_with("https://")) return no_address();  // else httplib throws
  httplib::Client client(at);
  if (!client.is_valid()) return no_address();
  if (!target_.ca.empty()) client.set_ca_cert_path(target_.ca.c_str());
  client.set_connection_timeout(kConnectTimeout_s);
  client.set_read_timeout(kReadTimeout_s);
  httplib::Request request;
  request.method = method;
  request.path = path;
  request.body = text;
  if (!target_.token.empty()) request.headers.emplace("Authorization", "Bearer " + target_.token);
  if (!text.empty()) request.headers.emplace("Content-Type", type);
  const httplib::Result result = client.send(request);
  if (!result) {
    return fail(sqlstate::kConnectionFailure,
                "no router answers at " + at + " (" + httplib::to_string(result.error()) + ")",
                "Start one with kintsugi serve, or say where it is with --admin or KINTSUGI_ADMIN.");
  }
  last_status_ = result->status;
  if (result->status >= 300) return problem(*result);
  RestReply reply{.status = result->status, .body = {}, .text = result->body};
  if (result->get_header_value("Content-Type").starts_with("application/json")) {
    reply.body = Json::parse(result->body, nullptr, false);
    if (reply.body.is_discarded()) return fail(sqlstate::kInternal, "the router's answer is not JSON");
  }
  return reply;
}

Result<RestReply> RestClient::call(const std::string& method, const std::string& path, const Json& body) {
  return send(method, path, body.is_null() ? "" : body.dump(-1, ' ', false, Json::error_handler_t::replace),
              "application/json");
}

Result<RestReply> RestClient::send_file(const std::string& path, const std::string& text) {
  return send("POST", path, text, "text/plain");
}

Result<Json> RestClient::list(const std::string& path) {
  Json items = Json::array();
  const std::string begin = path + (path.find('?') == std::string::npos ? "?" : "&") + "limit=1000";
  std::string after;
  for (;;) {
    KG_TRY(RestReply reply, call("GET", begin + (after.empty() ? "" : "&after=" + url_encoded(after))));
    for (Json& item : reply.body["items"]) items.push_back(std::move(item));
    if (!reply.body["next"].is_string()) return items;
    after = reply.body["next"].get<std::string>();
  }
}

}  // namespace kintsugi::app
