// SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677), both ends, and the older md5. Messages in, messages
// out. Secrets are compared in constant time, and wiped where they are ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kintsugi::wire {

inline constexpr std::string_view kScramSha256 = "SCRAM-SHA-256";
inline constexpr std::string_view kScramSha256Plus = "SCRAM-SHA-256-PLUS";

// What PostgreSQL stores in rolpassword: SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>.
struct ScramVerifier {
  std::uint32_t iterations = 4096;
  std::string salt, stored_key, server_key;  // raw bytes

  static Result<ScramVerifier> parse(std::string_view text);
  static ScramVerifier from_password(std::string_view password, std::string_view salt,
                                     std::uint32_t iterations = 4096);
  static ScramVerifier from_password(std::string_view password);  // a fresh random salt
  // A verifier that no password fits, the same for the same name in this process: so that an unknown user is
  // not told from a wrong password.
  static ScramVerifier doomed(std::string_view user);
  [[nodiscard]] std::string to_string() const;
};

// The server's side. `binding` is the tls-server-end-point hash of our certificate, empty without TLS.
class ScramServer {
 public:
  ScramServer(ScramVerifier verifier, std::string binding);

  // The client's first message, under the mechanism it chose; returns the server's first.
  Result<std::string> first(std::string_view mechanism, std::string_view client_first);
  // The client's last message; returns the server's last. 28P01 when the proof is wrong.
  Result<std::string> final(std::string_view client_final);
  // After first(): for connecting on to a shard as the same user without knowing the password.
 private:
  ScramVerifier verifier_;
  std::string binding_, gs2_header_, nonce_, client_first_bare_, server_first_;
};

// The client's side. With `binding` set, use mechanism PLUS.
class ScramClient {
 public:
  ScramClient(std::string password, std::string binding, bool server_offered_plus);

  [[nodiscard]] std::string_view mechanism() const;
  [[nodiscard]] std::string first();
  Result<std::string> respond(std::string_view server_first);
  Status verify(std::string_view server_final);  // the server has to prove itself as well

 private:
  std::string password_, binding_, gs2_header_, nonce_, client_first_bare_, server_signature_;
};

// "md5" + hex(md5(hex(md5(password user)) salt)).
[[nodiscard]] std::string md5_response(std::string_view user, std::string_view password, std::string_view salt);

// RFC 5929 tls-server-end-point of a certificate in DER.
Result<std::string> tls_server_end_point(std::string_view certificate_der);

}  // namespace kintsugi::wire
