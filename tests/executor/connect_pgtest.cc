// Every way to log in to a PostgreSQL, with every sslmode, done by libpq and by us: both get in or neither
// does, both end up with TLS or without it, and the reason given is the server's.
#include <libpq-fe.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/executor/scene.h"
#include "tests/pg/cluster.h"

namespace kintsugi::executor {
namespace {

const std::string kRight = "Sesame-42";

void shell(const std::string& command) {
  if (std::system((command + " >/dev/null 2>&1").c_str()) != 0) {
    throw std::runtime_error("failed: " + command);
  }
}

// A CA and what it signed: a certificate for the name "shard.test" alone. And another CA that signed nothing.
class Certificates {
 public:
  Certificates() {
    std::string name = (std::filesystem::temp_directory_path() / "kg-tls-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    directory_ = name;
    chmod(name.c_str(), 0755);
    for (const char* ca : {"ca", "other"}) {
      shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" +
            std::string(ca) + " -keyout " + path(ca) + ".key -out " + path(ca) + ".crt");
    }
    shell("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=shard.test -keyout " +
          path("server.key") + " -out " + path("server.csr"));
    std::ofstream(path("names")) << "subjectAltName=DNS:shard.test\n";
    shell("openssl x509 -req -days 2 -in " + path("server.csr") + " -CA " + path("ca.crt") + " -CAkey " +
          path("ca.key") + " -CAcreateserial -extfile " + path("names") + " -out " + path("server.crt"));
    chmod(path("server.key").c_str(), 0600);
    if (geteuid() == 0) shell("chown postgres " + path("server.key"));
  }
  ~Certificates() { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string path(const std::string& file) const { return directory_ + "/" + file; }

 private:
  std::string directory_;
};

// One cluster for all: who must prove himself how is a matter of the role's name, and so is with or without
// TLS: r_<method>_<any|tls|plain>.
class Connect : public ::testing::Test {
 protected:
  static constexpr const char* kMethods[] = {"trust", "password", "md5", "scram"};
  static constexpr const char* kKinds[] = {"any", "tls", "plain"};

  static void SetUpTestSuite() {
    certificates_ = std::make_unique<Certificates>();
    cluster_ = std::make_unique<pgtest::Cluster>(
        pgtest::ClusterOptions{{"ssl = on", "ssl_cert_file = '" + certificates_->path("server.crt") + "'",
                                "ssl_key_file = '" + certificates_->path("server.key") + "'"}});
    std::string hba = "local all all trust\nhost all,replication postgres 127.0.0.1/32 trust\n", sql;
    for (const std::string method : kMethods) {
      for (const std::string kind : kKinds) {
        const std::string role = "r_" + method + "_" + kind;
        const std::string how = method == "scram" ? "scram-sha-256" : method;
        hba += std::string(kind == "any"   ? "host"
                           : kind == "tls" ? "hostssl"
                                           : "hostnossl") +
               " all " + role + " 127.0.0.1/32 " + how + "\n";
        sql += "SET password_encryption = '" + std::string(method == "md5" ? "md5" : "scram-sha-256") +
               "'; CREATE ROLE " + role + " LOGIN PASSWORD 'Sesame-42';\n";
      }
    }
    std::ofstream(cluster_->directory() + "/data/pg_hba.conf") << hba;
    pgtest::psql(cluster_->dsn(), sql + "SELECT pg_reload_conf()");
    // A reload happens some time later; a new connection under the new rules is what shows it.
    for (int i = 0; i < 200 && by_libpq(dsn("r_scram_any", "wrong", "disable")).first != ""; ++i) {
      usleep(20'000);
    }
  }
  static void TearDownTestSuite() {
    cluster_.reset();
    certificates_.reset();
  }

  static std::string dsn(const std::string& role, const std::string& password, const std::string& mode,
                         const std::string& more = "") {
    return "hostaddr=127.0.0.1 port=" + std::to_string(cluster_->port()) + " dbname=postgres user=" + role +
           (password.empty() ? "" : " password=" + password) + " sslmode=" + mode + " " + more +
           " gssencmode=disable connect_timeout=20";
  }
  static std::string ca() { return "sslrootcert=" + certificates_->path("ca.crt"); }
  static std::string other_ca() { return "sslrootcert=" + certificates_->path("other.crt"); }

  // "tls" or "plain", or "" and the error's message.
  static std::pair<std::string, std::string> by_libpq(const std::string& dsn) {
    std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb((dsn + " passfile=/none").c_str()),
                                                            PQfinish);
    if (PQstatus(connection.get()) != CONNECTION_OK) return {"", PQerrorMessage(connection.get())};
    return {PQsslInUse(connection.get()) != 0 ? "tls" : "plain", ""};
  }

