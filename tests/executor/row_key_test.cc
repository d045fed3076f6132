#include "executor/row_key.h"

#include <gtest/gtest.h>

#include <cstring>

namespace kintsugi::executor {
namespace {

std::string be(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string key(const KeyOrder& order, std::optional<std::string_view> value) {
  std::string out;
  const Status done = append_row_key(order, value, out);
  EXPECT_TRUE(done) << done.error().message;
  return out;
}

void expect_ascending(KeyOrder order, const std::vector<std::string>& values) {
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    SCOPED_TRACE(std::to_string(order.type) + ": " + values[i] + " < " + values[i + 1]);
    order.descending = false;
    EXPECT_LT(key(order, values[i]), key(order, values[i + 1]));
    order.descending = true;
    EXPECT_GT(key(order, values[i]), key(order, values[i + 1]));
  }
}

TEST(RowKey, TextFormsInPostgresOrder) {
  expect_ascending({.type = 21}, {"-32768", "-1", "0", "32767"});
  expect_ascending({.type = 23}, {"-2147483648", "-10", "-9", "0", "9", "10", "2147483647"});
  expect_ascending({.type = 20}, {"-9223372036854775808", "-1", "0", "9223372036854775807"});
  expect_ascending({.type = 26}, {"0", "9", "10", "4294967295"});
  expect_ascending({.type = 701},
                   {"-Infinity", "-1e+300", "-1", "-1e-300", "0", "1e-300", "0.5", "2", "Infinity", "NaN"});
  expect_ascending({.type = 700}, {"-Infinity", "-1.5", "0", "3.4028235e+38", "Infinity", "NaN"});
  expect_ascending({.type = 1700}, {"-Infinity", "-10000", "-9999.5", "-0.001", "0.00", "0.0001", "1.10", "1.2",
                                    "99999", "NaN"});
  expect_ascending({.type = 1082}, {"-infinity", "0044-03-15 BC", "1999-12-31", "2000-01-01", "infinity"});
  expect_ascending({.type = 1083}, {"00:00:00", "00:00:00.000001", "09:59:59", "10:00:00", "24:00:00"});
  expect_ascending({.type = 1266}, {"10:00:00+02", "10:00:00+01", "09:00:00-01", "10:00:00-05:30"});
  expect_ascending({.type = 1114}, {"-infinity", "1999-12-31 23:59:59.5", "2000-01-01 00:00:00", "infinity"});
  expect_ascending({.type = 1184}, {"2024-01-01 10:00:00+02", "2024-01-01 09:00:00+00", "infinity"});
  expect_ascending({.type = 2950},
                   {"00000000-0000-0000-0000-0000000000ff", "10000000-0000-0000-0000-000000000000"});
  expect_ascending({.type = 17}, {"\\x", "\\x00", "\\x0000", "\\x0001", "\\x01", "\\xff"});
  expect_ascending({.type = 16}, {"f", "t"});
  expect_ascending({.type = 18}, {"", " ", "a", "\\200"});
  expect_ascending({.type = 25}, {"", " ", "A", "AA", "B", "a", "\xc3\xa9"});
}

TEST(RowKey, BinaryFormsInPostgresOrder) {
  expect_ascending({.type = 23, .binary = true}, {be(0x80000000U, 4), be(UINT32_MAX, 4), be(0, 4), be(7, 4)});
  const auto bits = [](double value) {
    std::uint64_t raw = 0;
    std::memcpy(&raw, &value, 8);
    return be(raw, 8);
  };
  expect_ascending({.type = 701, .binary = true}, {bits(-2), bits(-1), bits(0), bits(1e-310), bits(3)});
  expect_ascending({.type = 1083, .binary = true}, {be(0, 8), be(5, 8)});
  // 10:00+02, 10:00+01: the zone counts west.
  const auto timetz = [](std::int64_t hours, std::int32_t west) {
    return be(static_cast<std::uint64_t>(hours * 3600000000), 8) + be(static_cast<std::uint32_t>(west), 4);
  };
  expect_ascending({.type = 1266, .binary = true}, {timetz(10, -7200), timetz(10, -3600), timetz(9, 3600)});
  expect_ascending({.type = 25, .binary = true}, {"", "a", "ab", "b"});
}

TEST(RowKey, EqualValuesHaveOneKey) {
  EXPECT_EQ(key({.type = 701}, "0"), key({.type = 701}, "-0"));
  EXPECT_EQ(key({.type = 1700}, "1.0"), key({.type = 1700}, "1.000"));
  EXPECT_EQ(key({.type = 1042}, "ab  "), key({.type = 1042}, "ab"));
  EXPECT_EQ(key({.type = 1184}, "2024-01-01 10:00:00+02"), key({.type = 1184}, "2024-01-01 08:00:00+00"));
}

TEST(RowKey, NullsGoWhereTheOrderSays) {
  for (const bool descending : {false, true}) {
    const KeyOrder first{.type = 23, .descending = descending, .nulls_first = true};
    const KeyOrder last{.type = 23, .descending = descending, .nulls_first = false};
    EXPECT_LT(key(first, std::nullopt), key(first, "1"));
    EXPECT_GT(key(last, std::nullopt), key(last, "1"));
  }
}

TEST(RowKey, ValuesDoNotRunIntoEachOther) {
  for (const bool descending : {false, true}) {
    const KeyOrder order{.type = 25, .descending = descending};
    const std::string a = key(order, "a") + key(order, "z");
    const std::string ab = key(order, "ab") + key(order, "a");
    EXPECT_EQ(a < ab, !descending);
  }
}

TEST(RowKey, RefusesWhatIsNotOfItsType) {
  std::string out;
  const auto code = [&out](const KeyOrder& order, std::string_view value) {
    const Status done = append_row_key(order, value, out);
    return done ? std::string("ok") : done.error().sqlstate;
  };
  EXPECT_EQ(code({.type = 23}, "x"), "XX001");
  EXPECT_EQ(code({.type = 23, .binary = true}, "abc"), "XX001");
  EXPECT_EQ(code({.type = 701}, "1.5x"), "XX001");
  EXPECT_EQ(code({.type = 1083}, "10:00"), "XX001");
  EXPECT_EQ(code({.type = 1083, .binary = true}, "1234567"), "XX001");
  EXPECT_EQ(code({.type = 1082}, "01/02/2024"), "XX001");  // not ISO: it could be either day
  EXPECT_EQ(code({.type = 1186}, "1 day"), "0A000");
}

}  // namespace
}  // namespace kintsugi::executor
