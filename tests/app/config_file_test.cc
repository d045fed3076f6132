#include "app/config_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/config_keys.h"

namespace kintsugi::app {
namespace {

class ConfigFile : public testing::Test {
 protected:
  ConfigFile() {
    char name[] = "/tmp/kintsugi-config-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/k.toml";
  }
  ~ConfigFile() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }

  Result<LoadedConfig> load(const std::string& text, ConfigSources sources = {}) {
    write("k.toml", text);
    sources.file = path_;
    return load_config(sources);
  }

  // The problems, one a line, without the folder's name.
  std::string problems(const std::string& text, const ConfigSources& sources = {}) {
    auto loaded = load(text, sources);
    if (loaded) return "";
    EXPECT_EQ(loaded.error().sqlstate, "F0000");
    std::string message = loaded.error().message;
    for (std::size_t at; (at = message.find(folder_ + "/")) != std::string::npos;)
      message.erase(at, folder_.size() + 1);
    return message;
  }

  std::string folder_, path_;
};

TEST_F(ConfigFile, NothingGivenIsTheDefaults) {
  auto loaded = load_config({});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->config.server.listen, "127.0.0.1:6432");
  EXPECT_EQ(loaded->config.pool.size, 20);
  EXPECT_EQ(loaded->config.limits.gather_bytes, std::int64_t{1} << 30);
  EXPECT_TRUE(loaded->origins.empty());
}

TEST_F(ConfigFile, TheContractsExample) {
  auto loaded = load(R"(
[server]
listen = "127.0.0.1:7000"
threads = 3
max_clients = 10
[database]
name = "shop"
[map]
store = "postgresql://user@h1,h2/kintsugi?target_session_attrs=read-write"
[pool]
mode = "session"
size = 5
[limits]
statement_timeout = "0"
hold_timeout = "500ms"
gather_bytes = "10MB"
[[user]]
name = "app"
password = "one"
[[user]]
name = "boss"
scram = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
admin = true
[[user]]
name = "tenant"
tenant_map = "tenants"
tenant_key = "42"
[[shard]]
name = "s1"
dsn = "host=db1 dbname=app"
[[shard]]
name = "s2"
dsn = "host=db2 dbname=app"
)");
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Config& config = loaded->config;
  EXPECT_EQ(config.server.threads, 3);
  EXPECT_EQ(config.database.name, "shop");
  EXPECT_EQ(config.pool.mode, PoolMode::kSession);
  EXPECT_EQ(config.limits.hold_timeout, milliseconds(500));
  EXPECT_EQ(config.limits.gather_bytes, 10 << 20);
  ASSERT_EQ(config.users.size(), 3U);
  EXPECT_EQ(config.users[0].password, "one");
  EXPECT_TRUE(config.users[1].admin);
  EXPECT_EQ(config.users[2].tenant_key, "42");
  ASSERT_EQ(config.shards.size(), 2U);
  EXPECT_EQ(config.shards[1].dsn, "host=db2 dbname=app");
  EXPECT_EQ(loaded->origins.at("server.listen"), path_ + ":3");
}

TEST_F(ConfigFile, AWrongKeyOrValueNamesFileLineWhatWasReadAndWhatIsAllowed) {
  EXPECT_EQ(problems("[server]\nthread = 4\n"),
            "k.toml:2: unknown key server.thread (did you mean threads?); server has listen, threads, "
            "tls_cert, tls_key, "
            "max_clients, login_timeout, idle_timeout, transaction_idle_timeout, slow_client_timeout, "
            "shutdown_timeout");
  EXPECT_EQ(problems("\n\n[pool]\nmode = \"transation\"\n"),
            "k.toml:4: pool.mode is \"transation\"; allowed: transaction, session (did you mean transaction?)");
  EXPECT_EQ(problems("[pool]\nsize = 0\n"),
            "k.toml:2: pool.size is 0; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(problems("[pool]\nsize = \"20\"\n"),
            "k.toml:2: pool.size is \"20\"; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(problems("[pool]\nsize = 2.5\n"),
            "k.toml:2: pool.size is 2.5; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(problems("[limits]\nstatement_timeout = 10\n"),
            "k.toml:2: limits.statement_timeout is 10; allowed: a duration in ms, s, min, h or d from 0 to 1d");
  EXPECT_EQ(problems("[poool]\nsize = 1\n"),
            "k.toml:1: unknown section \"poool\" (did you mean pool?); the sections are server, admin, "
            "database, map, pool, "
            "limits, log, user, shard");
  EXPECT_EQ(problems("[[user]]\nname = \"a\"\nadmin = \"yes\"\n"),
            "k.toml:3: user.admin is \"yes\"; allowed: true or false");
}

