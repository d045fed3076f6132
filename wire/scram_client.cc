#include <charconv>

#include "base/invariant.h"
#include "wire/saslprep.h"
#include "wire/scram.h"
#include "wire/scram_crypto.h"

namespace kintsugi::wire {

using scram::malformed;

namespace {
constexpr std::uint32_t kMaxIterations = 1'000'000;  // about 0.3 s of CPU

// 'n': no channel binding here; 'y': we could, but the server did not offer it; else the binding that we use.
std::string_view gs2_header(bool have_binding, bool server_offered_plus) {
  if (!have_binding) return "n,,";
  return server_offered_plus ? scram::kEndPointHeader : std::string_view("y,,");
}
}  // namespace

ScramClient::ScramClient(std::string password, std::string binding, bool server_offered_plus)
    : password_(saslprep(Secret(std::move(password)).reveal())),
      binding_(std::move(binding)),
      gs2_header_(gs2_header(!binding_.empty(), server_offered_plus)),
      nonce_(scram::fresh_nonce()) {}

ScramClient::ScramClient(ScramKeys keys, std::string binding, bool server_offered_plus)
    : keys_(std::move(keys)),
      binding_(std::move(binding)),
      gs2_header_(gs2_header(!binding_.empty(), server_offered_plus)),
      nonce_(scram::fresh_nonce()) {}

std::string_view ScramClient::mechanism() const {
  return gs2_header_ == scram::kEndPointHeader ? kScramSha256Plus : kScramSha256;
}

std::string ScramClient::first() {
  client_first_bare_ = "n=" + user_ + ",r=" + nonce_;  // the user's name is the startup packet's
  return gs2_header_ + client_first_bare_;
}

Result<std::string> ScramClient::respond(std::string_view server_first) {
  INVARIANT(!client_first_bare_.empty(), "a SCRAM exchange has its first message first");
  if (server_first.size() > scram::kMaxServerMessage) return malformed("The message is too long.");
  scram::Attributes attributes(server_first);
  KG_TRY(auto nonce, attributes.next('r'));
  if (!nonce.starts_with(nonce_) || nonce.size() == nonce_.size() || !scram::is_printable_nonce(nonce))
    return fail(sqlstate::kProtocolViolation, "invalid SCRAM response", {}, "Nonce does not match.");
  KG_TRY(auto salt_text, attributes.next('s'));
  auto salt = scram::from_base64(salt_text);
  if (!salt || salt->empty()) return malformed("Invalid salt.");
  KG_TRY(auto count, attributes.next('i'));
  std::uint32_t iterations = 0;
  auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), iterations);
  if (error != std::errc() || end != count.data() + count.size() || iterations < 1)
    return malformed("Invalid iteration count.");
  if (iterations > kMaxIterations)
    return fail(sqlstate::kProgramLimitExceeded, "the server demands " + std::to_string(iterations) +
                                                     " SCRAM iterations, more than " +
                                                     std::to_string(kMaxIterations));
  if (!attributes.at_end() || server_first.ends_with(','))
    return malformed("Garbage at the end of the message.");

  if (!keys_) {
    Secret salted = scram::salted_password(password_.reveal(), *salt, iterations);
    keys_ = ScramKeys{Secret(scram::hmac(salted.reveal(), "Client Key")),
                      Secret(scram::hmac(salted.reveal(), "Server Key"))};
  }
  std::string without_proof =
      "c=" + scram::channel_binding_attribute(gs2_header_, binding_) + ",r=" + std::string(nonce);
  std::string signed_text = client_first_bare_ + "," + std::string(server_first) + "," + without_proof;
  std::string stored_key = scram::sha256(keys_->client_key.reveal());
  std::string proof = scram::exclusive_or(keys_->client_key.reveal(), scram::hmac(stored_key, signed_text));
  server_signature_ = scram::hmac(keys_->server_key.reveal(), signed_text);
  return without_proof + ",p=" + scram::base64(proof);
}

Status ScramClient::verify(std::string_view server_final) {
  INVARIANT(!server_signature_.empty(), "a SCRAM exchange has its second message second");
  if (server_final.size() > scram::kMaxServerMessage) return malformed("The message is too long.");
  if (server_final.starts_with("e="))
    return fail(sqlstate::kInvalidAuthorization, "the server refused the SCRAM exchange", {},
                std::string(server_final.substr(2)));
  scram::Attributes attributes(server_final);
  KG_TRY(auto value, attributes.next('v'));
  auto signature = scram::from_base64(value);
  if (!signature || signature->size() != scram::kKeyBytes) return malformed("Malformed server signature.");
  if (!attributes.at_end() || server_final.ends_with(','))
    return malformed("Garbage at the end of the message.");
  if (!scram::equal_in_constant_time(*signature, server_signature_))
    return fail(sqlstate::kInvalidAuthorization,
                "incorrect SCRAM server signature: the server does not know this user");
  return {};
}

}  // namespace kintsugi::wire
