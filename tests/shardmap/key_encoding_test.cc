#include "shardmap/key_encoding.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "shardmap/pg_hash.h"

namespace kintsugi::shardmap {
namespace {

std::string key(KeyType type, std::string_view text) {
  std::string out;
  const Status done = append_text(type, text, out);
  EXPECT_TRUE(done) << text << ": " << (done ? "" : done.error().to_string());
  return out;
}

std::string code_of(KeyType type, std::string_view text) {
  std::string out = "before";
  const Status done = append_text(type, text, out);
  EXPECT_EQ(out, "before");
  return done ? "" : done.error().sqlstate;
}

std::string back(KeyType type, std::string_view text) {
  const auto bound = decode_bound({type}, key(type, text));
  return bound ? bound->at(0).text : bound.error().to_string();
}

// Every value in turn compares below the next.
void expect_ascending(KeyType type, const std::vector<std::string>& texts) {
  for (std::size_t i = 0; i + 1 < texts.size(); ++i) {
    EXPECT_LT(key(type, texts[i]), key(type, texts[i + 1])) << texts[i] << " < " << texts[i + 1];
  }
}

}  // namespace

TEST(KeyEncoding, ValuesAscendAsInPostgres) {
  expect_ascending(KeyType::kSmallint, {"-32768", "-1", "-0", "1", "32767"});
  expect_ascending(KeyType::kInt, {"-2147483648", "-256", "-255", "0", "255", "256", "2147483647"});
  expect_ascending(KeyType::kBigint, {"-9223372036854775808", "-1", "0", "1", "9223372036854775807"});
  expect_ascending(
      KeyType::kNumeric,
      {"-Infinity", "-1e131071", "-10000.0001", "-10000",  "-9999.99", "-1.1",     "-1",       "-0.9",
       "-0.00001",  "0",         "1e-16383",    "0.00001", "0.1",      "0.12",     "0.2",      "1",
       "1.0001",    "9999",      "9999.5",      "10000",   "10001",    "1e131071", "Infinity", "NaN"});
  expect_ascending(KeyType::kText, {"", "A", "B", "a", "aa", "ab", "b", "z", "\xc3\xa4"});
  expect_ascending(KeyType::kBytea,
                   {"\\x", "\\x00", "\\x0000", "\\x0001", "\\x01", "\\xff", "\\xff00", "\\xffff"});
  expect_ascending(KeyType::kDate, {"-infinity", "4714-11-24 BC", "0001-12-31 BC", "0001-01-01", "1999-12-31",
                                    "2000-01-01", "2024-02-29", "5874897-12-31", "infinity"});
  expect_ascending(KeyType::kTimestamp,
                   {"-infinity", "4714-11-24 00:00:00 BC", "1999-12-31 23:59:59.999999", "2000-01-01",
                    "2000-01-01 00:00:00.000001", "294276-12-31 23:59:59.999999", "infinity"});
  expect_ascending(KeyType::kTimestamptz, {"2000-01-01 12:00:00+05:30", "2000-01-01 12:00:00Z",
                                           "2000-01-01 12:00:00-08", "2000-01-01 12:00:00-0930"});
  expect_ascending(KeyType::kBoolean, {"f", "t"});
  expect_ascending(KeyType::kUuid,
                   {"00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001",
                    "80000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"});
}

TEST(KeyEncoding, EqualValuesWrittenDifferentlyAreOneKey) {
  EXPECT_EQ(key(KeyType::kBigint, " +7 "), key(KeyType::kBigint, "7"));
  EXPECT_EQ(key(KeyType::kBigint, "-0"), key(KeyType::kBigint, "0"));
  EXPECT_EQ(key(KeyType::kNumeric, "-0.000"), key(KeyType::kNumeric, "0"));
  EXPECT_EQ(key(KeyType::kNumeric, "1.50"), key(KeyType::kNumeric, "15e-1"));
  EXPECT_EQ(key(KeyType::kNumeric, "10000"), key(KeyType::kNumeric, "1.0E+4"));
  EXPECT_EQ(key(KeyType::kNumeric, "inf"), key(KeyType::kNumeric, "+Infinity"));
  EXPECT_EQ(key(KeyType::kUuid, "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"),
            key(KeyType::kUuid, "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11"));
  EXPECT_EQ(key(KeyType::kBytea, "\\x 61 00"), key(KeyType::kBytea, "a\\000"));
  EXPECT_EQ(key(KeyType::kTimestamp, "2024-01-31 24:00:00"), key(KeyType::kTimestamp, "2024-02-01"));
  EXPECT_EQ(key(KeyType::kTimestamp, "2024-01-31 10:00:00+03"), key(KeyType::kTimestamp, "2024-01-31T10:00"));
  EXPECT_EQ(key(KeyType::kBoolean, "YES"), key(KeyType::kBoolean, "1"));
}

TEST(KeyEncoding, DecodesToPostgresText) {
  EXPECT_EQ(back(KeyType::kNumeric, "-00123.4500"), "-123.45");
  EXPECT_EQ(back(KeyType::kNumeric, "0.0000500"), "0.00005");
  EXPECT_EQ(back(KeyType::kNumeric, "12e8"), "1200000000");
  EXPECT_EQ(back(KeyType::kNumeric, "nan"), "NaN");
  EXPECT_EQ(back(KeyType::kDate, "0044-03-15 BC"), "0044-03-15 BC");
  EXPECT_EQ(back(KeyType::kTimestamptz, "2024-03-01 00:30:00.5+01"), "2024-02-29 23:30:00.5+00");
  EXPECT_EQ(back(KeyType::kTimestamp, "infinity"), "infinity");
  EXPECT_EQ(back(KeyType::kBytea, "\\xDEAD00BEEF"), "\\xdead00beef");
  EXPECT_EQ(back(KeyType::kText, "it's"), "it's");
}

TEST(KeyEncoding, RefusesWhatIsNoSuchValue) {
  EXPECT_EQ(code_of(KeyType::kBigint, "9223372036854775808"), "22003");
  EXPECT_EQ(code_of(KeyType::kSmallint, "32768"), "22003");
  EXPECT_EQ(code_of(KeyType::kInt, "1.0"), "22P02");
  EXPECT_EQ(code_of(KeyType::kInt, ""), "22P02");
  EXPECT_EQ(code_of(KeyType::kInt, "- 1"), "22P02");
  EXPECT_EQ(code_of(KeyType::kNumeric, "1e+-5"), "22P02");
  EXPECT_EQ(code_of(KeyType::kNumeric, "."), "22P02");
  EXPECT_EQ(code_of(KeyType::kNumeric, "1e131072"), "22003");
  EXPECT_EQ(code_of(KeyType::kNumeric, "1e-16384"), "22003");
  EXPECT_EQ(code_of(KeyType::kNumeric, "1e99999999999999999999"), "22003");
  EXPECT_EQ(code_of(KeyType::kUuid, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1"), "22P02");
  EXPECT_EQ(code_of(KeyType::kDate, "2023-02-29"), "22008");
  EXPECT_EQ(code_of(KeyType::kDate, "tomorrow"), "22007");
  EXPECT_EQ(code_of(KeyType::kTimestamptz, "2024-01-01 00:00:00"), "0A000");
  EXPECT_EQ(code_of(KeyType::kText, std::string_view("a\0b", 3)), "22021");
  EXPECT_EQ(code_of(KeyType::kBytea, "\\xabc"), "22P02");
  EXPECT_EQ(code_of(KeyType::kBoolean, "o"), "22P02");
}

TEST(KeyEncoding, TuplesCompareColumnByColumn) {
  const KeyTypes types{KeyType::kText, KeyType::kBigint};
  const auto tuple = [&](const std::string& a, const std::string& b) { return *encode_key(types, {a, b}); };
  EXPECT_LT(tuple("a", "9"), tuple("aa", "1"));
  EXPECT_LT(tuple("a", "-1"), tuple("a", "1"));
  EXPECT_LT(tuple("a", "9223372036854775807"), tuple("b", "-9223372036854775808"));
  const auto bound = [&](const BoundColumn& a, const BoundColumn& b) { return *encode_bound(types, {a, b}); };
  const BoundColumn min = BoundColumn::min();
  const BoundColumn max = BoundColumn::max();
  EXPECT_LT(bound(min, min), tuple("", "-9223372036854775808"));
  EXPECT_LT(bound(BoundColumn::value("a"), min), tuple("a", "-9223372036854775808"));
  EXPECT_LT(tuple("a", "9223372036854775807"), bound(BoundColumn::value("a"), max));
  EXPECT_LT(bound(BoundColumn::value("a"), max), tuple("aa", "0"));
  EXPECT_LT(tuple("\xf4\x8f\xbf\xbf", "0"), bound(max, max));
  EXPECT_EQ(encode_bound(types, {min, BoundColumn::value("1")}).error().sqlstate, "42P17");
  EXPECT_EQ(encode_bound(types, {BoundColumn::value("a")}).error().sqlstate, "22023");
  EXPECT_EQ(describe_key(types, bound(BoundColumn::value("o'k"), max)), "('o''k', MAXVALUE)");
}

TEST(KeyEncoding, BinaryIntegersOfAnyWidthStandForEachOther) {
  std::string key_of_bigint = key(KeyType::kBigint, "-5");
  std::string from_int4;
  ASSERT_TRUE(append_binary(KeyType::kBigint, 23, std::string_view("\xff\xff\xff\xfb", 4), from_int4));
  EXPECT_EQ(from_int4, key_of_bigint);
  std::string numeric_from_int2;
  ASSERT_TRUE(append_binary(KeyType::kNumeric, 21, std::string_view("\xff\xfb", 2), numeric_from_int2));
  EXPECT_EQ(numeric_from_int2, key(KeyType::kNumeric, "-5"));
  std::string small;
  const Status too_large =
      append_binary(KeyType::kSmallint, 23, std::string_view("\x00\x01\x00\x00", 4), small);
  EXPECT_EQ(too_large.error().sqlstate, "22003");
  EXPECT_EQ(append_binary(KeyType::kBigint, 25, "5", small).error().sqlstate, "0A000");
  EXPECT_EQ(append_binary(KeyType::kBigint, 0, "5", small).error().sqlstate, "22P03");
  EXPECT_TRUE(small.empty());
}

// Bytes that never came from here must be an error, not a crash.
TEST(KeyEncoding, DamagedBytesAreAnError) {
  std::mt19937_64 random(7);
  const KeyTypes types{KeyType::kNumeric, KeyType::kBytea, KeyType::kText, KeyType::kDate};
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = *encode_key(types, {"-12345.678", "\\x00ff00", "abc", "2024-01-01"});
    const auto cut = random() % bytes.size();
    if (round % 2 == 0) {
      bytes.resize(cut);
    } else {
      bytes[cut] = static_cast<char>(random());
    }
    if (!decode_bound(types, bytes)) ++refused;
  }
  EXPECT_GE(refused, 10000);
  EXPECT_EQ(decode_bound({KeyType::kInt}, "").error().sqlstate, "XX001");
}

TEST(PgHash, ExpressionNamesColumnsAndSeed) {
  EXPECT_EQ(hash_expression({"a", "\"B\""}), "hash_record_extended(ROW(a, \"B\"), 8816678312871386365)");
}

}  // namespace kintsugi::shardmap
