#include "app/config_file.h"

#include <unistd.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "app/config_keys.h"
#include "app/listen_address.h"
#include "base/dsn_text.h"
#include "base/suggest.h"

namespace kintsugi::app {
namespace {

template <class Keys>
std::vector<std::string> names_of(const Keys& keys) {
  std::vector<std::string> names;
  for (const auto& key : keys) names.emplace_back(key.name);
  return names;
}

// What stands in the file, as one would write it.
std::string as_written(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) return toml_string(*text);
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

// The text that parse_value reads; nothing when the node's type is not the key's.
std::optional<std::string> as_value_text(const toml::node& node, const Slot& slot) {
  bool wants_whole = std::holds_alternative<int*>(slot);
  bool wants_truth = std::holds_alternative<bool*>(slot);
  bool takes_zero = std::holds_alternative<std::int64_t*>(slot) || std::holds_alternative<milliseconds*>(slot);
  if (auto truth = node.value_exact<bool>(); truth && wants_truth) return *truth ? "true" : "false";
  if (auto whole = node.value_exact<std::int64_t>(); whole && (wants_whole || takes_zero)) {
    return std::to_string(*whole);
  }
  if (auto text = node.value_exact<std::string>(); text && !wants_whole && !wants_truth) return *text;
  return std::nullopt;
}

class Loader {
 public:
  explicit Loader(const ConfigSources& sources) : sources_(sources) {}

  Result<LoadedConfig> load() {
    if (!sources_.file.empty()) read_file();
    read_environment();
    read_flags();
    check_as_a_whole();
    if (problems_.empty()) return std::move(loaded_);
    // The file's in the order of its lines (toml++ hands out keys by name), then the others.
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
    std::string message;
    for (const Problem& problem : problems_) message += (message.empty() ? "" : "\n") + problem.text;
    return fail("F0000", message);
  }

 private:
  struct Problem {
    std::uint64_t line;
    std::string text;
  };

  // `where` is "FILE:LINE" or a place that is no line.
  void problem(const std::string& where, const std::string& what) {
    std::uint64_t line = std::numeric_limits<std::uint64_t>::max();
    if (where.starts_with(sources_.file + ":")) line = std::stoull(where.substr(sources_.file.size() + 1));
    problems_.push_back({line, where + ": " + what});
  }

  std::string place(const toml::node& node) const {
    return sources_.file + ":" + std::to_string(node.source().begin.line);
  }

  void read_file() {
    if (std::error_code none; std::filesystem::is_directory(sources_.file, none))
      return problem(sources_.file, "is a folder, and no file");
    try {
      toml::table root = toml::parse_file(sources_.file);
      for (auto&& [name, node] : root) read_top(std::string(name.str()), node);
    } catch (const toml::parse_error& error) {
      problem(error.source().begin ? sources_.file + ":" + std::to_string(error.source().begin.line)
                                   : sources_.file,
              std::string(error.description()));
    }
  }

  void read_top(const std::string& name, const toml::node& node) {
    if (name == "user") return read_list(name, node, user_keys(), loaded_.config.users);
    if (name == "shard") return read_list(name, node, shard_keys(), loaded_.config.shards);
    const Section* section = find_section(name);
    if (section == nullptr) {
      std::vector<std::string> names = names_of(config_sections());
      names.insert(names.end(), {"user", "shard"});
      std::string what = node.is_table() || node.is_array_of_tables() ? "section" : "key";
      return problem(place(node), "unknown " + what + " \"" + name + "\"" + did_you_mean(name, names) +
                                      "; the sections are " + listed(names));
    }
    if (!node.is_table()) {
      return problem(place(node), name + " is " + as_written(node) + "; it is a section: write [" + name +
                                      "] and its keys on lines of their own");
    }
    for (auto&& [key_name, value] : *node.as_table()) {
      read_key(name, std::string(key_name.str()), value, section->keys, loaded_.config);
    }
  }

  template <class Owner>
  void read_list(const std::string& name, const toml::node& node, const std::vector<Key<Owner>>& keys,
                 std::vector<Owner>& owners) {
    if (!node.is_array_of_tables()) {
      return problem(place(node), name + " is a list: write [[" + name + "]] before each one's keys");
    }
    for (const toml::node& entry : *node.as_array()) {
      Owner owner;
      for (auto&& [key_name, value] : *entry.as_table()) {
        read_key(name, std::string(key_name.str()), value, keys, owner);
      }
      for (const Key<Owner>& key : keys) {
        if (!key.rule.may_be_empty && !entry.as_table()->contains(key.name)) {
          problem(place(entry), "a " + name + " without " + std::string(key.name));
        }
      }
      places_[name].push_back(place(entry));
      owners.push_back(std::move(owner));
    }
  }

