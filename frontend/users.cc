#include "frontend/users.h"

namespace kintsugi::frontend {

Result<UserTable> UserTable::make(const Config& config) {
  UserTable table;
  for (const UserConfig& given : config.users) {
    User user{.name = given.name, .password = given.password, .verifier = {}, .admin = given.admin};
    if (!given.scram.empty()) {
      KG_TRY(user.verifier, wire::ScramVerifier::parse(given.scram));
    } else if (!given.password.empty()) {
      user.verifier = wire::ScramVerifier::from_password(given.password);
    }
    if (!table.users_.emplace(given.name, std::move(user)).second) {
      return fail(sqlstate::kInvalidParameter, "user \"" + given.name + "\" is configured twice");
    }
  }
  return table;
}

const User* UserTable::find(std::string_view name) const {
  auto at = users_.find(name);
  return at == users_.end() ? nullptr : &at->second;
}

}  // namespace kintsugi::frontend
