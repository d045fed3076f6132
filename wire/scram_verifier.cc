#include <charconv>

#include "wire/saslprep.h"
#include "wire/scram.h"
#include "wire/scram_crypto.h"

namespace kintsugi::wire {

namespace {
constexpr std::size_t kSaltBytes = 16;  // as PostgreSQL

tl::unexpected<Error> not_a_verifier(std::string_view what) {
  // The text itself is a secret and stays out of the message.
  return fail(
      sqlstate::kInvalidParameter, "not a SCRAM-SHA-256 verifier: " + std::string(what),
      "It reads SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>, as in pg_authid.rolpassword.");
}

// The text up to `separator`, which is taken away with it; nothing when it is not there.
std::optional<std::string_view> cut(std::string_view& rest, char separator) {
  std::size_t end = rest.find(separator);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view head = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return head;
}
}  // namespace

Result<ScramVerifier> ScramVerifier::parse(std::string_view text) {
  std::string_view rest = text;
  auto scheme = cut(rest, '$');
  if (!scheme || *scheme != kScramSha256) return not_a_verifier("it does not begin with SCRAM-SHA-256$");
  auto iterations = cut(rest, ':');
  auto salt = cut(rest, '$');
  auto stored_key = cut(rest, ':');
  if (!iterations || !salt || !stored_key) return not_a_verifier("a part is missing");

  ScramVerifier verifier;
  std::int32_t count = 0;
  auto [end, error] = std::from_chars(iterations->data(), iterations->data() + iterations->size(), count);
  if (error != std::errc() || end != iterations->data() + iterations->size() || count < 1)
    return not_a_verifier("the iteration count is not a positive number");
  verifier.iterations = static_cast<std::uint32_t>(count);

  auto raw_salt = scram::from_base64(*salt);
  if (!raw_salt || raw_salt->empty()) return not_a_verifier("the salt is not base64");
  auto raw_stored = scram::from_base64(*stored_key), raw_server = scram::from_base64(rest);
  if (!raw_stored || raw_stored->size() != scram::kKeyBytes || !raw_server ||
      raw_server->size() != scram::kKeyBytes)
    return not_a_verifier("a key is not the base64 of 32 bytes");
  verifier.salt = std::move(*raw_salt);
  verifier.stored_key = std::move(*raw_stored);
  verifier.server_key = std::move(*raw_server);
  return verifier;
}

ScramVerifier ScramVerifier::from_password(std::string_view password, std::string_view salt,
                                           std::uint32_t iterations) {
  Secret salted = scram::salted_password(saslprep(password).reveal(), salt, iterations);
  Secret client_key(scram::hmac(salted.reveal(), "Client Key"));
  return ScramVerifier{.iterations = iterations,
                       .salt = std::string(salt),
                       .stored_key = scram::sha256(client_key.reveal()),
                       .server_key = scram::hmac(salted.reveal(), "Server Key")};
}

ScramVerifier ScramVerifier::from_password(std::string_view password) {
  return from_password(password, scram::random_bytes(kSaltBytes));
}

ScramVerifier ScramVerifier::doomed(std::string_view user) {
  static const std::string process_secret = scram::random_bytes(scram::kKeyBytes);
  ScramVerifier verifier;
  verifier.salt = scram::hmac(process_secret, "salt " + std::string(user)).substr(0, kSaltBytes);
  // No key is known that hashes to this one.
  verifier.stored_key = scram::hmac(process_secret, "stored key " + std::string(user));
  verifier.server_key = scram::hmac(process_secret, "server key " + std::string(user));
  return verifier;
}

std::string ScramVerifier::to_string() const {
  return std::string(kScramSha256) + "$" + std::to_string(iterations) + ":" + scram::base64(salt) + "$" +
         scram::base64(stored_key) + ":" + scram::base64(server_key);
}

bool ScramVerifier::accepts(std::string_view password) const {
  ScramVerifier other = from_password(password, salt, iterations);
  return scram::equal_in_constant_time(other.stored_key, stored_key);
}

}  // namespace kintsugi::wire
