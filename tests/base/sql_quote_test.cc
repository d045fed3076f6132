#include "base/sql_quote.h"

#include <gtest/gtest.h>

namespace kintsugi {

TEST(SqlQuote, NamesAreAlwaysQuoted) {
  EXPECT_EQ(quote_identifier("a"), "\"a\"");
  EXPECT_EQ(quote_identifier("we\"ird; DROP TABLE x"), "\"we\"\"ird; DROP TABLE x\"");
  EXPECT_EQ(quote_identifier(std::string_view("a\0b", 3)), "\"a\"");
}

TEST(SqlQuote, NamesOfSettingsMayBeQuoted) {
  EXPECT_EQ(unquote_identifier(" tenants "), "tenants");
  EXPECT_EQ(unquote_identifier("\"My Map\""), "My Map");
  EXPECT_EQ(unquote_identifier(" \" a\"\"b\"\"\" "), " a\"b\"");
  EXPECT_EQ(unquote_identifier("\""), "\"");
  EXPECT_EQ(unquote_identifier(""), "");
  EXPECT_EQ(unquote_identifier(quote_identifier("we\"ird")), "we\"ird");
}

TEST(SqlQuote, ValuesMeanTheSameUnderEverySetting) {
  EXPECT_EQ(quote_literal("a"), "'a'");
  EXPECT_EQ(quote_literal("it's"), "'it''s'");
  EXPECT_EQ(quote_literal("\\'; DROP TABLE x; --"), " E'\\\\''; DROP TABLE x; --'");
  EXPECT_EQ(quote_literal(""), "''");
}

}  // namespace kintsugi
