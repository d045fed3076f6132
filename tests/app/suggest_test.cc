#include "app/suggest.h"

#include <gtest/gtest.h>

#include "app/listen_address.h"

namespace kintsugi::app {

TEST(Suggest, TheNearestNameWithinReason) {
  std::vector<std::string> names = {"serve", "demo", "check-config", "version"};
  EXPECT_EQ(nearest("serv", names), "serve");
  EXPECT_EQ(nearest("sevre", names), "serve");
  EXPECT_EQ(nearest("verison", names), "version");
  EXPECT_EQ(nearest("check", names), "check-config");
  EXPECT_EQ(nearest("dmo", names), "demo");
  EXPECT_EQ(nearest("banana", names), "");
  EXPECT_EQ(nearest("x", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(did_you_mean("serv", names), " (did you mean serve?)");
  EXPECT_EQ(did_you_mean("banana", names), "");
}

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
