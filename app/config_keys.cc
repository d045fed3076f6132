#include "app/config_keys.h"

namespace kintsugi::app {
namespace {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kDay = 86400 * kSecond;
constexpr std::int64_t kMB = std::int64_t{1} << 20;
constexpr std::int64_t kTB = std::int64_t{1} << 40;

constexpr ValueRule kAddressRule = {.text = Text::kAddress, .may_be_empty = false};
constexpr ValueRule kFileRule = {.text = Text::kPath};
constexpr ValueRule kUpToADay = {.most = kDay};

// The place of a key in Config.
#define AT(member) [](Config& config) -> Slot { return &config.member; }
#define OF_USER(member) [](UserConfig& user) -> Slot { return &user.member; }
#define OF_SHARD(member) [](ShardConfig& shard) -> Slot { return &shard.member; }

std::vector<Section> make_sections() {
  return {
      {"server",
       "Where clients connect.",
       {
           {"listen", AT(server.listen), "address for PostgreSQL clients; port 0 takes a free one",
            kAddressRule},
           {"threads", AT(server.threads), "threads that serve clients; 0: one per core", {.most = 1024}},
           {"tls_cert", AT(server.tls_cert), "certificate chain (PEM); empty: no TLS; read again on SIGHUP",
            kFileRule},
           {"tls_key", AT(server.tls_key), "its private key (PEM); read again on SIGHUP", kFileRule},
           {"max_clients",
            AT(server.max_clients),
            "clients at the same time; more are refused with 53300",
            {.least = 1, .most = 1000000}},
           {"login_timeout",
            AT(server.login_timeout),
            "from connecting to logged in",
            {.least = 100, .most = 3600 * kSecond}},
           {"idle_timeout", AT(server.idle_timeout),
            "a client that is idle outside a transaction is closed after this; 0: never", kUpToADay},
           {"transaction_idle_timeout", AT(server.transaction_idle_timeout),
            "a client that is idle inside a transaction is closed after this; 0: never", kUpToADay},
           {"slow_client_timeout", AT(server.slow_client_timeout),
            "a client that takes nothing of what waits for it is closed after this; 0: never", kUpToADay},
           {"shutdown_timeout", AT(server.shutdown_timeout), "what SIGTERM gives running statements",
            kUpToADay},
       }},
      {"admin",
       "REST, metrics and the console.",
       {
           {"listen", AT(admin.listen), "address of the admin listener", kAddressRule},
           {"token_file", AT(admin.token_file),
            "file with the bearer token, or with sha256: and its hash; empty: admin.token under --data",
            kFileRule},
           {"user_file", AT(admin.user_file),
            "file with the hashes of the users' tokens; empty: admin.users under --data", kFileRule},
           {"tls_cert", AT(admin.tls_cert), "certificate chain (PEM); empty: no TLS; read again on SIGHUP",
            kFileRule},
           {"tls_key", AT(admin.tls_key), "its private key (PEM); read again on SIGHUP", kFileRule},
       }},
      {"database",
       "",
       {
           {"name",
            AT(database.name),
            "the one database that clients see",
            {.text = Text::kName, .may_be_empty = false}},
       }},
      {"map",
       "The shard map.",
       {
           {"store",
            AT(map.store),
            "where the global shard map lives: a file of this router, or a PostgreSQL for many routers",
            {.text = Text::kStore, .may_be_empty = false}},
           {"replica",
            AT(map.replica),
            "this router's own copy of the map, to start from when the store is away",
            {.text = Text::kPath, .may_be_empty = false}},
       }},
      {"pool",
       "Connections to the shards.",
       {
           {"mode", AT(pool.mode),
            "a connection belongs to a client for a transaction, or for its whole session"},
           {"size",
            AT(pool.size),
            "connections a shard and role, over all threads",
            {.least = 1, .most = 10000}},
           {"wait_timeout", AT(pool.wait_timeout),
            "how long a client waits for a free connection; 0: without end", kUpToADay},
           {"connect_timeout",
            AT(pool.connect_timeout),
            "TCP, TLS and login at the shard",
            {.least = 100, .most = 3600 * kSecond}},
           {"idle_timeout", AT(pool.idle_timeout), "an unused connection is closed after this; 0: never",
            kUpToADay},
           {"prepared_statements",
            AT(pool.prepared_statements),
            "statements kept prepared on one connection before the oldest is closed",
            {.least = 1, .most = 100000}},
       }},
      {"limits",
       "",
       {
           {"statement_timeout", AT(limits.statement_timeout), "a statement is cancelled after this; 0: never",
            kUpToADay},
           {"hold_timeout",
            AT(limits.hold_timeout),
            "how long statements wait while their shardlet changes hands",
            {.most = 3600 * kSecond}},
           {"gather_bytes",
            AT(limits.gather_bytes),
            "the most that one statement may gather from other shards",
            {.most = kTB}},
           {"max_message",
            AT(limits.max_message),
            "the longest message of a client or a shard",
            {.least = 64 << 10, .most = 1024 * kMB}},
           {"slow_statement", AT(limits.slow_statement),
            "statements that take this long are logged, without their literals; 0: none", kUpToADay},
       }},
      {"log",
       "",
       {
           {"level", AT(log.level), "the least important lines that are written to standard error"},
       }},
  };
}

std::vector<Key<UserConfig>> make_user_keys() {
  return {
      {"name",
       OF_USER(name),
       "the role that a client logs in as",
       {.text = Text::kName, .may_be_empty = false}},
      {"password", OF_USER(password), "the password, in plain text", {.text = Text::kSecret}},
      {"scram", OF_USER(scram), "or its verifier, from pg_authid.rolpassword", {.text = Text::kScram}},
      {"admin", OF_USER(admin), "may change shards, maps and jobs"},
      {"tenant_map",
       OF_USER(tenant_map),
       "set with tenant_key: this user may touch that key of that map and no other",
       {.text = Text::kName}},
      {"tenant_key", OF_USER(tenant_key), "the key, as text"},
  };
}

std::vector<Key<ShardConfig>> make_shard_keys() {
  return {
      {"name",
       OF_SHARD(name),
       "the shard's name; the first one is the home shard",
       {.text = Text::kName, .may_be_empty = false}},
      {"dsn", OF_SHARD(dsn), "how to reach it", {.text = Text::kDsn, .may_be_empty = false}},
  };
}

#undef AT
#undef OF_USER
#undef OF_SHARD

std::string table_head(bool environment) {
  return environment ? "| key | default | allowed | environment | meaning |\n|---|---|---|---|---|\n"
                     : "| key | default | allowed | meaning |\n|---|---|---|---|\n";
}

template <class Owner>
std::string table_row(const Key<Owner>& key, const std::string& environment) {
  Owner defaults;
  Slot slot = key.slot(defaults);
  std::string row = "| `" + std::string(key.name) + "` | ";
  row += !key.rule.may_be_empty && print_value(slot, key.rule) == "\"\""
             ? "must be given"
             : "`" + print_value(slot, key.rule) + "`";
  row += " | " + allowed_in(slot, key.rule) + " | ";
  if (!environment.empty()) row += "`" + environment + "` | ";
  return row + std::string(key.meaning) + " |\n";
}

}  // namespace

const std::vector<Section>& config_sections() {
  static const std::vector<Section> sections = make_sections();
  return sections;
}

const std::vector<Key<UserConfig>>& user_keys() {
  static const std::vector<Key<UserConfig>> keys = make_user_keys();
  return keys;
}

const std::vector<Key<ShardConfig>>& shard_keys() {
  static const std::vector<Key<ShardConfig>> keys = make_shard_keys();
  return keys;
}

const Section* find_section(std::string_view name) {
  for (const Section& section : config_sections()) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

const Key<Config>* find_key(std::string_view section, std::string_view name) {
  const Section* found = find_section(section);
  if (found == nullptr) return nullptr;
  for (const Key<Config>& key : found->keys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string environment_name(std::string_view section, std::string_view key) {
  std::string name = "KINTSUGI_" + std::string(section) + "_" + std::string(key);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string config_reference() {
  std::string text;
  for (const Section& section : config_sections()) {
    text += "### [" + std::string(section.name) + "]\n\n";
    if (!section.meaning.empty()) text += std::string(section.meaning) + "\n\n";
    text += table_head(true);
    for (const auto& key : section.keys) text += table_row(key, environment_name(section.name, key.name));
    text += "\n";
  }
  text +=
      "### [[user]]\n\nWho may log in; as often as there are users, in the file only.\n\n" + table_head(false);
  for (const auto& key : user_keys()) text += table_row(key, "");
  text += "\n### [[shard]]\n\nThe shards to start with; in the file only.\n\n" + table_head(false);
  for (const auto& key : shard_keys()) text += table_row(key, "");
  return text;
}

}  // namespace kintsugi::app
