// An error as an HTTP answer: RFC 9457. Pure.
#pragma once

#include <string>
#include <string_view>

#include "admin/commands/command_result.h"
#include "base/error.h"

namespace kintsugi::admin {

// 404 for what is not there, 409 for what is in the way, 503 while the store is away, and so on.
[[nodiscard]] int http_status(const Error& error);

// What problem_json() says to do where the error itself says nothing.
[[nodiscard]] std::string_view usual_hint(int status);

// {"type": "urn:kintsugi:error:42704", "title", "status", "detail", "sqlstate", "hint"}
[[nodiscard]] Json problem_json(const Error& error, int status);

}  // namespace kintsugi::admin
