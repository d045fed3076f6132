// The one error value of the project. It is what a client finally sees as an ErrorResponse, a REST problem or a
// line on the terminal, so it always carries an SQLSTATE, says what happened, and where it can, what to do.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace kintsugi {

struct Error {
  std::string sqlstate = "XX000";
  std::string message;  // one line: what happened, to which thing
  std::string detail;   // the circumstances, when they help
  std::string hint;     // what to do about it
  int position = 0;     // 1-based character offset into the statement; 0: none

  [[nodiscard]] std::string to_string() const;  // "KG005: shard s1 ... (detail) Hint: ..."
  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// `return fail("KG001", "no shardlet ...")` from any function that returns a Result.
[[nodiscard]] tl::unexpected<Error> fail(std::string_view sqlstate, std::string message, std::string hint = {},
                                         std::string detail = {});
[[nodiscard]] tl::unexpected<Error> fail(Error error);

namespace sqlstate {
inline constexpr std::string_view kNotSupported = "0A000";
inline constexpr std::string_view kProtocolViolation = "08P01";
inline constexpr std::string_view kConnectionFailure = "08006";
inline constexpr std::string_view kInvalidPassword = "28P01";
inline constexpr std::string_view kInvalidAuthorization = "28000";
inline constexpr std::string_view kInsufficientPrivilege = "42501";
inline constexpr std::string_view kSyntaxError = "42601";
inline constexpr std::string_view kTooManyConnections = "53300";
inline constexpr std::string_view kOutOfMemory = "53200";
inline constexpr std::string_view kLimitReached = "53400";
inline constexpr std::string_view kProgramLimitExceeded = "54000";
inline constexpr std::string_view kObjectInUse = "55006";
inline constexpr std::string_view kQueryCanceled = "57014";
inline constexpr std::string_view kAdminShutdown = "57P01";
inline constexpr std::string_view kCannotConnectNow = "57P03";
inline constexpr std::string_view kIdleSessionTimeout = "57P05";
inline constexpr std::string_view kInvalidParameter = "22023";
inline constexpr std::string_view kDuplicateObject = "42710";
inline constexpr std::string_view kUndefinedObject = "42704";
inline constexpr std::string_view kInvalidCatalogName = "3D000";
inline constexpr std::string_view kSerializationFailure = "40001";
inline constexpr std::string_view kInternal = "XX000";
inline constexpr std::string_view kNoShardlet = "KG001";
inline constexpr std::string_view kShardletClosed = "KG002";
inline constexpr std::string_view kKeyMissing = "KG003";
inline constexpr std::string_view kTenantForbidden = "KG004";
inline constexpr std::string_view kShardUnreachable = "KG005";
inline constexpr std::string_view kMapReadOnly = "KG006";
}  // namespace sqlstate

}  // namespace kintsugi

// clang-format 14 would write `return )` into these; their arguments are declarations and keywords.
// clang-format off
// NOLINTBEGIN(bugprone-macro-parentheses)

// Unwraps a Result or hands its error to the caller:  KG_TRY(auto map, load(path));
#define KG_CONCAT_INNER(a, b) a##b
#define KG_CONCAT(a, b) KG_CONCAT_INNER(a, b)
#define KG_TRY_AS(declaration, expression, result, keyword)                   \
  auto result = (expression);                                                 \
  if (!result) keyword ::tl::unexpected<::kintsugi::Error>(std::move(result).error()); \
  declaration = std::move(*result)
#define KG_TRY(declaration, expression) KG_TRY_AS(declaration, expression, KG_CONCAT(kg_result_, __LINE__), return)
#define KG_CO_TRY(declaration, expression) \
  KG_TRY_AS(declaration, expression, KG_CONCAT(kg_result_, __LINE__), co_return)

// The same for a Status:  KG_CHECK(store.commit(edit));
#define KG_CHECK_AS(expression, keyword)                                                               \
  do {                                                                                                 \
    if (auto kg_status = (expression); !kg_status)                                                     \
      keyword ::tl::unexpected<::kintsugi::Error>(std::move(kg_status).error());                       \
  } while (false)
#define KG_CHECK(expression) KG_CHECK_AS(expression, return)
#define KG_CO_CHECK(expression) KG_CHECK_AS(expression, co_return)

// NOLINTEND(bugprone-macro-parentheses)
// clang-format on