TEST_F(ConfigFile, EverythingWrongIsFoundAtOnceInTheOrderOfTheLines) {
  EXPECT_EQ(problems("[server]\nthreads = -1\nlisten = \"here\"\n[pool]\nsize = 0\n",
                     {.environment = {{"KINTSUGI_LOG_LEVEL", "loud"}}, .flags = {{"--set", "pool.mode", "x"}}}),
            "k.toml:2: server.threads is -1; allowed: a whole number from 0 to 1024\n"
            "k.toml:3: server.listen is \"here\"; allowed: host:port, as 127.0.0.1:6432 or [::1]:6432 or "
            "localhost:0\n"
            "k.toml:5: pool.size is 0; allowed: a whole number from 1 to 10000\n"
            "environment KINTSUGI_LOG_LEVEL: log.level is \"loud\"; allowed: debug, info, warning, error\n"
            "--set: pool.mode is \"x\"; allowed: transaction, session");
}

TEST_F(ConfigFile, WhatIsNotTomlNamesTheLine) {
  EXPECT_TRUE(problems("[server]\nlisten = \n").starts_with("k.toml:2: "));
  EXPECT_TRUE(problems("[pool]\nsize = 1\nsize = 2\n").starts_with("k.toml:3: "));
  EXPECT_TRUE(load_config({.file = folder_ + "/none.toml"}).error().message.find("none.toml: ") !=
              std::string::npos);
}

TEST_F(ConfigFile, SectionsAndListsInTheWrongShape) {
  EXPECT_EQ(problems("pool = 5\n"),
            "k.toml:1: pool is 5; it is a section: write [pool] and its keys on lines of their own");
  EXPECT_EQ(problems("[user]\nname = \"a\"\n"),
            "k.toml:1: user is a list: write [[user]] before each one's keys");
  EXPECT_EQ(problems("user = [1]\n"), "k.toml:1: user is a list: write [[user]] before each one's keys");
  EXPECT_EQ(problems("[server]\nlisten = [1]\n"),
            "k.toml:2: server.listen is a list; allowed: host:port, as 127.0.0.1:6432 or [::1]:6432 or "
            "localhost:0, in quotes");
  EXPECT_EQ(problems("listen = \"x\"\n"),
            "k.toml:1: unknown key \"listen\"; the sections are server, admin, database, map, pool, limits, "
            "log, user, shard");
}

TEST_F(ConfigFile, EachPlaceIsAboveTheOneBefore) {
  ConfigSources sources;
  EXPECT_EQ(load("[pool]\nsize = 1\n", sources)->config.pool.size, 1);
  sources.environment = {{"KINTSUGI_POOL_SIZE", "2"}};
  auto loaded = load("[pool]\nsize = 1\n", sources);
  EXPECT_EQ(loaded->config.pool.size, 2);
  EXPECT_EQ(loaded->origins.at("pool.size"), "environment KINTSUGI_POOL_SIZE");
  sources.flags = {{"--set", "pool.size", "3"}};
  loaded = load("[pool]\nsize = 1\n", sources);
  EXPECT_EQ(loaded->config.pool.size, 3);
  EXPECT_EQ(loaded->origins.at("pool.size"), "--set");
}

