#include "base/invariant.h"
#include "wire/scram.h"
#include "wire/scram_crypto.h"

namespace kintsugi::wire {

using scram::malformed;

ScramServer::ScramServer(ScramVerifier verifier, std::string binding)
    : verifier_(std::move(verifier)), binding_(std::move(binding)), nonce_(scram::fresh_nonce()) {}

namespace {
Status check_message(std::string_view message) {
  if (message.empty()) return malformed("The message is empty.");
  if (message.size() > scram::kMaxClientMessage) return malformed("The message is too long.");
  if (message.find('\0') != std::string_view::npos)
    return malformed("Message length does not match input length.");
  return {};
}

// The client's word on channel binding, up to and including its comma, against what is the case.
Status check_binding_flag(std::string_view message, bool chose_plus, bool have_binding) {
  if (message.starts_with("n,") || message.starts_with("y,")) {
    if (chose_plus)
      return malformed(
          "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding "
          "data.");
    if (message[0] == 'y' && have_binding)
      return fail(
          sqlstate::kInvalidAuthorization, "SCRAM channel binding negotiation error", {},
          "The client supports SCRAM channel binding but thinks the server does not.  However, this server "
          "does support channel binding.");
    return {};
  }
  if (message.starts_with("p=")) {
    if (!chose_plus)
      return malformed(
          "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel "
          "binding "
          "data.");
    if (!message.starts_with("p=tls-server-end-point,"))
      return fail(sqlstate::kProtocolViolation, "unsupported SCRAM channel-binding type");
    return {};
  }
  return malformed("Unexpected channel-binding flag.");
}
}  // namespace

Result<std::string> ScramServer::first(std::string_view mechanism, std::string_view client_first) {
  bool plus = mechanism == kScramSha256Plus;
  if ((!plus && mechanism != kScramSha256) || (plus && binding_.empty()))
    return fail(sqlstate::kProtocolViolation, "client selected an invalid SASL authentication mechanism");
  KG_CHECK(check_message(client_first));
  KG_CHECK(check_binding_flag(client_first, plus, !binding_.empty()));

  std::size_t flag_end = client_first.find(',');
  std::string_view rest = client_first.substr(flag_end + 1);
  if (rest.starts_with("a="))
    return fail(sqlstate::kNotSupported, "client uses authorization identity, but it is not supported");
  if (!rest.starts_with(",")) return malformed("Unexpected attribute in client-first-message.");
  rest.remove_prefix(1);
  gs2_header_ = client_first.substr(0, flag_end + 2);
  client_first_bare_ = rest;

  if (rest.starts_with("m="))
    return fail(sqlstate::kNotSupported, "client requires an unsupported SCRAM extension");
  scram::Attributes attributes(rest);
  KG_CHECK(
      attributes.next('n'));  // the user's name is the startup packet's; PostgreSQL ignores this one as well
  KG_TRY(auto client_nonce, attributes.next('r'));
  if (!scram::is_printable_nonce(client_nonce))
    return fail(sqlstate::kProtocolViolation, "non-printable characters in SCRAM nonce");
  while (!attributes.at_end()) KG_CHECK(attributes.any());

  nonce_.insert(0, client_nonce);
  server_first_ =
      "r=" + nonce_ + ",s=" + scram::base64(verifier_.salt) + ",i=" + std::to_string(verifier_.iterations);
  return server_first_;
}

Result<std::string> ScramServer::final(std::string_view client_final) {
  INVARIANT(!server_first_.empty(), "a SCRAM exchange has its first message first");
  KG_CHECK(check_message(client_final));
  scram::Attributes attributes(client_final);
  KG_TRY(auto binding, attributes.next('c'));
  if (binding != scram::channel_binding_attribute(gs2_header_, binding_)) {
    if (gs2_header_ == scram::kEndPointHeader)
      return fail(sqlstate::kInvalidAuthorization, "SCRAM channel binding check failed");
    return fail(sqlstate::kProtocolViolation,
                "unexpected SCRAM channel-binding attribute in client-final-message");
  }
  KG_TRY(auto nonce, attributes.next('r'));
  if (!scram::equal_in_constant_time(nonce, nonce_))
    return fail(sqlstate::kProtocolViolation, "invalid SCRAM response", {}, "Nonce does not match.");
  // Extensions may follow; the proof comes last, and is made over everything before it.
  const char* proof_at = attributes.position();
  KG_TRY(auto attribute, attributes.any());
  while (attribute.name != 'p') {
    proof_at = attributes.position();
    KG_TRY(attribute, attributes.any());
  }
  auto proof = scram::from_base64(attribute.value);
  if (!proof || proof->size() != scram::kKeyBytes) return malformed("Malformed proof in client-final-message.");
  if (!attributes.at_end() || client_final.ends_with(','))
    return malformed("Garbage found at the end of client-final-message.");

  std::string_view without_proof(client_final.data(),
                                 static_cast<std::size_t>(proof_at - client_final.data()) - 1);
  std::string signed_text = client_first_bare_ + "," + server_first_ + "," + std::string(without_proof);
  Secret client_key(scram::exclusive_or(*proof, scram::hmac(verifier_.stored_key, signed_text)));
  if (!scram::equal_in_constant_time(scram::sha256(client_key.reveal()), verifier_.stored_key))
    return fail(sqlstate::kInvalidPassword, "password authentication failed");
  keys_ = ScramKeys{std::move(client_key), Secret(verifier_.server_key)};
  return "v=" + scram::base64(scram::hmac(verifier_.server_key, signed_text));
}

}  // namespace kintsugi::wire
