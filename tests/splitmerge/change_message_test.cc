#include "splitmerge/change_message.h"

#include <gtest/gtest.h>

namespace kintsugi::splitmerge {
namespace {

std::string u16(unsigned value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 255)};
}
std::string u32(unsigned value) {
  return u16(value >> 16) + u16(value & 65535);
}
std::string text(const std::string& value) {
  return "t" + u32(static_cast<unsigned>(value.size())) + value;
}
std::string zero(const std::string& value) {
  return value + '\0';
}

}  // namespace

TEST(ChangeMessage, ARelationIsItsNameAndItsColumns) {
  const std::string bytes = "R" + u32(77) + zero("pub\"lic") + zero("t") + "d" + u16(2) + "\1" + zero("id") +
                            u32(20) + u32(0xffffffff) + std::string(1, '\0') + zero("a b") + u32(25) + u32(5);
  const auto message = read_change(bytes);
  ASSERT_TRUE(message);
  const auto& relation = std::get<ChangedRelation>(*message);
  EXPECT_EQ(relation.id, 77U);
  EXPECT_EQ(relation.schema, "pub\"lic");
  EXPECT_EQ(relation.name, "t");
  EXPECT_EQ(relation.columns, (std::vector<std::string>{"id", "a b"}));
}

TEST(ChangeMessage, RowsComeAsTheyWereAndAsTheyAre) {
  const std::string insert = "I" + u32(1) + "N" + u16(2) + text("5") + "n";
  auto message = read_change(insert);
  ASSERT_TRUE(message);
  const auto inserted = std::get<RowChange>(*message);
  EXPECT_FALSE(inserted.before);
  EXPECT_EQ(*inserted.after, (ChangedTuple{"5", std::nullopt}));
  // A large value that was not touched is not told.
  const std::string update = "U" + u32(1) + "K" + u16(2) + text("5") + "n" + "N" + u16(2) + text("6") + "u";
  message = read_change(update);
  ASSERT_TRUE(message);
  const auto updated = std::get<RowChange>(*message);
  EXPECT_EQ(*updated.before, (ChangedTuple{"5", std::nullopt}));
  EXPECT_EQ(*updated.after, (ChangedTuple{"6", std::nullopt}));
  const std::string deletion = "D" + u32(9) + "O" + u16(1) + text("");
  message = read_change(deletion);
  ASSERT_TRUE(message);
  const auto deleted = std::get<RowChange>(*message);
  EXPECT_EQ(deleted.relation, 9U);
  EXPECT_EQ(*deleted.before, ChangedTuple{""});
  EXPECT_FALSE(deleted.after);
}

TEST(ChangeMessage, OthersAreOfNoMatter) {
  const auto begun = read_change("B" + std::string(16, 'x') + u32(0xfffffff0));
  ASSERT_TRUE(begun);
  EXPECT_EQ(std::get<ChangingTransaction>(*begun).xid, 0xfffffff0U);
  for (const char* kind : {"C", "O", "Y", "T", "M"}) {
    const auto message = read_change(kind + std::string(20, 'x'));
    ASSERT_TRUE(message);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(*message));
  }
  EXPECT_EQ(read_change("Z").error().sqlstate, "08P01");
  EXPECT_EQ(read_change("").error().sqlstate, "08P01");
}

// Whatever is cut off or lies about its length is refused.
TEST(ChangeMessage, WhatIsCutOffIsRefused) {
  const std::string update = "U" + u32(1) + "K" + u16(1) + text("5") + "N" + u16(2) + text("6") + "u";
  const std::string relation =
      "R" + u32(7) + zero("s") + zero("t") + "d" + u16(1) + "\1" + zero("id") + u32(20) + u32(0);
  for (const std::string& whole : {update, relation}) {
    ASSERT_TRUE(read_change(whole));
    for (std::size_t size = 1; size < whole.size(); ++size) {
      if (whole[0] == 'U' && (size == 5 || size == 5 + 1 + 2 + 6)) continue;  // a row more or less is no harm
      EXPECT_FALSE(read_change(whole.substr(0, size))) << size;
    }
    EXPECT_FALSE(read_change(whole + "x"));
  }
  EXPECT_FALSE(read_change("I" + u32(1) + "N" + u16(65535) + text("5")));
  EXPECT_FALSE(read_change("I" + u32(1) + "N" + u16(1) + "t" + u32(0x7fffffff) + "5"));
  EXPECT_FALSE(read_change("I" + u32(1) + "N" + u16(1) + "b" + u32(1) + "5"));
}

}  // namespace kintsugi::splitmerge