// Every key can be set from the environment: a key that the loop below cannot set has no way in.
TEST_F(ConfigFile, EveryKeyHasAnEnvironmentVariable) {
  for (const Section& section : config_sections()) {
    for (const auto& key : section.keys) {
      Config defaults;
      Slot slot = key.slot(defaults);
      std::string text = "/dev/null";
      if (std::holds_alternative<int*>(slot)) text = "7";
      if (std::holds_alternative<bool*>(slot)) text = "true";
      if (std::holds_alternative<milliseconds*>(slot)) text = "7s";
      if (std::holds_alternative<std::int64_t*>(slot)) text = "7MB";
      if (std::holds_alternative<PoolMode*>(slot)) text = "session";
      if (std::holds_alternative<log::Level*>(slot)) text = "error";
      if (key.rule.text == Text::kAddress) text = "127.0.0.1:7";
      if (key.rule.text == Text::kStore) text = "sqlite:/seven";
      ConfigSources sources{.environment = {{environment_name(section.name, key.name), text}}};
      if (key.name.starts_with("tls_")) {  // one without the other is refused
        sources.environment = {{environment_name(section.name, "tls_cert"), text},
                               {environment_name(section.name, "tls_key"), text}};
      }
      auto loaded = load_config(sources);
      ASSERT_TRUE(loaded) << loaded.error().message;
      std::string printed = print_value(key.slot(loaded->config), key.rule);
      EXPECT_TRUE(printed == text || printed == "\"" + text + "\"")
          << section.name << "." << key.name << " " << printed;
    }
  }
}

TEST_F(ConfigFile, AMisspeltVariableIsFoundAndAForeignOneIsLeftAlone) {
  EXPECT_EQ(problems("", {.environment = {{"KINTSUGI_POOL_SIZ", "2"}}}),
            "environment KINTSUGI_POOL_SIZ: no such setting (did you mean KINTSUGI_POOL_SIZE?)");
  EXPECT_EQ(
      problems("", {.environment = {{"KINTSUGI_SERVER_PORT", "tcp://10.0.0.1:6432"}, {"KINTSUGI_ADMIN", "x"}}}),
      "");
  EXPECT_EQ(problems("", {.flags = {{"--set", "pool.siz", "2"}}}),
            "--set: unknown key pool.siz (did you mean pool.size?)");
}

TEST_F(ConfigFile, OutsideLoopbackEveryUserNeedsAPassword) {
  const std::string open = "[server]\nlisten = \"0.0.0.0:6432\"\n";
  const std::string because = " is not on loopback and needs users with passwords; ";
  EXPECT_EQ(problems(open), "k.toml:2: server.listen = \"0.0.0.0:6432\"" + because + "there is no [[user]]");
  EXPECT_EQ(problems(open + "[[user]]\nname = \"a\"\npassword = \"p\"\n[[user]]\nname = \"b\"\n"),
            "k.toml:6: server.listen = \"0.0.0.0:6432\"" + because + "user \"b\" has none");
  EXPECT_EQ(problems(open + "[[user]]\nname = \"a\"\npassword = \"p\"\n"), "");
  EXPECT_EQ(problems("[admin]\nlisten = \"[::]:8432\"\n"),
            "k.toml:2: admin.listen = \"[::]:8432\"" + because + "there is no [[user]]");
  EXPECT_EQ(problems("", {.flags = {{"--listen", "server.listen", "10.0.0.1:1"}}}),
            "--listen: server.listen = \"10.0.0.1:1\"" + because + "there is no [[user]]");
  EXPECT_EQ(problems("[server]\nlisten = \"[::1]:6432\"\n"), "");
}

TEST_F(ConfigFile, UsersAndShardsAsAWhole) {
  EXPECT_EQ(problems("[[user]]\nadmin = true\n"), "k.toml:1: a user without name");
  EXPECT_EQ(problems("[[user]]\nname = \"a\"\n[[user]]\nname = \"a\"\n"), "k.toml:3: a second user \"a\"");
  EXPECT_EQ(problems("[[user]]\nname = \"a\"\ntenant_map = \"m\"\n"),
            "k.toml:1: user \"a\" has only one of tenant_map and tenant_key; give both or none");
  EXPECT_EQ(problems("[[shard]]\nname = \"s\"\n"), "k.toml:1: a shard without dsn");
  EXPECT_EQ(
      problems("[[shard]]\nname = \"s\"\ndsn = \"dbname=a\"\n[[shard]]\nname = \"s\"\ndsn = \"dbname=b\"\n"),
      "k.toml:4: a second shard \"s\"");
}

