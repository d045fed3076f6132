#include "executor/dsn.h"

#include <gtest/gtest.h>

namespace kintsugi::executor {
namespace {

std::string refusal(std::string_view text) {
  auto dsn = Dsn::parse(text);
  return dsn ? "taken: " + dsn->to_string() : dsn.error().message;
}

Dsn taken(std::string_view text) {
  auto dsn = Dsn::parse(text);
  EXPECT_TRUE(dsn) << text << ": " << dsn.error().to_string();
  return dsn.value_or(Dsn{});
}

std::vector<std::string> hosts_of(std::string_view text) {
  std::vector<std::string> hosts;
  for (const io::HostPort& at : taken(text).hosts) hosts.push_back(at.to_string());
  return hosts;
}

}  // namespace

TEST(Dsn, KeywordsAndUrisMeanTheSame) {
  for (const char* text : {"host=db1 port=5433 dbname=app user=u password='p w'",
                           "postgresql://u:p%20w@db1:5433/app", "postgres://u:p%20w@db1:5433/app"}) {
    const Dsn dsn = taken(text);
    ASSERT_EQ(dsn.hosts.size(), 1U);
    EXPECT_EQ(dsn.hosts[0].host, "db1");
    EXPECT_EQ(dsn.hosts[0].port, 5433);
    EXPECT_EQ(dsn.dbname, "app");
    EXPECT_EQ(dsn.user, "u");
    EXPECT_EQ(dsn.password, "p w");
  }
}

TEST(Dsn, WhatIsLeftOutHasPostgresqlsDefaults) {
  const Dsn dsn = taken("dbname=app");
  EXPECT_EQ(dsn.hosts, (std::vector<io::HostPort>{{"localhost", 5432}}));
  EXPECT_EQ(dsn.user, "") << "the client's own";
  EXPECT_EQ(dsn.ssl_mode, SslMode::kPrefer);
  EXPECT_FALSE(dsn.require_channel_binding);
  EXPECT_FALSE(dsn.require_read_write);
}

TEST(Dsn, ListsOfHosts) {
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(hosts_of("host=a,b,c port=1,2,3 dbname=x"), (Hosts{"a:1", "b:2", "c:3"}));
  EXPECT_EQ(hosts_of("host=a,b port=7 dbname=x"), (Hosts{"a:7", "b:7"}));
  EXPECT_EQ(hosts_of("host=a,,b dbname=x"), (Hosts{"a:5432", "localhost:5432", "b:5432"}));
  EXPECT_EQ(hosts_of("postgresql://u@a:1,b:2/x"), (Hosts{"a:1", "b:2"}));
  EXPECT_EQ(hosts_of("hostaddr=::1 port=9 dbname=x"), (Hosts{"[::1]:9"}));
  EXPECT_EQ(hosts_of("host=/run/pg dbname=x"), (Hosts{"/run/pg:5432"}));
  EXPECT_NE(refusal("host=a,b,c port=1,2 dbname=x").find("3 hosts but 2 ports"), std::string::npos);
  for (const char* port : {"0", "65536", "x", "12x", "-1"}) {
    EXPECT_NE(refusal("host=a dbname=x port=" + std::string(port)).find("is not a number from 1 to 65535"),
              std::string::npos)
        << port;
  }
}

TEST(Dsn, AnAddressIsWhereAndAHostIsWho) {
  const Dsn dsn = taken("host=db1.example,db2.example hostaddr=10.0.0.1,10.0.0.2 dbname=x");
  EXPECT_EQ(dsn.hosts, (std::vector<io::HostPort>{{"10.0.0.1", 5432}, {"10.0.0.2", 5432}}));
  EXPECT_EQ(dsn.name_of({"10.0.0.2", 5432}), "db2.example");
  EXPECT_EQ(taken("host=db1 dbname=x").name_of({"db1", 5432}), "db1");
  EXPECT_EQ(taken("hostaddr=10.0.0.1 dbname=x").name_of({"10.0.0.1", 5432}), "10.0.0.1");
  EXPECT_NE(refusal("host=a,b hostaddr=10.0.0.1 dbname=x").find("2 hosts but 1 host addresses"),
            std::string::npos);
}

TEST(Dsn, Tls) {
  EXPECT_EQ(taken("dbname=x sslmode=disable").ssl_mode, SslMode::kDisable);
  EXPECT_EQ(taken("dbname=x sslmode=allow").ssl_mode, SslMode::kAllow);
  EXPECT_EQ(taken("dbname=x sslmode=prefer").ssl_mode, SslMode::kPrefer);
  EXPECT_EQ(taken("dbname=x sslmode=require").ssl_mode, SslMode::kRequire);
  EXPECT_EQ(taken("dbname=x sslmode=verify-ca").ssl_mode, SslMode::kVerifyCa);
  EXPECT_EQ(taken("dbname=x sslmode=verify-full").ssl_mode, SslMode::kVerifyFull);
  EXPECT_NE(refusal("dbname=x sslmode=maybe").find("sslmode"), std::string::npos);
  EXPECT_NE(refusal("host=/run/pg dbname=x sslmode=verify-full").find("unix socket"), std::string::npos);
  const Dsn dsn = taken("dbname=x sslrootcert=/a sslcert=/b sslkey=/c channel_binding=require");
  EXPECT_EQ(dsn.ssl_root_cert + dsn.ssl_cert + dsn.ssl_key, "/a/b/c");
  EXPECT_TRUE(dsn.require_channel_binding);
  EXPECT_EQ(taken("dbname=x sslrootcert=system").ssl_root_cert, "");
}

TEST(Dsn, AShardHasToTakeWrites) {
  EXPECT_TRUE(taken("dbname=x target_session_attrs=read-write").require_read_write);
  EXPECT_TRUE(taken("dbname=x target_session_attrs=primary").require_read_write);
  EXPECT_FALSE(taken("dbname=x target_session_attrs=any").require_read_write);
  EXPECT_NE(refusal("dbname=x target_session_attrs=standby").find("makes no sense for a shard"),
            std::string::npos);
}

TEST(Dsn, WhatIsNotSupportedIsNamed) {
  EXPECT_NE(refusal("dbname=x passfile=/p").find("\"passfile\" is not supported"), std::string::npos);
  EXPECT_NE(refusal("dbname=x nonsense=1").find("invalid connection option"), std::string::npos);
  EXPECT_NE(refusal("host=x").find("names no database"), std::string::npos);
  EXPECT_EQ(taken("dbname=x options='-c work_mem=1MB' keepalives=1 connect_timeout=3").options,
            "-c work_mem=1MB");
}

// libpq quotes the piece that it could not read, and that may be a part of a password.
TEST(Dsn, NoSecretInAnErrorOrAName) {
  for (const char* text :
       {"password=s3cret dbname", "host=a password=my s3cret dbname=x", "postgresql://u:s3cret@[::1/x",
        "host=a port=99999 password=s3cret dbname=x", "host=a password='s3cret", "password=s3cret"}) {
    auto dsn = Dsn::parse(text);
    ASSERT_FALSE(dsn) << text;
    EXPECT_EQ(dsn.error().to_string().find("s3cret"), std::string::npos) << text;
  }
  EXPECT_EQ(taken("host=a user=u password=s3cret options='-c x=s3cret' dbname=d").to_string(), "a:5432/d");
}

}  // namespace kintsugi::executor
