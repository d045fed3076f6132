// What stands in the head of a request, as RFC 9110 has it: schemes and types in any case. Pure.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::admin {

// The token of an Authorization header; empty: it has none.
[[nodiscard]] std::string_view bearer_token(std::string_view authorization);

// Whether a body of this Content-Type is JSON; of a PATCH also a merge patch (RFC 7396).
[[nodiscard]] bool is_json(std::string_view content_type, bool patch);

// The value of Allow where these methods ("GET, POST") are served: whoever may GET may HEAD, and everybody may
// ask.
[[nodiscard]] std::string allow_header(std::string_view methods);

}  // namespace kintsugi::admin