  template <class Owner>
  void read_key(const std::string& section, const std::string& name, const toml::node& node,
                const std::vector<Key<Owner>>& keys, Owner& owner) {
    const Key<Owner>* key = nullptr;
    for (const Key<Owner>& candidate : keys) {
      if (candidate.name == name) key = &candidate;
    }
    if (key == nullptr) {
      return problem(place(node), "unknown key " + section + "." + name + did_you_mean(name, names_of(keys)) +
                                      "; " + section + " has " + listed(names_of(keys)));
    }
    Slot slot = key->slot(owner);
    std::optional<std::string> text = as_value_text(node, slot);
    Status done = text ? parse_value(slot, key->rule, *text)
                       : fail("F0000", allowed_in(slot, key->rule) +
                                           (std::holds_alternative<std::string*>(slot) ? ", in quotes" : ""));
    if (!done) return wrong_value(place(node), section + "." + name, as_written(node), key->rule, done.error());
    if constexpr (std::is_same_v<Owner, Config>) loaded_.origins[section + "." + name] = place(node);
  }

  void wrong_value(const std::string& where, const std::string& name, const std::string& read,
                   const ValueRule& rule, const Error& error) {
    bool may_hold_password = rule.text == Text::kDsn || rule.text == Text::kStore;
    // What cannot be read may have half a password where none is looked for.
    const bool hidden = is_secret(rule) || (rule.text == Text::kDsn && read != "\"\"");
    std::string shown = hidden ? "(not shown)" : may_hold_password ? without_password(read) : read;
    problem(where, name + " is " + shown + "; allowed: " + error.message);
  }

  void set_from_text(const std::string& where, const std::string& section, const Key<Config>& key,
                     const std::string& text) {
    std::string name = section + "." + std::string(key.name);
    Status done = parse_value(key.slot(loaded_.config), key.rule, text);
    if (!done) return wrong_value(where, name, toml_string(text), key.rule, done.error());
    loaded_.origins[name] = where;
  }

  void read_environment() {
    for (const auto& [variable, text] : sources_.environment) {
      for (const Section& section : config_sections()) {
        std::string prefix = environment_name(section.name, "");
        if (!variable.starts_with(prefix)) continue;
        std::string name = variable.substr(prefix.size());
        for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (const Key<Config>* key = find_key(section.name, name)) {
          set_from_text("environment " + variable, std::string(section.name), *key, text);
        } else if (std::string near = nearest(name, names_of(section.keys)); !near.empty()) {
          // Only what looks like a typo: a container platform sets variables such as KINTSUGI_SERVER_PORT
          // itself.
          problem("environment " + variable,
                  "no such setting (did you mean " + environment_name(section.name, near) + "?)");
        }
      }
    }
  }

  void read_flags() {
    for (const auto& flag : sources_.flags) {
      std::size_t dot = flag.key.find('.');
      std::string section = flag.key.substr(0, dot);
      std::string name = dot == std::string::npos ? "" : flag.key.substr(dot + 1);
      const Key<Config>* key = find_key(section, name);
      if (key != nullptr) {
        set_from_text(flag.name, section, *key, flag.value);
        continue;
      }
      std::vector<std::string> all;
      for (const Section& known : config_sections()) {
        for (const auto& entry : known.keys)
          all.push_back(std::string(known.name) + "." + std::string(entry.name));
      }
      problem(flag.name, "unknown key " + flag.key + did_you_mean(flag.key, all));
    }
  }

  std::string origin(const std::string& key) const {
    auto found = loaded_.origins.find(key);
    return found == loaded_.origins.end() ? key : found->second;
  }

  void check_as_a_whole() {
    check_users();
    check_shards();
    check_listeners();
    resolve_paths();
    check_tls();
  }

  void check_users() {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < loaded_.config.users.size(); ++i) {
      const UserConfig& user = loaded_.config.users[i];
      const std::string& where = places_["user"][i];
      if (!user.name.empty() && !seen.insert(user.name).second)
        problem(where, "a second user " + toml_string(user.name));
      if (!user.password.empty() && !user.scram.empty()) {
        problem(where, "user " + toml_string(user.name) + " has both password and scram; give one of them");
      }
      if (user.tenant_map.empty() != user.tenant_key.empty()) {
        problem(where, "user " + toml_string(user.name) +
                           " has only one of tenant_map and tenant_key; give both or none");
      }
    }
  }

  void check_shards() {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < loaded_.config.shards.size(); ++i) {
      const std::string& name = loaded_.config.shards[i].name;
      if (!name.empty() && !seen.insert(name).second)
        problem(places_["shard"][i], "a second shard " + toml_string(name));
    }
  }

  // Whoever can reach the machine could otherwise read everything.
  void check_listeners() {
    check_listener("server.listen", loaded_.config.server.listen);
    check_listener("admin.listen", loaded_.config.admin.listen);
  }

  void check_listener(const std::string& key, const std::string& listen) {
    std::optional<ListenAddress> address = parse_listen_address(listen);
    if (!address || address->is_loopback()) return;
    const char* because = " is not on loopback and needs users with passwords; ";
    if (loaded_.config.users.empty()) {
      problem(origin(key), key + " = " + toml_string(listen) + because + "there is no [[user]]");
    }
    for (std::size_t i = 0; i < loaded_.config.users.size(); ++i) {
      const UserConfig& user = loaded_.config.users[i];
      if (!user.password.empty() || !user.scram.empty()) continue;
      problem(places_["user"][i],
              key + " = " + toml_string(listen) + because + "user " + toml_string(user.name) + " has none");
    }
  }

