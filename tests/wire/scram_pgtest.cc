// Logging in to a real PostgreSQL, and its verifiers in our hands.
#include <gtest/gtest.h>

#include "tests/wire/real_postgres.h"
#include "wire/scram_crypto.h"

namespace kintsugi::wire {
namespace {

std::string sql_literal(std::string_view text) {
  std::string out = "'";
  for (char c : text) out.append(c == '\'' ? 2 : 1, c);
  return out + "'";
}

class ScramPg : public ::testing::Test {
 protected:
  ScramPg() : port_(RealPostgres::shared().port()), admin_(log_in(port_, Login{}).value()) {}

  void role(const std::string& name, std::string_view password,
            const std::string& encryption = "scram-sha-256") {
    ASSERT_TRUE(ask(*admin_.peer, "set password_encryption = '" + encryption + "'"));
    ASSERT_TRUE(ask(*admin_.peer, "drop role if exists " + name));
    auto made = ask(*admin_.peer, "create role " + name + " login password " + sql_literal(password));
    ASSERT_TRUE(made) << made.error().to_string();
  }
  std::string stored(const std::string& name) {
    return ask(*admin_.peer, "select rolpassword from pg_authid where rolname = " + sql_literal(name)).value();
  }
  Result<std::string> who(const Login& login, std::string* method = nullptr) {
    KG_TRY(auto session, log_in(port_, login));
    if (method) *method = session.method;
    return ask(*session.peer, "select current_user");
  }

