#include "wire/client_messages.h"

#include <gtest/gtest.h>

namespace kintsugi::wire {

using namespace std::string_view_literals;

TEST(ClientMessages, UnknownTypesInPostgresqlsWords) {
  EXPECT_EQ(client::unknown_type('!').message, "invalid frontend message type 33");
  EXPECT_EQ(client::unknown_type('!').sqlstate, "08P01");
  EXPECT_EQ(client::unknown_type('\xff').message, "invalid frontend message type 255");
  EXPECT_FALSE(client::is_known('!'));
  EXPECT_FALSE(client::is_known('\0'));
  EXPECT_TRUE(client::is_known('F'));
}

TEST(ClientMessages, ShortMessagesHavePostgresqlsShortBound) {
  EXPECT_EQ(client::max_body('S', 1 << 28), 10000U);
  EXPECT_EQ(client::max_body('E', 500), 500U);
  EXPECT_EQ(client::max_body('Q', 1 << 28), 1U << 28);
  EXPECT_EQ(client::max_body('d', 1 << 28), 1U << 28);
}

TEST(ClientMessages, PeekRefusesAsEarlyAsItCan) {
  EXPECT_EQ(client::peek("!", 1000).error().message, "invalid frontend message type 33");
  EXPECT_EQ(client::peek("GET / HTTP/1.1", 1000).error().message, "invalid frontend message type 71");
  EXPECT_FALSE(client::peek("", 1000)->has_value());
  EXPECT_FALSE(client::peek("Q", 1000)->has_value());
  EXPECT_EQ((*client::peek("Q\0\0\x27\x15"sv, 1 << 20))->body_size, 10001U);
  EXPECT_EQ(client::peek("S\0\0\x27\x15"sv, 1 << 20).error().message, "invalid message length");
  EXPECT_EQ((*client::peek("S\0\0\x27\x14"sv, 1 << 20))->body_size, 10000U);
  EXPECT_EQ(client::peek("Q\0\0\0\x03"sv, 1000).error().sqlstate, "08P01");
  // What PostgreSQL would have taken is our limit; what it would not have is no message.
  EXPECT_EQ((*client::peek("Q\0\0\x03\xec"sv, 1000))->body_size, 1000U);
  const Error longer = client::peek("Q\0\0\x03\xed"sv, 1000).error();
  EXPECT_EQ(longer.sqlstate, "53400");
  EXPECT_EQ(longer.message, "a message of 1001 bytes is longer than the 1000 that are allowed");
  EXPECT_EQ(client::peek("Q\x40\0\0\x04"sv, 1000).error().sqlstate, "08P01");
}

TEST(ClientMessages, ParseGivesItsTypes) {
  auto parse = read_parse("name\0select $1\0\0\x02\0\0\0\x17\0\0\0\x19"sv);
  ASSERT_TRUE(parse);
  EXPECT_EQ(parse->statement, "name");
  EXPECT_EQ(parse->text, "select $1");
  ASSERT_EQ(parse->type_count(), 2U);
  EXPECT_EQ(parse->type_oid(0), 23U);
  EXPECT_EQ(parse->type_oid(1), 25U);
}

namespace {
// A Bind's tail from its three lists: format codes, values (nothing: NULL), result formats.
std::string tail(const std::vector<int>& formats, const std::vector<std::optional<std::string>>& values,
                 const std::vector<int>& results) {
  std::string out;
  auto u16 = [&](std::size_t n) {
    char raw[2];
    store_u16(raw, static_cast<std::uint16_t>(n));
    out.append(raw, 2);
  };
  u16(formats.size());
  for (int f : formats) u16(static_cast<std::size_t>(f));
  u16(values.size());
  for (const auto& value : values) {
    char raw[4];
    store_u32(raw, value ? static_cast<std::uint32_t>(value->size()) : UINT32_MAX);
    out.append(raw, 4).append(value.value_or(""));
  }
  u16(results.size());
  for (int f : results) u16(static_cast<std::size_t>(f));
  return out;
}
}  // namespace

TEST(ClientMessages, BindFormatsAreNoneOneOrOneEach) {
  struct Case {
    std::vector<int> formats;
    std::vector<bool> binary;
  };
  for (const auto& [formats, binary] : std::vector<Case>{{{}, {false, false, false}},
                                                         {{0}, {false, false, false}},
                                                         {{1}, {true, true, true}},
                                                         {{0, 1, 0}, {false, true, false}}}) {
    std::string raw = tail(formats, {"a", std::nullopt, "c"}, {1});
    BindMessage bind{"", "", raw};
    auto values = read_bind_values(bind);
    ASSERT_TRUE(values);
    ASSERT_EQ(values->values.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(values->values[i].binary, binary[i]);
      EXPECT_EQ(values->values[i].is_null, i == 1);
      EXPECT_EQ(read_bind_value(bind, i)->binary, binary[i]);
    }
    EXPECT_EQ(values->values[2].bytes, "c");
    EXPECT_EQ(read_bind_value(bind, 2)->bytes, "c");
    EXPECT_EQ(values->result_formats, std::vector<std::int16_t>{1});
  }
}

TEST(ClientMessages, BindRefusesWhatPostgresqlRefuses) {
  auto error = [](const std::string& raw) {
    BindMessage bind{"", "", raw};
    auto values = read_bind_values(bind);
    return values ? std::string("none") : values.error().sqlstate + " " + values.error().message;
  };
  EXPECT_EQ(error(tail({0, 1}, {"a"}, {})), "08P01 bind message has 2 parameter formats but 1 parameters");
  EXPECT_EQ(error(tail({0, 1}, {}, {})), "08P01 bind message has 2 parameter formats but 0 parameters");
  EXPECT_EQ(error(tail({2}, {"a"}, {})), "22023 unsupported format code: 2");
  EXPECT_EQ(error(tail({}, {"a"}, {7})), "22023 unsupported format code: 7");
  EXPECT_EQ(error(tail({}, {"a"}, {}) + "x"), "08P01 invalid message format");
  std::string negative = tail({}, {"a"}, {});
  store_u32(negative.data() + 4, static_cast<std::uint32_t>(-2));
  EXPECT_EQ(error(negative), "08P01 insufficient data left in message");
  std::string missing = tail({}, {"a"}, {});
  EXPECT_EQ(read_bind_value(BindMessage{"", "", missing}, 1).error().sqlstate, "08P01");
}

TEST(ClientMessages, DescribeAndCloseNameAStatementOrAPortal) {
  EXPECT_EQ(read_describe("P\0"sv)->kind, 'P');
  EXPECT_EQ(read_describe("X\0"sv).error().message, "invalid DESCRIBE message subtype 88");
  EXPECT_EQ(read_close("X\0"sv).error().message, "invalid CLOSE message subtype 88");
}

TEST(ClientMessages, ExecuteTakesAnyLimitAsPostgresqlDoes) {
  EXPECT_EQ(read_execute("p\0\xff\xff\xff\xff"sv)->max_rows, -1);
  EXPECT_EQ(read_execute("\0\0\0\0\x0a"sv)->max_rows, 10);
}

TEST(ClientMessages, PasswordsAndSasl) {
  EXPECT_EQ(*read_password("secret\0"sv), "secret");
  EXPECT_EQ(read_password("secret\0x"sv).error().message, "invalid password packet size");
  EXPECT_EQ(read_password("secret").error().message, "invalid password packet size");
  EXPECT_FALSE(read_password(std::string(70000, 'x') + '\0'));
  auto initial = read_sasl_initial("SCRAM-SHA-256\0\0\0\0\x03n,,"sv);
  ASSERT_TRUE(initial);
  EXPECT_EQ(initial->mechanism, "SCRAM-SHA-256");
  EXPECT_EQ(initial->data, "n,,");
  auto without = read_sasl_initial("SCRAM-SHA-256\0\xff\xff\xff\xff"sv);
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->data);
  EXPECT_FALSE(read_sasl_initial("SCRAM-SHA-256\0\xff\xff\xff\xfe"sv));
  EXPECT_FALSE(read_sasl_initial("SCRAM-SHA-256\0\0\0\0\x04n,,"sv));
  EXPECT_FALSE(read_sasl_initial(std::string("S\0\0\0\x08\0", 6).append(2048, 'x')));
}

}  // namespace kintsugi::wire
