// RFC 5929 §4.1: which hash a certificate is bound by.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "wire/scram.h"

namespace kintsugi::wire {
namespace {

// A self-signed certificate in DER, signed with `hash` (none for Ed25519).
std::string certificate(EVP_PKEY* key, const EVP_MD* hash) {
  X509* made = X509_new();
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
  X509_gmtime_adj(X509_getm_notBefore(made), 0);
  X509_gmtime_adj(X509_getm_notAfter(made), 3600);
  X509_set_pubkey(made, key);
  EXPECT_GT(X509_sign(made, key, hash), 0);
  unsigned char* der = nullptr;
  int size = i2d_X509(made, &der);
  std::string result(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  X509_free(made);
  return result;
}

std::string digest(std::string_view data, const EVP_MD* hash) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(out.data()), &size, hash, nullptr);
  out.resize(size);
  return out;
}

}  // namespace

TEST(ChannelBinding, TheHashOfTheSignatureButNeverAWeakOne) {
  EVP_PKEY* key = EVP_RSA_gen(2048);
  for (const EVP_MD* hash : {EVP_sha256(), EVP_sha384(), EVP_sha512(), EVP_sha224()}) {
    std::string der = certificate(key, hash);
    EXPECT_EQ(tls_server_end_point(der).value(), digest(der, hash));
  }
  for (const EVP_MD* weak : {EVP_sha1(), EVP_md5()}) {
    std::string der = certificate(key, weak);
    EXPECT_EQ(tls_server_end_point(der).value(), digest(der, EVP_sha256()));
  }
  EVP_PKEY_free(key);
}

TEST(ChannelBinding, ASignatureWithoutAHashHasNone) {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  auto binding = tls_server_end_point(certificate(key, nullptr));
  EXPECT_EQ(binding.error().sqlstate, "0A000");
  EVP_PKEY_free(key);
}

TEST(ChannelBinding, WhatIsNoCertificateIsAnError) {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  std::string der = certificate(key, EVP_sha256());
  EVP_PKEY_free(key);
  for (std::size_t n = 0; n < der.size(); ++n) EXPECT_FALSE(tls_server_end_point(der.substr(0, n))) << n;
  EXPECT_FALSE(tls_server_end_point("-----BEGIN CERTIFICATE-----"));
}

}  // namespace kintsugi::wire
