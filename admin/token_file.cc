#include "admin/token_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/invariant.h"

namespace kintsugi::admin {
namespace {

constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kTokenBytesMin = 16;
constexpr std::string_view kHashed = "sha256:";
constexpr char kHex[] = "0123456789abcdef";

std::string hex_of(const unsigned char* bytes, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    out += kHex[bytes[i] >> 4];
    out += kHex[bytes[i] & 15];
  }
  return out;
}

tl::unexpected<Error> file_error(const std::string& what, const std::string& path, int error) {
  return fail("58000", "cannot " + what + " the token file " + path + ": " + std::strerror(error),
              "admin.token_file says where it is.");
}

Result<std::string> make(const std::string& path) {
  const std::string token = random_token();
  const std::string line = token + "\n";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return file_error("make", path, errno);
  const bool whole = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  close(fd);
  if (!whole) return file_error("write", path, error);
  return token;
}

}  // namespace

std::string random_token() {
  unsigned char random[kRandomBytes];
  INVARIANT(getrandom(random, sizeof random, 0) == sizeof random, "the kernel gives random bytes");
  return hex_of(random, sizeof random);
}

Result<std::string> read_or_make_token(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return make(path);
  if (fd < 0) return file_error("read", path, errno);
  struct stat status {};
  char buffer[1024];
  const bool known = fstat(fd, &status) == 0;
  const ssize_t got = read(fd, buffer, sizeof buffer);
  const int error = errno;
  close(fd);
  if (!known || got < 0) return file_error("read", path, error);
  if ((status.st_mode & 077) != 0) {
    return fail("58000", "the token file " + path + " may be read by others", "chmod 600 " + path);
  }
  std::string_view token(buffer, static_cast<std::size_t>(got));
  token = token.substr(0, token.find_last_not_of("\r\n ") + 1);
  if (token.size() < kTokenBytesMin || token.find_first_of(" \t\n") != std::string_view::npos) {
    return fail("58000", "the token file " + path + " does not hold one token of at least 16 letters",
                "Remove it, and a new one is made at the next start.");
  }
  if (token.starts_with(kHashed) && (token.size() != kHashed.size() + 64 ||
                                     token.find_first_not_of(kHex, kHashed.size()) != std::string_view::npos)) {
    return fail("58000",
                "the token file " + path + " holds no SHA-256 after sha256: (64 digits of 0-9 and a-f)",
                "printf 'sha256:%s' $(printf %s TOKEN | sha256sum | cut -c1-64) prints what belongs there.");
  }
  return Result<std::string>(tl::in_place, token);
}

std::string hash_of_token(const std::string& token) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  INVARIANT(EVP_Digest(token.data(), token.size(), digest, &size, EVP_sha256(), nullptr) == 1, "SHA-256 works");
  return hex_of(digest, size);
}

bool is_token(const std::string& given, const std::string& held) {
  if (!held.starts_with(kHashed)) return same_token(given, held);
  return same_token(hash_of_token(given), held.substr(kHashed.size()));
}

bool same_token(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace kintsugi::admin
