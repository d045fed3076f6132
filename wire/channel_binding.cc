#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/x509.h>

#include <memory>

#include "wire/scram.h"

namespace kintsugi::wire {

namespace {
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
}  // namespace

Result<std::string> tls_server_end_point(std::string_view certificate_der) {
  auto* at = reinterpret_cast<const unsigned char*>(certificate_der.data());
  std::unique_ptr<X509, FreeCertificate> certificate(
      d2i_X509(nullptr, &at, static_cast<long>(certificate_der.size())));
  if (!certificate) return fail(sqlstate::kInvalidParameter, "not an X.509 certificate in DER");
  int hash = NID_undef;
  // Knows RSA-PSS as well, where the hash is a parameter of the signature and not part of its name.
  if (!X509_get_signature_info(certificate.get(), &hash, nullptr, nullptr, nullptr) || hash == NID_undef)
    return fail(sqlstate::kNotSupported,
                "the certificate's signature names no hash, so there is no channel binding");
  if (hash == NID_md5 || hash == NID_sha1) hash = NID_sha256;
  const EVP_MD* algorithm = EVP_get_digestbynid(hash);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!algorithm || !X509_digest(certificate.get(), algorithm, digest, &size))
    return fail(sqlstate::kNotSupported, "OpenSSL does not have the hash of the certificate's signature");
  return std::string(reinterpret_cast<const char*>(digest), size);
}

}  // namespace kintsugi::wire
