// How a transaction is kept apart from others, as far as the client's own words tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kintsugi::frontend {

enum class Isolation : std::uint8_t { kUnknown, kEachItsOwn, kOneSnapshot, kSerializable };

[[nodiscard]] constexpr bool keeps_one_snapshot(Isolation isolation) {
  return isolation == Isolation::kOneSnapshot || isolation == Isolation::kSerializable;
}

// What `statement` (BEGIN, SET TRANSACTION, SET transaction_isolation) makes of the transaction that it begins
// or stands in; nothing when it says nothing about it.
[[nodiscard]] std::optional<Isolation> isolation_said(std::string_view statement);

// "repeatable read", as a setting has it; kUnknown for anything else.
[[nodiscard]] Isolation isolation_named(std::string_view value);

// BEGIN ... DEFERRABLE and the like.
[[nodiscard]] bool says_deferrable(std::string_view statement);

}  // namespace kintsugi::frontend