TEST_F(ConfigFile, RelativePathsAreUnderData) {
  write("cert.pem", "");
  write("key.pem", "");
  auto loaded = load("[server]\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n[map]\nreplica = \"/r.db\"\n",
                     {.data = folder_});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->config.server.tls_cert, folder_ + "/cert.pem");
  EXPECT_EQ(loaded->config.map.store, "sqlite:" + folder_ + "/map.db");
  EXPECT_EQ(loaded->config.map.replica, "/r.db");
  EXPECT_EQ(loaded->config.admin.token_file, folder_ + "/admin.token");
}

TEST_F(ConfigFile, TlsNeedsBothFilesAndCanReadThem) {
  EXPECT_EQ(problems("[server]\ntls_cert = \"/dev/null\"\n"),
            "k.toml:2: server.tls_cert stands alone; TLS needs both tls_cert and tls_key");
  EXPECT_EQ(problems("[server]\ntls_cert = \"/none.pem\"\ntls_key = \"/dev/null\"\n"),
            "k.toml:2: server.tls_cert: cannot read \"/none.pem\": No such file or directory");
}

TEST_F(ConfigFile, SecretsAppearNeitherInTheDescriptionNorInErrors) {
  auto loaded = load(
      "[[user]]\nname = \"a\"\npassword = \"geheim\"\n[[shard]]\nname = \"s\"\ndsn = \"host=h dbname=d "
      "password=geheim\"\n");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(describe_config(*loaded).find("geheim"), std::string::npos);
  for (const char* text :
       {"[[user]]\nname = \"a\"\npassword = \"geheim\"\nscram = \"geheim\"\n",
        "[[user]]\nname = \"a\"\nscram = \"geheim\"\n", "[map]\nstore = \"pg://u:geheim@h/db\"\n"}) {
    std::string found = problems(text);
    EXPECT_NE(found, "");
    EXPECT_EQ(found.find("geheim"), std::string::npos) << found;
  }
}

// What check-config prints is a configuration itself, of the same values.
TEST_F(ConfigFile, TheDescriptionCanBeReadAgain) {
  auto loaded =
      load("[pool]\nsize = 3\nidle_timeout = \"90s\"\n[[shard]]\nname = \"s\"\ndsn = \"host=h dbname=d\"\n");
  ASSERT_TRUE(loaded);
  std::string described = describe_config(*loaded);
  auto again = load(described);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->config.pool.size, 3);
  EXPECT_EQ(again->config.pool.idle_timeout, milliseconds(90000));
  EXPECT_EQ(again->config.shards.at(0).dsn, "host=h dbname=d");
  EXPECT_NE(described.find("# " + path_ + ":2"), std::string::npos);
}

// docs/operations.md holds the reference as the table gives it. KINTSUGI_ACCEPT=1 writes it anew.
TEST(ConfigReference, TheDocumentAgreesWithTheTable) {
  const std::string begin = "<!-- configuration reference: written by the test of the same name -->\n";
  const std::string end = "<!-- end of the configuration reference -->\n";
  const char* path = "docs/operations.md";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string document = text.str();
  std::size_t from = document.find(begin);
  std::size_t to = document.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << "the marks are missing in " << path;
  from += begin.size();
  if (std::getenv("KINTSUGI_ACCEPT") != nullptr) {
    std::ofstream(path) << document.substr(0, from) << "\n"
                        << config_reference() << "\n"
                        << document.substr(to);
    return;
  }
  EXPECT_EQ(document.substr(from, to - from), "\n" + config_reference() + "\n") << "run with KINTSUGI_ACCEPT=1";
}

}  // namespace
}  // namespace kintsugi::app
