// SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677), both ends, and the older md5. Messages in, messages
// out. Secrets are compared in constant time, and wiped where they are ours. Errors say what PostgreSQL says:
// 08P01 for a malformed message, 28000 for a channel binding that does not fit, 28P01 for a wrong password.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "wire/secret.h"

namespace kintsugi::wire {

inline constexpr std::string_view kScramSha256 = "SCRAM-SHA-256";
inline constexpr std::string_view kScramSha256Plus = "SCRAM-SHA-256-PLUS";

// What PostgreSQL stores in rolpassword: SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>.
struct ScramVerifier {
  std::uint32_t iterations = 4096;
  std::string salt, stored_key, server_key;  // raw bytes

  static Result<ScramVerifier> parse(std::string_view text);
  // The password goes through saslprep() (wire/saslprep.h). About 1.5 ms of CPU for 4096 iterations.
  static ScramVerifier from_password(std::string_view password, std::string_view salt,
                                     std::uint32_t iterations = 4096);
  static ScramVerifier from_password(std::string_view password);  // a fresh random salt
  // A verifier that no password fits, the same for the same name in this process: so that an unknown user is
  // not told from a wrong password.
  static ScramVerifier doomed(std::string_view user);
  [[nodiscard]] std::string to_string() const;
  // For cleartext passwords. In constant time once the key is derived.
  [[nodiscard]] bool accepts(std::string_view password) const;

  friend bool operator==(const ScramVerifier&, const ScramVerifier&) = default;
};

// What proves to be somebody without the password: good wherever the same verifier (salt and iterations
// included) is stored. As secret as the password itself.
struct ScramKeys {
  Secret client_key, server_key;
};

// The server's side: first(), then final(), once each. `binding` is the tls-server-end-point hash of our
// certificate, empty without TLS; offer the PLUS mechanism exactly when it is there.
class ScramServer {
 public:
  ScramServer(ScramVerifier verifier, std::string binding);

  // The client's first message, under the mechanism it chose; returns the server's first.
  Result<std::string> first(std::string_view mechanism, std::string_view client_first);
  // The client's last message; returns the server's last. 28P01 when the proof is wrong.
  Result<std::string> final(std::string_view client_final);
  // After final() has accepted: for connecting on to a shard as the same user without knowing the password. It
  // works where the shard stores the very same verifier.
  [[nodiscard]] const std::optional<ScramKeys>& keys() const { return keys_; }

 private:
  friend struct ScramNonces;  // the RFC's example is only reproduced with the RFC's nonces
  ScramVerifier verifier_;
  std::string binding_, gs2_header_, nonce_, client_first_bare_, server_first_;
  std::optional<ScramKeys> keys_;
};

// The client's side: first(), respond(), verify(), once each. `binding` is the tls-server-end-point hash of the
// server's certificate, empty without TLS. The mechanism is PLUS when there is a binding and the server offered
// it. Give the binding whenever there is TLS, also where PLUS was not offered: the client then says that it
// could have bound ("y"), and a server whose offer somebody struck out on the way refuses. With an empty one it
// cannot know.
class ScramClient {
 public:
  ScramClient(std::string password, std::string binding, bool server_offered_plus);
  ScramClient(ScramKeys keys, std::string binding, bool server_offered_plus);

  [[nodiscard]] std::string_view mechanism() const;
  [[nodiscard]] std::string first();
  // At most a million iterations are worked: a hostile server must not stop this thread.
  Result<std::string> respond(std::string_view server_first);
  Status verify(std::string_view server_final);  // the server has to prove itself as well

 private:
  friend struct ScramNonces;
  Secret password_;
  std::optional<ScramKeys> keys_;
  std::string binding_, gs2_header_, user_, nonce_, client_first_bare_, server_signature_;
};

// "md5" + hex(md5(hex(md5(password user)) salt)). Empty when this OpenSSL has no md5 (FIPS): no server takes
// that.
[[nodiscard]] std::string md5_response(std::string_view user, std::string_view password, std::string_view salt);

// RFC 5929 tls-server-end-point of a certificate in DER: its hash under the hash of its own signature, SHA-256
// where that is MD5 or SHA-1. An error where the signature has no hash of its own (Ed25519): then there is no
// PLUS.
Result<std::string> tls_server_end_point(std::string_view certificate_der);

}  // namespace kintsugi::wire