  int port_;
  LoggedIn admin_;
};

// UTF-8 that SASLprep changes, leaves alone, and refuses. PostgreSQL has its own tables for it.
const std::string_view kPasswords[] = {
    "secret",
    " with spaces , and = signs ",
    "\x01\x7f",
    "p\xC3\xA4ssw\xC3\xB6rd",                // composed
    "pa\xCC\x88sswo\xCC\x88rd",              // decomposed: the same one after NFKC
    "I\xC2\xADX",                            // soft hyphen
    "\xE2\x85\xA8",                          // ROMAN NUMERAL NINE
    "\xC2\xAA",                              // FEMININE ORDINAL INDICATOR
    "a\xC2\xA0z\xE3\x80\x80z",               // foreign spaces
    "\xEF\xBD\x90\xEF\xBD\x87",              // full width
    "\xEF\xB7\xBA",                          // one that becomes eighteen
    "\xE2\x80\x8Bx",                         // ZERO WIDTH SPACE
    "\xC2\xAD",                              // nothing would be left
    "\xD8\xA7\xD8\xA8",                      // right to left
    "\xD8\xA7\x31",                          // right to left, ending otherwise: prohibited
    "\xD8\xA7\x61\xD8\xA8",                  // mixed directions: prohibited
    "\xC8\xA1",                              // unassigned in Unicode 3.2: prohibited
    "\xF0\x9F\x98\x80",                      // an emoji: likewise
    "\xE1\xBA\x9E",                          // CAPITAL SHARP S: likewise
    "x\xC2\x85",                             // a control
    "\xEE\x80\x80",                          // private use
    "\xEF\xBF\xBD",                          // REPLACEMENT CHARACTER
    "\xE2\x84\xAB\xE2\x84\xA6",              // ANGSTROM and OHM SIGN
    "\xEA\xB0\x80\xE1\x84\x80\xE1\x85\xA1",  // Hangul, composed and not
    "\xF0\xA0\x80\x80",                      // an ideograph beyond the BMP
    "\xF3\xA0\x81\x81",                      // a tagging character
};

}  // namespace

TEST_F(ScramPg, AStoredVerifierAcceptsTheRightPasswordOnly) {
  for (std::string_view password : kPasswords) {
    role("s_stored", password);
    std::string text = stored("s_stored");
    auto verifier = ScramVerifier::parse(text);
    ASSERT_TRUE(verifier) << text;
    EXPECT_EQ(verifier->to_string(), text);
    EXPECT_TRUE(verifier->accepts(password)) << password;
    EXPECT_EQ(ScramVerifier::from_password(password, verifier->salt, verifier->iterations), *verifier)
        << password;
    EXPECT_FALSE(verifier->accepts(std::string(password) + "x"));
    EXPECT_FALSE(verifier->accepts(""));
  }
}

TEST_F(ScramPg, OurClientLogsInWithEachPassword) {
  for (std::string_view password : kPasswords) {
    role("s_login", password);
    std::string method;
    auto name = who({.user = "s_login", .password = std::string(password)}, &method);
    ASSERT_TRUE(name) << password << ": " << name.error().to_string();
    EXPECT_EQ(*name, "s_login");
    EXPECT_EQ(method, "SCRAM-SHA-256");
  }
  role("s_login", "p\xC3\xA4ssw\xC3\xB6rd");
  EXPECT_TRUE(who({.user = "s_login", .password = "pa\xCC\x88sswo\xCC\x88rd"}));  // the other spelling
  auto wrong = who({.user = "s_login", .password = "passwort"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().sqlstate, "28P01");
}

TEST_F(ScramPg, APasswordThatIsNoUtf8) {
  (void)ask(*admin_.peer,
            "create database bytes encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0");
  auto bytes = log_in(port_, Login{.database = "bytes", .encoding = "SQL_ASCII"});
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  ASSERT_TRUE(ask(*bytes->peer, "drop role if exists s_bytes"));
  ASSERT_TRUE(ask(*bytes->peer, "create role s_bytes login password 'caf\xE9'"));
  EXPECT_TRUE(ScramVerifier::parse(stored("s_bytes"))->accepts("caf\xE9"));
  EXPECT_TRUE(who({.user = "s_bytes", .password = "caf\xE9"}));
  EXPECT_FALSE(who({.user = "s_bytes", .password = "caf\xC3\xA9"}));
}

TEST_F(ScramPg, PostgresqlTakesOurVerifier) {
  for (std::uint32_t iterations : {1U, 4096U, 10'000U}) {
    auto verifier = ScramVerifier::from_password("p\xC3\xA4ss", scram::random_bytes(24), iterations);
    role("s_ours", verifier.to_string());
    EXPECT_EQ(stored("s_ours"), verifier.to_string());  // stored as it is, not hashed once more
    EXPECT_TRUE(who({.user = "s_ours", .password = "p\xC3\xA4ss"}));
    EXPECT_FALSE(who({.user = "s_ours", .password = "pass"}));
  }
}

TEST_F(ScramPg, Md5AndCleartext) {
  role("m_all", "secret", "md5");
  std::string method;
  EXPECT_EQ(who({.user = "m_all", .password = "secret"}, &method).value(), "m_all");
  EXPECT_EQ(method, "md5");
  EXPECT_EQ(who({.user = "m_all", .password = "Secret"}).error().sqlstate, "28P01");
  role("p_all", "secret");
  EXPECT_EQ(who({.user = "p_all", .password = "secret"}, &method).value(), "p_all");
  EXPECT_EQ(method, "password");
  EXPECT_EQ(who({.user = "p_all", .password = "Secret"}).error().sqlstate, "28P01");
}

TEST_F(ScramPg, ChannelBindingWithCertificatesOfManyHashes) {
  role("s_plus", "secret");
  for (const char* arguments :
       {"-newkey rsa:2048 -sha256", "-newkey rsa:2048 -sha384", "-newkey rsa:2048 -sha512",
        "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -sha256",
        "-newkey ec -pkeyopt ec_paramgen_curve:P-384 -sha384",
        "-newkey rsa:2048 -sha384 -sigopt rsa_padding_mode:pss"}) {
    RealPostgres::shared().use_certificate(arguments);
    std::string method;
    auto name = who({.user = "s_plus", .password = "secret", .tls = true}, &method);
    ASSERT_TRUE(name) << arguments << ": " << name.error().to_string();
    EXPECT_EQ(method, "SCRAM-SHA-256-PLUS") << arguments;
    EXPECT_EQ(who({.user = "s_plus", .password = "Secret", .tls = true}).error().sqlstate, "28P01");
    auto stolen =
        who({.user = "s_plus", .password = "secret", .tls = true, .wrong_binding = std::string(32, 'x')});
    ASSERT_FALSE(stolen);
    EXPECT_EQ(stolen.error().message, "SCRAM channel binding check failed");
    EXPECT_EQ(stolen.error().sqlstate, "28000");
  }
}

TEST_F(ScramPg, KeysOfAClientOpenTheShard) {
  role("s_keys", "secret");
  // A client that proves itself to us against PostgreSQL's own verifier ...
  ScramServer server(ScramVerifier::parse(stored("s_keys")).value(), "");
  ScramClient client("secret", "", false);
  auto first = server.first(kScramSha256, client.first());
  ASSERT_TRUE(server.final(client.respond(*first).value()));
  // ... lets us in there, without the password, and with the server proving itself too.
  EXPECT_EQ(who({.user = "s_keys", .keys = server.keys()}).value(), "s_keys");
  // The same password with a new salt is another lock.
  role("s_keys", "secret");
  EXPECT_EQ(who({.user = "s_keys", .keys = server.keys()}).error().sqlstate, "28P01");
}

}  // namespace kintsugi::wire