  void resolve_paths() {
    if (sources_.data.empty()) return;
    if (loaded_.config.admin.token_file.empty()) loaded_.config.admin.token_file = "admin.token";
    if (loaded_.config.admin.user_file.empty()) loaded_.config.admin.user_file = "admin.users";
    for (const Section& section : config_sections()) {
      for (const auto& key : section.keys) {
        if (key.rule.text != Text::kPath && key.rule.text != Text::kStore) continue;
        auto* text = std::get<std::string*>(key.slot(loaded_.config));
        std::string scheme = text->starts_with("sqlite:") ? "sqlite:" : "";
        if (text->empty() || (key.rule.text == Text::kStore && scheme.empty())) continue;
        std::filesystem::path path = text->substr(scheme.size());
        if (path.is_relative()) *text = scheme + (std::filesystem::path(sources_.data) / path).string();
      }
    }
  }

  void check_tls() {
    check_tls("server", loaded_.config.server.tls_cert, loaded_.config.server.tls_key);
    check_tls("admin", loaded_.config.admin.tls_cert, loaded_.config.admin.tls_key);
  }
  void check_tls(const std::string& section, const std::string& cert, const std::string& key) {
    if (cert.empty() != key.empty()) {
      const std::string given = section + (cert.empty() ? ".tls_key" : ".tls_cert");
      problem(origin(given), given + " stands alone; TLS needs both tls_cert and tls_key");
    }
    for (const auto& [name, path] : {std::pair{".tls_cert", &cert}, {".tls_key", &key}}) {
      if (!path->empty() && access(path->c_str(), R_OK) != 0) {
        problem(origin(section + name),
                section + name + ": cannot read " + toml_string(*path) + ": " + std::strerror(errno));
      }
    }
  }

  const ConfigSources& sources_;
  LoadedConfig loaded_;
  std::map<std::string, std::vector<std::string>> places_;  // of each [[user]], each [[shard]]
  std::vector<Problem> problems_;
};

template <class Owner>
std::string describe_list(const std::string& name, const std::vector<Key<Owner>>& keys,
                          const std::vector<Owner>& owners) {
  std::string text;
  for (const Owner& owner : owners) {
    text += "\n[[" + name + "]]\n";
    Owner copy = owner;
    for (const Key<Owner>& key : keys) {
      text += std::string(key.name) + " = " + print_value(key.slot(copy), key.rule) + "\n";
    }
  }
  return text;
}

// A value as TOML writes it is a value as JSON writes it, for all the types there are here.
template <class Owner>
std::string as_json(const std::vector<Key<Owner>>& keys, Owner owner) {
  std::string text;
  for (const Key<Owner>& key : keys) {
    text += (text.empty() ? "" : ", ") + toml_string(key.name) + ": " + print_value(key.slot(owner), key.rule);
  }
  return "{" + text + "}";
}

template <class Owner>
std::string as_json_list(const std::vector<Key<Owner>>& keys, const std::vector<Owner>& owners) {
  std::string text;
  for (const Owner& owner : owners) text += (text.empty() ? "" : ", ") + as_json(keys, owner);
  return "[" + text + "]";
}

}  // namespace

Result<LoadedConfig> load_config(const ConfigSources& sources) {
  return Loader(sources).load();
}

std::string describe_config(const LoadedConfig& loaded) {
  Config config = loaded.config;
  std::string text;
  for (const Section& section : config_sections()) {
    text += (text.empty() ? "[" : "\n[") + std::string(section.name) + "]\n";
    for (const auto& key : section.keys) {
      std::string line = std::string(key.name) + " = " + print_value(key.slot(config), key.rule);
      auto origin = loaded.origins.find(std::string(section.name) + "." + std::string(key.name));
      line.resize(std::max<std::size_t>(line.size(), 46), ' ');
      text += line + "  # " + (origin == loaded.origins.end() ? "default" : origin->second) + "\n";
    }
  }
  return text + describe_list("user", user_keys(), loaded.config.users) +
         describe_list("shard", shard_keys(), loaded.config.shards);
}

std::string describe_config_as_json(const LoadedConfig& loaded) {
  std::string sections;
  for (const Section& section : config_sections()) {
    sections += toml_string(section.name) + ": " + as_json(section.keys, loaded.config) + ", ";
  }
  sections += "\"user\": " + as_json_list(user_keys(), loaded.config.users) + ", ";
  sections += "\"shard\": " + as_json_list(shard_keys(), loaded.config.shards);
  std::string origins;
  for (const auto& [key, place] : loaded.origins) {
    origins += (origins.empty() ? "" : ", ") + toml_string(key) + ": " + toml_string(place);
  }
  return "{\"config\": {" + sections + "}, \"origins\": {" + origins + "}}\n";
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace kintsugi::app
