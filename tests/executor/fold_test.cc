#include "executor/fold.h"

#include <gtest/gtest.h>

#include "executor/decimal_sum.h"

namespace kintsugi::executor {
namespace {

using planner::Fold;
using planner::FoldColumn;

std::string shown(const Result<Cell>& cell) {
  if (!cell) return cell.error().sqlstate + ": " + cell.error().message;
  return *cell ? **cell : "NULL";
}

std::string fold(Fold how, std::uint32_t type, const std::vector<Cell>& cells) {
  return shown(fold_column(FoldColumn{.fold = how, .type = type}, false, cells));
}

constexpr auto kNull = std::nullopt;

TEST(Fold, SumsOfIntegersInTheirTypesRange) {
  EXPECT_EQ(fold(Fold::kSum, 20, {"1", kNull, "-3"}), "-2");
  EXPECT_EQ(fold(Fold::kSum, 20, {kNull, kNull}), "NULL");
  EXPECT_EQ(fold(Fold::kSum, 20, {"9223372036854775807", "1", "-1"}), "9223372036854775807");
  EXPECT_EQ(fold(Fold::kSum, 20, {"9223372036854775807", "1"}), "22003: bigint out of range");
  EXPECT_EQ(fold(Fold::kSum, 20, {"-9223372036854775808", "-1"}), "22003: bigint out of range");
  EXPECT_EQ(fold(Fold::kSum, 23, {"2147483647", "1"}), "22003: integer out of range");
  EXPECT_EQ(fold(Fold::kSum, 20, {"x"}).substr(0, 5), "XX001");
}

TEST(Fold, SumsOfNumericsAreExact) {
  EXPECT_EQ(fold(Fold::kSum, 1700, {"9223372036854775807", "9223372036854775807"}), "18446744073709551614");
  EXPECT_EQ(fold(Fold::kSum, 1700, {"-5", "5"}), "0");
  EXPECT_EQ(fold(Fold::kSum, 1700, {"-1", "0.25"}), "-0.75");
  EXPECT_EQ(fold(Fold::kSum, 1700, {"0.1", "0.20", "10000"}), "10000.30");
  EXPECT_EQ(fold(Fold::kSum, 1700, {"-99999999", "-1"}), "-100000000");
  EXPECT_EQ(fold(Fold::kSum, 1700, {"0.00", "0.000"}), "0.000");
  EXPECT_EQ(fold(Fold::kSum, 1700, {"Infinity", "1"}), "Infinity");
  EXPECT_EQ(fold(Fold::kSum, 1700, {"Infinity", "-Infinity"}), "NaN");
  EXPECT_EQ(fold(Fold::kSum, 1700, {"NaN", "1"}), "NaN");
}

TEST(Fold, ANumericSumIsTheSameInBinary) {
  const std::vector<std::vector<std::string>> sums = {{"12345678901234567890", "-0.000123"},
                                                      {"-1", "-9999.9999"},
                                                      {"0", "0.0"},
                                                      {"10000", "10000"},
                                                      {"-7", "7"}};
  for (const auto& values : sums) {
    DecimalSum text, both;
    for (const std::string& value : values) {
      DecimalSum one;
      ASSERT_TRUE(one.add(value, false));
      ASSERT_TRUE(text.add(value, false));
      ASSERT_TRUE(both.add(one.to_value(true), true));
    }
    EXPECT_EQ(text.to_value(false), both.to_value(false));
    EXPECT_EQ(text.to_value(true), both.to_value(true));
  }
}

TEST(Fold, BinaryIntegers) {
  const std::string minus_one(8, '\xff');
  const std::string three("\0\0\0\0\0\0\0\3", 8);
  const auto sum = fold_column({.fold = Fold::kSum, .type = 20}, true, {minus_one, three});
  EXPECT_EQ(**sum, std::string("\0\0\0\0\0\0\0\2", 8));
}

TEST(Fold, ExtremesAndTruth) {
  EXPECT_EQ(fold(Fold::kMin, 23, {"10", "9", kNull}), "9");
  EXPECT_EQ(fold(Fold::kMax, 23, {"10", "9", kNull}), "10");
  EXPECT_EQ(fold(Fold::kMax, 25, {"B", "a", "A"}), "a");
  EXPECT_EQ(fold(Fold::kMin, 701, {"NaN", "Infinity"}), "Infinity");
  EXPECT_EQ(fold(Fold::kMax, 23, {kNull}), "NULL");
  EXPECT_EQ(fold(Fold::kAnd, 16, {"t", kNull, "t"}), "t");
  EXPECT_EQ(fold(Fold::kAnd, 16, {"t", "f", "t"}), "f");
  EXPECT_EQ(fold(Fold::kOr, 16, {"f", "t", kNull}), "t");
  EXPECT_EQ(fold(Fold::kOr, 16, {kNull}), "NULL");
  EXPECT_EQ(fold(Fold::kFirst, 25, {kNull, "a"}), "NULL");
}

}  // namespace
}  // namespace kintsugi::executor
