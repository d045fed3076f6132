// One value of the configuration between its text ("10s", "1GB", "transaction") and its place in Config. The
// same rules serve the file, the environment, the flags, the defaults that are printed and the reference. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include "base/config.h"
#include "base/error.h"

namespace kintsugi::app {

// Where a value lives, which also says of which type it is. std::int64_t is a number of bytes.
using Slot = std::variant<std::string*, int*, bool*, std::int64_t*, milliseconds*, PoolMode*, log::Level*>;

// What a text must be.
enum class Text {
  kAny,
  kName,     // an SQL name, as of a database, a user, a shard
  kAddress,  // host:port
  kPath,     // a file; a relative one is under --data
  kStore,    // sqlite:FILE or postgresql://...
  kDsn,      // a libpq connection string; its password is never shown
  kSecret,   // never shown
  kScram,    // a stored SCRAM verifier, never shown
};

struct ValueRule {
  Text text = Text::kAny;
  std::int64_t least = 0;  // numbers, bytes, milliseconds
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  bool may_be_empty = true;
};

// Writes what the text says into the slot. The error's message is what is allowed: "whole numbers from 0 to
// 1024".
[[nodiscard]] Status parse_value(Slot slot, const ValueRule& rule, std::string_view text);

// As it would stand in the file: "10s" with quotes, 20, true. Secrets as "(hidden)", a DSN without its
// password.
[[nodiscard]] std::string print_value(Slot slot, const ValueRule& rule);

// "duration", "size", "text", ...: for the reference.
[[nodiscard]] std::string kind_of(Slot slot, const ValueRule& rule);
[[nodiscard]] std::string allowed_in(Slot slot, const ValueRule& rule);

[[nodiscard]] bool is_secret(const ValueRule& rule);

// A TOML basic string.
[[nodiscard]] std::string toml_string(std::string_view text);

}  // namespace kintsugi::app
