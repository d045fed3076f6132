// Who may log in, from the configuration. Immutable; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/error.h"
#include "wire/scram.h"

namespace kintsugi::frontend {

struct User {
  std::string name;
  std::string password;  // plain, when the configuration has it: for shards whose DSN names no user
  std::optional<wire::ScramVerifier> verifier;  // none: no password is asked (loopback only)
  bool admin = false;
  std::string tenant_map, tenant_key;  // the only key it may touch; empty: all
};

class UserTable {
 public:
  static Result<UserTable> make(const Config& config);

  // Without any configured user everybody on loopback is let in, as an admin.
  [[nodiscard]] bool open_to_all() const { return users_.empty(); }
  [[nodiscard]] const User* find(std::string_view name) const;

 private:
  std::map<std::string, User, std::less<>> users_;
};

}  // namespace kintsugi::frontend
