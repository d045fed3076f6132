#include "frontend/users.h"

namespace kintsugi::frontend {

Result<UserTable> UserTable::make(const Config& config) {
  UserTable table;
  for (const UserConfig& given : config.users) {
    User user{.name = given.name,
              .password = given.password,
              .verifier = {},
              .admin = given.admin,
              .tenant_map = given.tenant_map,
              .tenant_key = given.tenant_key};
    if (!user.tenant_map.empty() && config.shards.size() == 1) {
      return fail(
          sqlstate::kInvalidParameter,
          "user \"" + given.name +
              "\" is bound to a tenant, and the configuration has one [[shard]] whose statements are not "
              "routed",
          "A tenant is a key of a shard map: configure [map] instead of [[shard]], and CREATE SHARD.");
    }
    if (!user.tenant_map.empty() && user.admin) {
      return fail(sqlstate::kInvalidParameter,
                  "user \"" + given.name + "\" is bound to a tenant and cannot be an admin",
                  "Remove admin, or tenant_map and tenant_key.");
    }
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
