#include "base/suggest.h"

#include <gtest/gtest.h>

namespace kintsugi {

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

}  // namespace kintsugi
