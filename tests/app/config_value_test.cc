#include "app/config_value.h"
#include "base/dsn_text.h"

#include <gtest/gtest.h>

namespace kintsugi::app {
namespace {

template <class T>
std::optional<T> parsed(std::string_view text, ValueRule rule = {}) {
  T value{};
  if (!parse_value(&value, rule, text)) return std::nullopt;
  return value;
}

TEST(ConfigValue, Durations) {
  EXPECT_EQ(parsed<milliseconds>("10s"), milliseconds(10000));
  EXPECT_EQ(parsed<milliseconds>("10 s"), milliseconds(10000));
  EXPECT_EQ(parsed<milliseconds>("250ms"), milliseconds(250));
  EXPECT_EQ(parsed<milliseconds>("5min"), milliseconds(300000));
  EXPECT_EQ(parsed<milliseconds>("2H"), milliseconds(7200000));
  EXPECT_EQ(parsed<milliseconds>("1d"), milliseconds(86400000));
  EXPECT_EQ(parsed<milliseconds>("0"), milliseconds(0));
  for (const char* wrong : {"", "10", "s", "-1s", "1.5s", "10 parsecs", "10m", "10s ", " 10s",
                            "99999999999999999999s", "9223372036854775807s", "0x10s"}) {
    EXPECT_EQ(parsed<milliseconds>(wrong), std::nullopt) << wrong;
  }
}

TEST(ConfigValue, Sizes) {
  EXPECT_EQ(parsed<std::int64_t>("1GB"), std::int64_t{1} << 30);
  EXPECT_EQ(parsed<std::int64_t>("64kB"), 65536);
  EXPECT_EQ(parsed<std::int64_t>("64 KB"), 65536);
  EXPECT_EQ(parsed<std::int64_t>("7B"), 7);
  EXPECT_EQ(parsed<std::int64_t>("0"), 0);
  for (const char* wrong : {"1", "1G", "GB", "-1GB", "1e3MB", "16777216TB"}) {
    EXPECT_EQ(parsed<std::int64_t>(wrong), std::nullopt) << wrong;
  }
}

TEST(ConfigValue, TheBoundsAreInclusive) {
  ValueRule rule = {.least = 1, .most = 10};
  EXPECT_EQ(parsed<int>("1", rule), 1);
  EXPECT_EQ(parsed<int>("10", rule), 10);
  EXPECT_EQ(parsed<int>("0", rule), std::nullopt);
  EXPECT_EQ(parsed<int>("11", rule), std::nullopt);
  EXPECT_EQ(parsed<int>("1.0", rule), std::nullopt);
  EXPECT_EQ(parsed<int>("", rule), std::nullopt);
  EXPECT_EQ(parsed<int>("4294967297", rule), std::nullopt);
}

TEST(ConfigValue, TruthAndChoices) {
  EXPECT_EQ(parsed<bool>("true"), true);
  EXPECT_EQ(parsed<bool>("false"), false);
  EXPECT_EQ(parsed<bool>("yes"), std::nullopt);
  EXPECT_EQ(parsed<PoolMode>("session"), PoolMode::kSession);
  EXPECT_EQ(parsed<PoolMode>("statement"), std::nullopt);
  EXPECT_EQ(parsed<log::Level>("debug"), log::Level::kDebug);
}

TEST(ConfigValue, ARefusalLeavesTheOldValueAndSaysWhatIsAllowed) {
  PoolMode mode = PoolMode::kSession;
  Status status = parse_value(&mode, {}, "transation");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "transaction, session (did you mean transaction?)");
  EXPECT_EQ(mode, PoolMode::kSession);
  int number = 5;
  status = parse_value(&number, {.least = 1, .most = 7}, "8");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "a whole number from 1 to 7");
  EXPECT_EQ(number, 5);
}

TEST(ConfigValue, Texts) {
  ValueRule address = {.text = Text::kAddress, .may_be_empty = false};
  EXPECT_TRUE(parsed<std::string>("127.0.0.1:6432", address));
  EXPECT_FALSE(parsed<std::string>("127.0.0.1", address));
  EXPECT_FALSE(parsed<std::string>("", address));
  ValueRule store = {.text = Text::kStore};
  EXPECT_TRUE(parsed<std::string>("sqlite:map.db", store));
  EXPECT_TRUE(parsed<std::string>("postgresql://u@h1,h2/kintsugi?target_session_attrs=read-write", store));
  EXPECT_FALSE(parsed<std::string>("sqlite:", store));
  EXPECT_FALSE(parsed<std::string>("mysql://h", store));
  ValueRule scram = {.text = Text::kScram};
  EXPECT_TRUE(parsed<std::string>(
      "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"
      "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
      scram));
  EXPECT_FALSE(parsed<std::string>("md5abcdef", scram));
  EXPECT_FALSE(parsed<std::string>(std::string_view("a\0b", 3)));
  EXPECT_FALSE(parsed<std::string>(std::string(64, 'x'), {.text = Text::kName}));
}

// What is printed can be read again, and is short.
TEST(ConfigValue, PrintsInTheLargestUnitThatIsWhole) {
  for (const char* text : {"0", "1ms", "1500ms", "90s", "2min", "36h", "2d"}) {
    milliseconds value = parsed<milliseconds>(text).value();
    EXPECT_EQ(print_value(&value, {}), "\"" + std::string(text) + "\"");
  }
  for (const char* text : {"0", "1B", "1025B", "3kB", "256MB", "1GB", "2TB"}) {
    std::int64_t value = parsed<std::int64_t>(text).value();
    EXPECT_EQ(print_value(&value, {}), "\"" + std::string(text) + "\"");
  }
}

TEST(ConfigValue, SecretsAreNotPrinted) {
  std::string secret = "geheim";
  EXPECT_EQ(print_value(&secret, {.text = Text::kSecret}), "\"(hidden)\"");
  std::string none;
  EXPECT_EQ(print_value(&none, {.text = Text::kSecret}), "\"\"");
  for (const char* dsn :
       {"host=a password=geheim port=1", "password = geheim", "host=a PASSWORD='ge heim \\' geheim'",
        "host=a password='geheim", "postgresql://u:geheim@h/db", "postgresql://u:ge@geheim@h/db",
        "postgresql://h/db?user=u&password=geheim&port=1", "host=a sslpassword=geheim"}) {
    std::string text = dsn;
    EXPECT_EQ(print_value(&text, {.text = Text::kDsn}).find("heim"), std::string::npos)
        << print_value(&text, {.text = Text::kDsn});
  }
  EXPECT_EQ(without_password("host=a password=x port=1"), "host=a password=*** port=1");
  EXPECT_EQ(without_password("postgresql://u@h:5432/db"), "postgresql://u@h:5432/db");
}

TEST(ConfigValue, TextIsQuotedAsToml) {
  EXPECT_EQ(toml_string("a\"b\\c\nd"), "\"a\\\"b\\\\c\\u000Ad\"");
}

}  // namespace
}  // namespace kintsugi::app
