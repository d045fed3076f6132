// host:port as it stands in `listen` and in the flags. Pure; looks no name up.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::app {

struct ListenAddress {
  std::string host;  // without the brackets of IPv6
  int port = 0;

  // 127.0.0.0/8, ::1 and localhost: nobody else's machine can reach it.
  [[nodiscard]] bool is_loopback() const;
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// Nothing when the text is not `host:port` with a port of 0 to 65535; IPv6 stands in brackets.
[[nodiscard]] std::optional<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace kintsugi::app
