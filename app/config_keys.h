// The table of everything that can be set. Parsing, defaults, names of environment variables, the output of
// `check-config` and the reference in docs/operations.md all come from it; nothing else lists the keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/config_value.h"
#include "base/config.h"

namespace kintsugi::app {

template <class Owner>
struct Key {
  std::string_view name;
  Slot (*slot)(Owner& owner);
  std::string_view meaning;
  ValueRule rule = {};
};

struct Section {
  std::string_view name;
  std::string_view meaning;
  std::vector<Key<Config>> keys;
};

[[nodiscard]] const std::vector<Section>& config_sections();  // [server], [pool], ...: set once
[[nodiscard]] const std::vector<Key<UserConfig>>&
user_keys();  // [[user]]: as often as wanted, in the file only
[[nodiscard]] const std::vector<Key<ShardConfig>>& shard_keys();  // [[shard]]: likewise

[[nodiscard]] const Section* find_section(std::string_view name);
[[nodiscard]] const Key<Config>* find_key(std::string_view section, std::string_view name);

// KINTSUGI_SERVER_TLS_CERT
[[nodiscard]] std::string environment_name(std::string_view section, std::string_view key);

// The Markdown of the reference, as it stands in docs/operations.md between its two marks.
[[nodiscard]] std::string config_reference();

}  // namespace kintsugi::app