  static io::Task<std::pair<std::string, std::string>> connect_and_ask(io::Waiter* waiter, std::string dsn) {
    using Outcome = std::pair<std::string, std::string>;
    auto parsed = Dsn::parse(dsn);
    if (!parsed) co_return Outcome("", parsed.error().to_string());
    auto login = ShardLogin::make("s9", *parsed, "nobody", "", std::nullopt);
    if (!login) co_return Outcome("", login.error().to_string());
    auto connecting = connect_shard(*login, Settings::none(), waiter, patience());
    auto made = co_await std::move(connecting);
    if (!made) co_return Outcome("", made.error().to_string());
    auto asking =
        run_control_query(made->get(), "SELECT ssl, current_user FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
                          waiter, patience());
    auto rows = co_await std::move(asking);
    if (!rows) co_return Outcome("", rows.error().to_string());
    EXPECT_EQ(*(*rows)[0][1], (*login)->role);
    EXPECT_EQ(*(*rows)[0][0] == "t", (*made)->stream.encrypted());
    EXPECT_EQ((*made)->status, wire::TransactionStatus::kIdle);
    EXPECT_NE((*made)->reported->find("server_version"), nullptr);
    EXPECT_NE((*made)->key.pid, 0U);
    co_return Outcome(*(*rows)[0][0] == "t" ? "tls" : "plain", "");
  }
  static std::pair<std::string, std::string> by_us(const std::string& dsn) {
    return act<std::pair<std::string, std::string>, std::string>(connect_and_ask, dsn);
  }

