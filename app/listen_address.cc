#include "app/listen_address.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

namespace kintsugi::app {
namespace {

bool is_ipv6(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_ipv4_or_name(const std::string& text) {
  if (text.empty() || text.size() > 253) return false;
  bool numeric = true;
  for (unsigned char c : text) {
    bool digit_or_dot = (c >= '0' && c <= '9') || c == '.';
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    if (!digit_or_dot && !letter) return false;
    numeric = numeric && digit_or_dot;
  }
  in_addr address{};
  return !numeric || inet_pton(AF_INET, text.c_str(), &address) == 1;
}

}  // namespace

bool ListenAddress::is_loopback() const {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return std::memcmp(&v6, &in6addr_loopback, sizeof v6) == 0;
  return host == "localhost";
}

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  std::string_view digits = text.substr(colon + 1);
  ListenAddress address;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (address.port < 0 || address.port > 65535) return std::nullopt;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    address.host = host.substr(1, host.size() - 2);
    if (!is_ipv6(address.host)) return std::nullopt;
  } else {
    address.host = host;
    if (!is_ipv4_or_name(address.host)) return std::nullopt;
  }
  return address;
}

}  // namespace kintsugi::app
