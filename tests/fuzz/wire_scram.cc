// Both ends of SCRAM against a hostile peer. The first byte says which end and which step; the rest is the
// message. Nonces are those of the RFC's example, so that its messages, as seeds, lead to the last step.
#include "tests/fuzz/target.h"
#include "wire/scram.h"
#include "wire/scram_crypto.h"

namespace kintsugi::wire {

struct ScramNonces {
  static void set(ScramServer& server) { server.nonce_ = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"; }
  static void set(ScramClient& client) {
    client.user_ = "user";
    client.nonce_ = "rOprNGfwEbeRWgbNEkqO";
  }
};

namespace {
const std::string kClientFirst = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const std::string kServerFirst =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
const std::string kClientFinal =
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+"
    "Ute9ytag9zjfMHgsqmmiz7AndVQ=";
const std::string kServerFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
const std::string kBinding(32, 'b');

const ScramVerifier& verifier() {
  static const ScramVerifier one =
      ScramVerifier::from_password("pencil", *scram::from_base64("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096);
  return one;
}
// With keys instead of the password: no hashing by the thousand for each input.
const ScramKeys& keys() {
  static const ScramKeys some = [] {
    ScramServer server(verifier(), "");
    ScramNonces::set(server);
    CHECK_THAT(server.first(kScramSha256, kClientFirst) && server.final(kClientFinal));
    return *server.keys();
  }();
  return some;
}

void check_refusal(const Error& error) {
  CHECK_THAT(error.sqlstate == "08P01" || error.sqlstate == "28000" || error.sqlstate == "28P01" ||
             error.sqlstate == "0A000" || error.sqlstate == "54000");
}

void server_first(std::string_view mechanism, const std::string& binding, std::string_view message) {
  ScramServer server(verifier(), binding);
  auto answer = server.first(mechanism, message);
  if (!answer) return check_refusal(answer.error());
  CHECK_THAT(answer->starts_with("r=") && answer->ends_with(",i=4096"));
  // The message also goes through the other half, where it cannot prove anything.
  CHECK_THAT(!server.final(message) && !server.keys());
}

void server_final(std::string_view message) {
  ScramServer server(verifier(), "");
  ScramNonces::set(server);
  CHECK_THAT(server.first(kScramSha256, kClientFirst) == kServerFirst);
  auto answer = server.final(message);
  CHECK_THAT(answer.has_value() == server.keys().has_value());
  // Only who knows the keys can sign another message than this one.
  CHECK_THAT(answer.has_value() == (message == kClientFinal));
  if (!answer) check_refusal(answer.error());
}

void client_respond(const std::string& binding, bool offered, std::string_view message) {
  ScramClient client(keys(), binding, offered);
  ScramNonces::set(client);
  (void)client.first();
  auto answer = client.respond(message);
  if (!answer) return check_refusal(answer.error());
  CHECK_THAT(answer->starts_with("c=") && answer->find(",p=") != std::string::npos);
}

void client_verify(std::string_view message) {
  ScramClient client(keys(), "", false);
  ScramNonces::set(client);
  (void)client.first();
  CHECK_THAT(client.respond(kServerFirst) == kClientFinal);
  auto verdict = client.verify(message);
  CHECK_THAT(verdict.has_value() == (message == kServerFinal));
  if (!verdict) check_refusal(verdict.error());
}

void fuzz(std::string_view input) {
  if (input.empty()) return;
  char step = input[0];
  input.remove_prefix(1);
  switch (step % 8) {
    case 0: return server_first(kScramSha256, "", input);
    case 1: return server_first(kScramSha256, kBinding, input);
    case 2: return server_first(kScramSha256Plus, kBinding, input);
    case 3: return server_first(input, kBinding, input);
    case 4: return server_final(input);
    case 5: return client_respond("", false, input);
    case 6: return client_respond(kBinding, true, input);
    default: return client_verify(input);
  }
}

std::vector<std::string> seeds() {
  return {"0" + kClientFirst, "1y,,n=,r=abc",     "1n,,n=,r=abc,x=y",   "2p=tls-server-end-point,,n=,r=abc",
          "3SCRAM-SHA-256",   "4" + kClientFinal, "5" + kServerFirst,   "6" + kServerFirst,
          "7" + kServerFinal, "7e=other-error",   "0n,a=user,n=,r=abc", "0n,,m=ext,n=,r=abc"};
}
}  // namespace
}  // namespace kintsugi::wire

KINTSUGI_FUZZ_TARGET(wire_scram, kintsugi::wire::fuzz, kintsugi::wire::seeds)
