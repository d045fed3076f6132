#include "app/listen_address.h"

#include <gtest/gtest.h>

namespace kintsugi::app {

TEST(ListenAddress, HostsAndPorts) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:6432"), (ListenAddress{"127.0.0.1", 6432}));
  EXPECT_EQ(parse_listen_address("[::1]:0"), (ListenAddress{"::1", 0}));
  EXPECT_EQ(parse_listen_address("db-1.example:65535"), (ListenAddress{"db-1.example", 65535}));
  for (const char* wrong :
       {"", ":6432", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "1.2.3:5", "::1:5", "[::1]",
        "[]:5", "[localhost]:5", "a b:5", "h:5x", "300.0.0.1:5"}) {
    EXPECT_EQ(parse_listen_address(wrong), std::nullopt) << wrong;
  }
}

TEST(ListenAddress, Loopback) {
  for (const char* text : {"127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(parse_listen_address(text)->is_loopback()) << text;
  }
  for (const char* text :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "128.0.0.1:1", "example:1", "localhost.example:1"}) {
    EXPECT_FALSE(parse_listen_address(text)->is_loopback()) << text;
  }
}

}  // namespace kintsugi::app
