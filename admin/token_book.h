// Who may use REST besides the holder of the token file: names with a role and the SHA-256 of their token, in a
// file that only its owner may read. The tokens themselves are 256 random bits, told once, when they are made,
// and kept nowhere. The file is read again when it has changed, so one copied from another router is taken up.
// Any thread.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/commands/command.h"
#include "base/error.h"

namespace kintsugi::admin {

struct TokenOwner {
  std::string name;
  Role role = Role::kViewer;
  std::string created;   // "2026-11-18T12:00:00Z"
  std::string hash;      // SHA-256 of the token, hex
  std::string store;     // id of the map store that knows it as well; empty: this router alone
  bool removed = false;  // here, and the store has still to be told
  friend bool operator==(const TokenOwner&, const TokenOwner&) = default;
};

class TokenBook {
 public:
  explicit TokenBook(std::string path) : path_(std::move(path)) {}

  // 58000 when the file is there and cannot be read, or may be read by others.
  Status load();

  [[nodiscard]] std::optional<TokenOwner> owner_of(const std::string& token);
  Result<std::vector<TokenOwner>> list();     // without those that were removed
  Result<std::vector<TokenOwner>> entries();  // all
  Status replace(const std::vector<TokenOwner>& entries);
  // The new token, and who has it now; nothing is written yet. 42710 for a name that is taken.
  Result<std::pair<std::string, TokenOwner>> made(const std::string& name, Role role);
  Result<TokenOwner> named(const std::string& name);  // 42704
  static Error taken(const std::string& name);

 private:
  Status look();  // the file may have changed; the lock is held
  Status save(const std::vector<TokenOwner>& owners);

  const std::string path_;
  std::mutex mutex_;
  std::vector<TokenOwner> owners_;
  std::int64_t changed_ = 0, size_ = -1, file_ = 0;  // of the file that was read
};

}  // namespace kintsugi::admin
