#include "base/error.h"

namespace kintsugi {

std::string Error::to_string() const {
  std::string text = sqlstate + ": " + message;
  if (!detail.empty()) text += " (" + detail + ")";
  if (!hint.empty()) text += " Hint: " + hint;
  return text;
}

tl::unexpected<Error> fail(std::string_view sqlstate, std::string message, std::string hint,
                           std::string detail) {
  return tl::unexpected<Error>(Error{.sqlstate = std::string(sqlstate),
                                     .message = std::move(message),
                                     .detail = std::move(detail),
                                     .hint = std::move(hint)});
}

tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace kintsugi