  static std::unique_ptr<Certificates> certificates_;
  static std::unique_ptr<pgtest::Cluster> cluster_;
};
std::unique_ptr<Certificates> Connect::certificates_;
std::unique_ptr<pgtest::Cluster> Connect::cluster_;

TEST_F(Connect, AsLibpqDoesWithEveryMethodAndSslmode) {
  int in = 0, out = 0, by_the_other_way = 0;
  for (const std::string method : kMethods) {
    for (const std::string kind : kKinds) {
      for (const std::string& password : {kRight, std::string("wrong"), std::string()}) {
        for (const std::string mode : {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}) {
          const std::string text = dsn("r_" + method + "_" + kind, password, mode, ca() + " host=shard.test");
          const auto theirs = by_libpq(text);
          const auto ours = by_us(text);
          EXPECT_EQ(ours.first, theirs.first)
              << text << "\nlibpq: " << theirs.second << "\nwe: " << ours.second;
          ++(ours.first.empty() ? out : in);
          if ((mode == "allow" && ours.first == "tls") || (mode == "prefer" && ours.first == "plain")) {
            ++by_the_other_way;
          }
          if (ours.first.empty()) {
            EXPECT_TRUE(ours.second.starts_with("KG005: shard s9 is unreachable: ")) << ours.second;
            EXPECT_EQ(ours.second.find(kRight), std::string::npos);
          }
          if (method != "trust" && password == "wrong" && mode != "disable" && mode != "require" &&
              !mode.starts_with("verify")) {
            // Both ways were tried; the one that says what is the matter is the one that is told.
            EXPECT_NE(ours.second.find("password authentication failed"), std::string::npos)
                << text << ": " << ours.second;
          }
        }
      }
    }
  }
  EXPECT_GT(in, 50);
  EXPECT_GT(out, 50);
  EXPECT_GE(by_the_other_way, 8);
}

TEST_F(Connect, TheCertificateIsHeldAgainstCaAndName) {
  const std::string role = "r_scram_any";
  const struct {
    std::string mode, more, expected;
  } cases[] = {
      {"require", "host=elsewhere.test", "tls"},
      {"require", "host=shard.test " + ca(), "tls"},
      {"verify-ca", "host=elsewhere.test " + ca(), "tls"},
      {"verify-full", "host=shard.test " + ca(), "tls"},
      {"verify-full", "host=elsewhere.test " + ca(), ""},
      {"verify-full", ca(), ""},  // the certificate is for a name, and only a number is given
      {"verify-ca", "host=shard.test " + other_ca(), ""},
      {"verify-full", "host=shard.test " + other_ca(), ""},
      {"verify-ca", "host=shard.test sslrootcert=/does/not/exist", ""},
  };
  for (const auto& c : cases) {
    const std::string text = dsn(role, kRight, c.mode, c.more);
    EXPECT_EQ(by_libpq(text).first, c.expected) << text;
    const auto ours = by_us(text);
    EXPECT_EQ(ours.first, c.expected) << text << ": " << ours.second;
  }
  const auto name = by_us(dsn(role, kRight, "verify-full", "host=elsewhere.test " + ca()));
  EXPECT_NE(name.second.find("ostname mismatch"), std::string::npos) << name.second;
  const auto chain = by_us(dsn(role, kRight, "verify-ca", other_ca()));
  EXPECT_NE(chain.second.find("certificate"), std::string::npos) << chain.second;
}

TEST_F(Connect, ChannelBindingIsHadWhereItIsAskedFor) {
  for (const std::string mode : {"disable", "prefer", "require"}) {
    for (const std::string method : kMethods) {
      const std::string text = dsn("r_" + method + "_any", kRight, mode, "channel_binding=require");
      const auto theirs = by_libpq(text);
      const auto ours = by_us(text);
      EXPECT_EQ(ours.first, theirs.first) << text << "\nlibpq: " << theirs.second << "\nwe: " << ours.second;
      EXPECT_EQ(ours.first, method == "scram" && mode != "disable" ? "tls" : "") << text;
    }
  }
}

TEST_F(Connect, AServerWithoutTls) {
  pgtest::Cluster plain;
  const std::string base = "host=127.0.0.1 port=" + std::to_string(plain.port()) +
                           " dbname=postgres user=postgres connect_timeout=20 gssencmode=disable sslmode=";
  for (const std::string mode : {"disable", "allow", "prefer"}) EXPECT_EQ(by_us(base + mode).first, "plain");
  for (const std::string& mode : {std::string("require"), "verify-ca " + ca()}) {
    const auto refused = by_us(base + mode);
    EXPECT_EQ(refused.first, "");
    EXPECT_NE(refused.second.find("does not offer TLS"), std::string::npos) << refused.second;
  }
  // And over its unix socket, where no sslmode asks for TLS.
  for (const std::string mode : {"disable", "allow", "prefer", "require"}) {
    const std::string text = "host=" + plain.directory() + " port=" + std::to_string(plain.port()) +
                             " dbname=postgres user=postgres sslmode=" + mode;
    EXPECT_EQ(by_us(text).first, by_libpq(text).first) << mode;
    EXPECT_EQ(by_us(text).first, "plain") << mode;
  }
}

TEST_F(Connect, TheNextHostIsTriedAndAStandbyIsNoShard) {
  pgtest::Cluster standby = pgtest::Cluster::standby_of(*cluster_);
  const std::string ports = std::to_string(standby.port()) + "," + std::to_string(cluster_->port());
  const std::string rest = " dbname=postgres user=postgres sslmode=disable target_session_attrs=";
  EXPECT_EQ(by_us("host=127.0.0.1,127.0.0.1 port=1," + std::to_string(cluster_->port()) + rest + "any").first,
            "plain");
  EXPECT_EQ(by_us("host=127.0.0.1,127.0.0.1 port=" + ports + rest + "primary").first, "plain");
  const auto refused = by_us("host=127.0.0.1 port=" + std::to_string(standby.port()) + rest + "read-write");
  EXPECT_EQ(refused.first, "");
  EXPECT_NE(refused.second.find("is a standby"), std::string::npos) << refused.second;
  const auto nowhere = by_us("host=127.0.0.1 port=1" + rest + "any");
  EXPECT_NE(nowhere.second.find("Connection refused"), std::string::npos) << nowhere.second;
}

}  // namespace
}  // namespace kintsugi::executor
