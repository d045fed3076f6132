#include "admin/problem.h"

namespace kintsugi::admin {
namespace {

struct StatusOfState {
  std::string_view state;  // all of an SQLSTATE, or its class
  int status;
};

constexpr StatusOfState kStatuses[] = {
    {"KG001", 404}, {"KG002", 409}, {"KG003", 400}, {"KG004", 403}, {"KG005", 502}, {"KG006", 503},
    {"KG007", 412}, {"28000", 401}, {"42501", 403}, {"42704", 404}, {"42P01", 409}, {"42703", 409},
    {"42804", 409}, {"42710", 409}, {"42P17", 409}, {"2BP01", 409}, {"55000", 409}, {"55006", 409},
    {"40001", 409}, {"0A000", 422}, {"53400", 429}, {"57014", 504}, {"57P01", 503}, {"57P03", 503},
    {"53300", 503}, {"08006", 503}, {"54000", 413}, {"54", 400},    {"22", 400},    {"42", 400},
};

std::string_view title(int status) {
  switch (status) {
    case 400: return "The request cannot be understood";
    case 401: return "A token is needed";
    case 403: return "This is not permitted";
    case 404: return "There is no such thing";
    case 405: return "There is no such operation";
    case 409: return "The state of things does not allow it";
    case 411: return "The request does not say how long it is";
    case 412: return "The shard map has changed meanwhile";
    case 413: return "The request is too large";
    case 414: return "The request's path is too long";
    case 415: return "The body is of another type than JSON";
    case 416: return "There is no such range";
    case 422: return "This is not supported";
    case 429: return "Too many requests";
    case 502: return "A shard cannot be reached";
    case 503: return "Not now";
    case 504: return "It took too long";
    default: return "Something is wrong in Kintsugi";
  }
}

}  // namespace

std::string_view usual_hint(int status) {
  switch (status) {
    case 400: return "/openapi.json describes what can be asked.";
    case 401: return "Send the header \"Authorization: Bearer TOKEN\".";
    case 403: return "Ask somebody whose token has that role.";
    case 404: return "List what is there, and compare the names.";
    case 405: return "The header Allow has the methods that there are; /openapi.json describes them.";
    case 409: return "Look at how things stand now, and ask again for what is still wanted.";
    case 413: return "Send less at once.";
    case 414:
    case 416: return "/openapi.json describes what can be asked.";
    case 422: return "The page docs/dialect.md lists what is not supported, and what to do instead.";
    case 429: return "Wait for as many seconds as Retry-After says, and ask less often.";
    case 502: return "See whether that PostgreSQL runs, and can be reached from the router.";
    case 503: return "Ask again later, or another router; /readyz says what is missing.";
    case 504: return "Look whether it has been done all the same, and ask again.";
    default: return "The router's log has more about it.";
  }
}

int http_status(const Error& error) {
  for (const StatusOfState& entry : kStatuses) {
    if (error.sqlstate.starts_with(entry.state)) return entry.status;
  }
  return 500;
}

Json problem_json(const Error& error, int status) {
  Json json = Json::object();
  json["type"] = "urn:kintsugi:error:" + error.sqlstate;
  json["title"] = std::string(title(status));
  json["status"] = status;
  json["detail"] = error.message;
  json["sqlstate"] = error.sqlstate;
  if (!error.detail.empty()) json["circumstances"] = error.detail;
  json["hint"] = error.hint.empty() ? std::string(usual_hint(status)) : error.hint;
  return json;
}

}  // namespace kintsugi::admin
