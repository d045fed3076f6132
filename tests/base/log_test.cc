#include "base/log.h"

#include <gtest/gtest.h>

namespace kintsugi {

TEST(Log, PlainValuesStandBareAndOthersAreQuoted) {
  EXPECT_EQ(log::format_line("client connected", {{"user", "app"}, {"application", "my app"}, {"pid", 42}}),
            "client connected user=app application=\"my app\" pid=42");
}

TEST(Log, AValueCannotForgeASecondLine) {
  EXPECT_EQ(log::format_line("x", {{"name", "a\nerror b=\"c\"\x01"}}), "x name=\"a\\nerror b=\\\"c\\\"\\x01\"");
}

TEST(Log, AnEmptyValueIsVisible) {
  EXPECT_EQ(log::format_line("x", {{"name", ""}}), "x name=\"\"");
}

}  // namespace kintsugi
