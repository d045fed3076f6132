// SCRAM: the RFC's own example, both ends against each other, and everything that a hostile end may send.
#include "wire/scram.h"

#include <gtest/gtest.h>

#include "wire/saslprep.h"
#include "wire/scram_crypto.h"

namespace kintsugi::wire {

struct ScramNonces {
  static void set(ScramServer& server, std::string nonce) { server.nonce_ = std::move(nonce); }
  static void set(ScramClient& client, std::string user, std::string nonce) {
    client.user_ = std::move(user);
    client.nonce_ = std::move(nonce);
  }
};

namespace {
constexpr std::string_view kRfcClientFirst = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
constexpr std::string_view kRfcServerFirst =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
constexpr std::string_view kRfcClientFinal =
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+"
    "Ute9ytag9zjfMHgsqmmiz7AndVQ=";
constexpr std::string_view kRfcServerFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

ScramVerifier rfc_verifier() {
  return ScramVerifier::from_password("pencil", *scram::from_base64("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096);
}
ScramServer rfc_server() {
  ScramServer server(rfc_verifier(), "");
  ScramNonces::set(server, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
  return server;
}

// Cheap iterations: these tests are about the messages.
const ScramVerifier& cheap_verifier() {
  static const ScramVerifier verifier = ScramVerifier::from_password("secret", "0123456789abcdef", 2);
  return verifier;
}

// The whole exchange; the error of whoever stopped it.
Status exchange(ScramClient client, ScramServer server) {
  KG_TRY(auto server_first, server.first(client.mechanism(), client.first()));
  KG_TRY(auto client_final, client.respond(server_first));
  KG_TRY(auto server_final, server.final(client_final));
  return client.verify(server_final);
}
std::string error_of(const Status& status) {
  return status ? "none" : status.error().sqlstate;
}
}  // namespace

TEST(Scram, Rfc7677ServerSide) {
  auto server = rfc_server();
  EXPECT_EQ(server.first(kScramSha256, kRfcClientFirst).value(), kRfcServerFirst);
  EXPECT_EQ(server.final(kRfcClientFinal).value(), kRfcServerFinal);
}

TEST(Scram, Rfc7677ClientSide) {
  ScramClient client("pencil", "", false);
  ScramNonces::set(client, "user", "rOprNGfwEbeRWgbNEkqO");
  EXPECT_EQ(client.mechanism(), kScramSha256);
  EXPECT_EQ(client.first(), kRfcClientFirst);
  EXPECT_EQ(client.respond(kRfcServerFirst).value(), kRfcClientFinal);
  EXPECT_TRUE(client.verify(kRfcServerFinal));
}

TEST(Scram, BothEndsAgreeWithAndWithoutBinding) {
  for (bool offered : {false, true}) {
    EXPECT_EQ(error_of(exchange({"secret", "", offered}, {cheap_verifier(), ""})), "none");
    EXPECT_EQ(error_of(exchange({"Secret", "", offered}, {cheap_verifier(), ""})), "28P01");
  }
  ScramClient plus("secret", "hash", true);
  EXPECT_EQ(plus.mechanism(), kScramSha256Plus);
  EXPECT_EQ(error_of(exchange(plus, {cheap_verifier(), "hash"})), "none");
  // A client that was told of no PLUS, by a server that has none.
  EXPECT_EQ(error_of(exchange({"secret", "hash", false}, {cheap_verifier(), ""})), "none");
  // TLS on both sides, but a client that cannot bind.
  EXPECT_EQ(error_of(exchange({"secret", "", true}, {cheap_verifier(), "hash"})), "none");
}

TEST(Scram, AManInTheMiddleIsFoundByTheBinding) {
  EXPECT_EQ(error_of(exchange({"secret", "his hash", true}, {cheap_verifier(), "our hash"})), "28000");
  // He struck PLUS from the offer: the client says "y", and the server knows better.
  EXPECT_EQ(error_of(exchange({"secret", "hash", false}, {cheap_verifier(), "hash"})), "28000");
}

TEST(Scram, KeysOfOneExchangeOpenTheNext) {
  ScramServer server(cheap_verifier(), "");
  ScramClient client("secret", "", false);
  auto server_first = server.first(kScramSha256, client.first());
  EXPECT_FALSE(server.keys());
  auto client_final = client.respond(*server_first);
  ASSERT_TRUE(server.final(*client_final));
  ASSERT_TRUE(server.keys());
  EXPECT_EQ(error_of(exchange({*server.keys(), "", false}, {cheap_verifier(), ""})), "none");
  // Elsewhere the same password has another salt, and the keys are worth nothing.
  auto elsewhere = ScramVerifier::from_password("secret", "another salt", 2);
  EXPECT_EQ(error_of(exchange({*server.keys(), "", false}, {elsewhere, ""})), "28P01");
}

TEST(Scram, AWrongProofLeavesNoKeys) {
  ScramServer server(cheap_verifier(), "");
  ScramClient client("wrong", "", false);
  auto server_first = server.first(kScramSha256, client.first());
  auto result = server.final(*client.respond(*server_first));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().sqlstate, "28P01");
  EXPECT_FALSE(server.keys());
}

TEST(Scram, TheServerRefusesMalformedFirstMessages) {
  struct Case {
    std::string_view mechanism, message, sqlstate;
  };
  const Case cases[] = {
      {kScramSha256, "", "08P01"},
      {kScramSha256, "n", "08P01"},
      {kScramSha256, "n,", "08P01"},
      {kScramSha256, "n,,", "08P01"},
      {kScramSha256, "x,,n=,r=abc", "08P01"},
      {kScramSha256, "n,,r=abc", "08P01"},
      {kScramSha256, "n,,n=,r=", "08P01"},
      {kScramSha256, "n,,n=", "08P01"},
      {kScramSha256, "n,,n=,r=a\x01", "08P01"},
      {kScramSha256, "n,,n=,r=a\x80", "08P01"},
      {kScramSha256, std::string_view("n,,n=,r=a\0", 10), "08P01"},
      {kScramSha256, "n,,n=,r=abc,x", "08P01"},
      {kScramSha256, "n,,n=,r=abc,1=x", "08P01"},
      {kScramSha256, "n,x,n=,r=abc", "08P01"},
      {kScramSha256, "n,a=other,n=,r=abc", "0A000"},
      {kScramSha256, "n,,m=ext,n=,r=abc", "0A000"},
      {kScramSha256, "y,,n=,r=abc", "28000"},
      {kScramSha256, "p=tls-server-end-point,,n=,r=abc", "08P01"},
      {kScramSha256Plus, "n,,n=,r=abc", "08P01"},
      {kScramSha256Plus, "y,,n=,r=abc", "08P01"},
      {kScramSha256Plus, "p=tls-unique,,n=,r=abc", "08P01"},
      {kScramSha256Plus, "p=tls-server-end-point", "08P01"},
      {"SCRAM-SHA-1", "n,,n=,r=abc", "08P01"},
      {"", "n,,n=,r=abc", "08P01"},
  };
  for (const auto& [mechanism, message, expected] : cases) {
    auto result = ScramServer(cheap_verifier(), "hash").first(mechanism, message);
    ASSERT_FALSE(result) << message;
    EXPECT_EQ(result.error().sqlstate, expected) << message << ": " << result.error().to_string();
  }
  EXPECT_FALSE(ScramServer(cheap_verifier(), "").first(kScramSha256Plus, "p=tls-server-end-point,,n=,r=abc"));
  EXPECT_FALSE(ScramServer(cheap_verifier(), "").first(kScramSha256, "n,,n=,r=" + std::string(1024, 'a')));
  EXPECT_TRUE(ScramServer(cheap_verifier(), "").first(kScramSha256, "n,,n=,r=abc,x=optional"));
}

TEST(Scram, TheServerRefusesMalformedLastMessages) {
  const std::string good(kRfcClientFinal);
  const std::string nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
  auto refusal = [](std::string_view message) {
    auto server = rfc_server();
    EXPECT_TRUE(server.first(kScramSha256, kRfcClientFirst));
    auto result = server.final(message);
    return result ? "none" : result.error().sqlstate;
  };
  EXPECT_EQ(refusal(good), "none");
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_EQ(refusal(good.substr(0, n)), "08P01") << n;
  EXPECT_EQ(refusal(good + ","), "08P01");
  EXPECT_EQ(refusal(good + ",x=y"), "08P01");
  EXPECT_EQ(refusal("c=eSws,r=" + nonce + good.substr(good.find(",p="))), "08P01");
  EXPECT_EQ(refusal("c=biws,r=x" + good.substr(good.find(",p="))), "08P01");
  EXPECT_EQ(refusal("r=" + nonce + good.substr(good.find(",p="))), "08P01");
  EXPECT_EQ(refusal("c=biws,r=" + nonce + ",p=AAAA"), "08P01");
  EXPECT_EQ(refusal("c=biws,r=" + nonce + ",p=" + scram::base64(std::string(32, 'x'))), "28P01");
  // An extension is signed with the rest: this proof was not made over it.
  EXPECT_EQ(refusal("c=biws,r=" + nonce + ",x=1" + good.substr(good.find(",p="))), "28P01");
  EXPECT_EQ(refusal(std::string(2000, 'a')), "08P01");
}

TEST(Scram, TheClientRefusesMalformedOrGreedyServers) {
  auto refusal = [](std::string_view message) {
    ScramClient client("pencil", "", false);
    ScramNonces::set(client, "", "abc");
    (void)client.first();
    auto result = client.respond(message);
    return result ? "none" : result.error().sqlstate;
  };
  EXPECT_EQ(refusal("r=abcdef,s=QSXCR+Q6sek8bf92,i=1"), "none");
  for (std::string_view bad :
       {"", "r=abc,s=QSXCR+Q6sek8bf92,i=1", "r=xbcdef,s=QSXCR+Q6sek8bf92,i=1", "r=abcdef", "r=abcdef,s=,i=1",
        "r=abcdef,s=Q,i=1", "r=abcdef,s=QSXCR+Q6sek8bf92", "r=abcdef,s=QSXCR+Q6sek8bf92,i=0",
        "r=abcdef,s=QSXCR+Q6sek8bf92,i=-1", "r=abcdef,s=QSXCR+Q6sek8bf92,i=1x",
        "r=abcdef,s=QSXCR+Q6sek8bf92,i=1,", "r=abcdef,s=QSXCR+Q6sek8bf92,i=1,x=y",
        "r=abcdef,s=QSXCR+Q6sek8bf92,i=99999999999", "e=other-error", "m=ext,r=abcdef,s=QSXCR+Q6sek8bf92,i=1",
        "r=abc\x01,s=QSXCR+Q6sek8bf92,i=1"})
    EXPECT_EQ(refusal(bad), "08P01") << bad;
  EXPECT_EQ(refusal("r=abcdef,s=QSXCR+Q6sek8bf92,i=2147483647"), "54000");
  EXPECT_EQ(refusal("r=abc" + std::string(3000, 'x') + ",s=QSXCR+Q6sek8bf92,i=1"), "08P01");
}

TEST(Scram, TheServerHasToProveItself) {
  auto refusal = [](std::string_view message) {
    ScramClient client("pencil", "", false);
    ScramNonces::set(client, "user", "rOprNGfwEbeRWgbNEkqO");
    (void)client.first();
    EXPECT_TRUE(client.respond(kRfcServerFirst));
    return error_of(client.verify(message));
  };
  EXPECT_EQ(refusal(kRfcServerFinal), "none");
  EXPECT_EQ(refusal("v=" + scram::base64(std::string(32, 'x'))), "28000");
  EXPECT_EQ(refusal("v=AAAA"), "08P01");
  EXPECT_EQ(refusal(std::string(kRfcServerFinal).append(",")), "08P01");
  EXPECT_EQ(refusal(""), "08P01");
  EXPECT_EQ(refusal("e=invalid-proof"), "28000");
}

TEST(ScramVerifier, RoundTripAndPostgresqlsForm) {
  auto verifier = rfc_verifier();
  std::string text = verifier.to_string();
  EXPECT_EQ(text,
            "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
            "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=");
  EXPECT_EQ(ScramVerifier::parse(text).value(), verifier);
  EXPECT_TRUE(verifier.accepts("pencil"));
  EXPECT_FALSE(verifier.accepts("pencils"));
  EXPECT_FALSE(verifier.accepts(""));
}

TEST(ScramVerifier, MalformedOnesAreRefusedWithoutBeingQuoted) {
  const std::string good = rfc_verifier().to_string();
  for (std::size_t n = 0; n < good.size(); ++n) {
    auto parsed = ScramVerifier::parse(good.substr(0, n));
    ASSERT_FALSE(parsed) << n;
    EXPECT_EQ(parsed.error().to_string().find("W22Za"), std::string::npos);
  }
  for (std::string_view bad : {"md5abcdef", "SCRAM-SHA-1$4096:W22ZaJ0SNY7soEsUEjb6gQ==$AA==:AA==",
                               "SCRAM-SHA-256$0:AA==$AA==:AA==", "SCRAM-SHA-256$-1:AA==$AA==:AA==",
                               "SCRAM-SHA-256$4096:AA==$AA==:AA==", "SCRAM-SHA-256$:AA==$AA==:AA=="})
    EXPECT_FALSE(ScramVerifier::parse(bad)) << bad;
  EXPECT_FALSE(ScramVerifier::parse(good + " "));
  std::string other_base64 = good;
  other_base64[other_base64.size() - 2] = 'V';  // the same bytes with stray bits behind them
  EXPECT_FALSE(ScramVerifier::parse(other_base64));
}

TEST(ScramVerifier, FreshSaltsDiffer) {
  auto one = ScramVerifier::from_password("x"), two = ScramVerifier::from_password("x");
  EXPECT_NE(one.salt, two.salt);
  EXPECT_EQ(one.salt.size(), 16U);
  EXPECT_TRUE(one.accepts("x") && two.accepts("x"));
}

TEST(ScramVerifier, AnUnknownUserLooksLikeAnyOther) {
  auto doomed = ScramVerifier::doomed("nobody");
  EXPECT_EQ(doomed, ScramVerifier::doomed("nobody"));
  EXPECT_NE(doomed.salt, ScramVerifier::doomed("somebody").salt);
  EXPECT_EQ(doomed.salt.size(), 16U);
  EXPECT_EQ(doomed.iterations, 4096U);
  EXPECT_EQ(error_of(exchange({"nobody", "", false}, {doomed, ""})), "28P01");
}

TEST(Saslprep, Rfc4013Examples) {
  EXPECT_EQ(saslprep("I\xC2\xADX").reveal(), "IX");       // SOFT HYPHEN mapped to nothing
  EXPECT_EQ(saslprep("user").reveal(), "user");           // no transformation
  EXPECT_EQ(saslprep("USER").reveal(), "USER");           // case preserved
  EXPECT_EQ(saslprep("\xC2\xAA").reveal(), "a");          // NFKC
  EXPECT_EQ(saslprep("\xE2\x85\xA8").reveal(), "IX");     // NFKC
  EXPECT_EQ(saslprep("a\xC2\xA0z").reveal(), "a z");      // NO-BREAK SPACE is a space
  EXPECT_EQ(saslprep("e\xCC\x81").reveal(), "\xC3\xA9");  // composed
}

TEST(Saslprep, WhatItRefusesPassesAsItIs) {
  for (std::string_view raw : {"\x07",     // ASCII, never looked at
                               "caf\xE9",  // Latin-1 is no UTF-8
                               "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80",
                               "\xD8\xA7\x31",   // mixed directions
                               "\xC2\xAD",       // nothing would be left
                               "\xC8\xA1",       // unassigned in Unicode 3.2
                               "x\xC2\x85",      // a prohibited control
                               "\xEE\x80\x80"})  // private use
    EXPECT_EQ(saslprep(raw).reveal(), raw);
  EXPECT_EQ(saslprep("").reveal(), "");
  std::string longest;
  while (longest.size() < 100'000) longest += "\xE2\x85\xA8";
  EXPECT_EQ(saslprep(longest).reveal(), longest);
  // U+FDFA becomes 18 characters: the most that there is.
  std::string greedy;
  for (int i = 0; i < 1000; ++i) greedy += "\xEF\xB7\xBA";
  EXPECT_GT(saslprep(greedy).reveal().size(), 18'000U);
}

TEST(Secret, IsWipedWhenMovedFrom) {
  Secret one(std::string("password")), two(std::move(one));
  EXPECT_TRUE(one.empty());  // NOLINT: it says so
  EXPECT_EQ(two.reveal(), "password");
  one = two;
  EXPECT_EQ(one.reveal(), "password");
  // A short string is moved by copying: its own buffer has to be wiped too.
  std::string source = "short";
  const char* at = source.data();
  Secret taken(std::move(source));
  EXPECT_EQ(taken.reveal(), "short");
  EXPECT_EQ(std::string(at, 5), std::string(5, '\0'));
}

TEST(Md5, AsPostgresqlHashesIt) {
  EXPECT_EQ(md5_response("app", "secret", std::string_view("\x01\x02\x03\x04", 4)),
            "md5911f527656472583a006e7727877b33e");
}

TEST(Base64, OneSpelling) {
  for (std::size_t n = 0; n < 40; ++n) {
    std::string raw = scram::random_bytes(n);
    EXPECT_EQ(scram::from_base64(scram::base64(raw)), raw);
  }
  for (std::string_view bad :
       {"A", "AA", "AAA", "AB==", "A===", "====", "AAAA\n", " AAA", "AA=A", "A-_A", "=AAA"})
    EXPECT_FALSE(scram::from_base64(bad)) << bad;
}

}  // namespace kintsugi::wire
