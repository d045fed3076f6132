#include "executor/copy_split.h"

#include <gtest/gtest.h>

#include <random>

#include "executor/copy_format.h"
#include "tests/executor/copy_map.h"
#include "wire/frame.h"

namespace kintsugi::executor {
namespace {

using planner::CopyIn;

CopyIn plan_of(CopyIn::Format format, std::vector<int> columns = {0}, std::string map = "ranges") {
  CopyIn plan;
  plan.map = std::move(map);
  plan.key_columns = std::move(columns);
  plan.format = format;
  if (format == CopyIn::Format::kCsv) {
    plan.delimiter = ',';
    plan.null_text = "";
  }
  plan.shards = {1, 2, 3};
  return plan;
}

// What each shard gets, joined by '|', or the error. `cut` bytes at a time; 0: all at once.
std::string split(const CopyIn& plan, std::string_view data, std::size_t cut = 0) {
  auto splitter = CopySplitter::make(plan, copy_map(), 1000);
  if (!splitter) return splitter.error().sqlstate;
  Status status;
  while (status && !data.empty()) {
    const std::string piece(data.substr(0, cut == 0 ? data.size() : cut));  // views into it end with it
    data.remove_prefix(piece.size());
    status = splitter->take(piece);
  }
  if (status) status = splitter->finish();
  if (!status) return status.error().sqlstate + " " + status.error().detail;
  return splitter->outputs()[0] + "|" + splitter->outputs()[1] + "|" + splitter->outputs()[2];
}

void expect_split(const CopyIn& plan, std::string_view data, const std::string& expected) {
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    ASSERT_EQ(split(plan, data, cut), expected) << "cut into pieces of " << cut;
  }
}

TEST(CopySplit, KnowsWhatForceNullAndForceNotNullMean) {
  CopyIn plan = plan_of(CopyIn::Format::kCsv);
  plan.null_text = "150";
  EXPECT_EQ(split(plan, "\"150\",a\n"), "|\"150\",a\n|");
  EXPECT_TRUE(split(plan, "150,a\n").starts_with("KG003"));
  plan.force_null = {true};
  EXPECT_TRUE(split(plan, "\"150\",a\n").starts_with("KG003"));
  plan.force_not_null = {true};
  EXPECT_EQ(split(plan, "150,a\n"), "|150,a\n|");
  EXPECT_TRUE(split(plan, "\"150\",a\n").starts_with("KG003"));
}

TEST(CopySplit, TextRowsGoToTheirShards) {
  const CopyIn plan = plan_of(CopyIn::Format::kText);
  expect_split(plan, "1\ta\n150\tb\n-7\tc\n250\t\\N\n", "1\ta\n-7\tc\n|150\tb\n|250\t\\N\n");
  expect_split(plan, "1\n150", "1\n|150|");  // no ending at the end
  expect_split(plan, "", "||");
  expect_split(plan, "1\r\n150\r\n", "1\r\n|150\r\n|");
  expect_split(plan, "1\r150\r250", "1\r|150\r|250");
  // An escaped newline or delimiter is data; \. is the end.
  expect_split(plan, "1\ta\\\nb\n150\t\\\\\n", "1\ta\\\nb\n|150\t\\\\\n|");
  expect_split(plan, "1\n\\.\n150\n", "1\n||");
  expect_split(plan_of(CopyIn::Format::kText, {1}), "a\\\tb\t150\n", "|a\\\tb\t150\n|");
  // The key is written with escapes: 150 as \x31 \065 0.
  expect_split(plan, "\\x31\\0650\tx\n", "|\\x31\\0650\tx\n|");
}

TEST(CopySplit, CsvKnowsQuotes) {
  CopyIn plan = plan_of(CopyIn::Format::kCsv, {1});
  expect_split(plan, "\"a,\"\"b\n150,\",1\n\"x\",\"150\"\n", "\"a,\"\"b\n150,\",1\n|\"x\",\"150\"\n|");
  plan.escape = '\\';
  expect_split(plan, "\"a\\\"\n\",150\n\"\\\\\",1\n", "\"\\\\\",1\n|\"a\\\"\n\",150\n|");
  plan.header = true;
  expect_split(plan, "name,id\nx,1\n", "name,id\nx,1\n|name,id\n|name,id\n");
  EXPECT_EQ(split(plan, "name,id\nx,\n"), "KG003 COPY, line 2.");
  EXPECT_EQ(split(plan, "name,id\nx,\"\"\n").substr(0, 5), "22P02");  // quoted, so no NULL
}

TEST(CopySplit, ErrorsNameTheLine) {
  const CopyIn plan = plan_of(CopyIn::Format::kText);
  EXPECT_EQ(split(plan, "1\n2\n\\N\n"), "KG003 COPY, line 3.");
  EXPECT_EQ(split(plan, "1\n500\n"), "KG001 COPY, line 2.");
  EXPECT_EQ(split(plan, "350\n"), "KG002 COPY, line 1.");
  EXPECT_EQ(split(plan, "1\nx\n"), "22P02 COPY, line 2.");
  EXPECT_EQ(split(plan_of(CopyIn::Format::kText, {2}), "1\t2\n"), "22P04 COPY, line 1.");
  EXPECT_EQ(split(plan, std::string(1001, '1')), "54000 COPY, line 1.");
  CopyIn elsewhere = plan;
  elsewhere.shards = {2, 3};
  EXPECT_EQ(split(elsewhere, "1\n"), "40001 COPY, line 1.");
  EXPECT_EQ(split(plan_of(CopyIn::Format::kText, {0}, "nothing"), "1\n"), "42704");
}

TEST(CopySplit, KeysOfSeveralColumnsAreTakenInTheKeysOrder) {
  // The key is (text, bigint); the row has them the other way round.
  const CopyIn turned = plan_of(CopyIn::Format::kText, {2, 0}, "pairs");
  const CopyIn straight = plan_of(CopyIn::Format::kText, {0, 1}, "pairs");
  std::string where_turned, where_straight;
  for (int i = 0; i < 50; ++i) {
    const std::string number = std::to_string(i), name = "n" + std::to_string(i * i);
    const std::string a = split(turned, number + "\tx\t" + name + "\n"),
                      b = split(straight, name + "\t" + number + "\n");
    where_turned += a.starts_with("||") ? '3' : a.starts_with("|") ? '2' : '1';
    where_straight += b.starts_with("||") ? '3' : b.starts_with("|") ? '2' : '1';
  }
  EXPECT_EQ(where_turned, where_straight);
  for (const char shard : {'1', '2', '3'}) EXPECT_NE(where_turned.find(shard), std::string::npos);
}

std::string be32(std::uint32_t value) {
  std::string raw(4, '\0');
  wire::store_u32(raw.data(), value);
  return raw;
}
std::string tuple(int key, const std::string& text) {
  return std::string("\0\2", 2) + be32(4) + be32(static_cast<std::uint32_t>(key)) +
         be32(static_cast<std::uint32_t>(text.size())) + text;
}

TEST(CopySplit, BinaryTuples) {
  const CopyIn plan = plan_of(CopyIn::Format::kBinary);
  const std::string head(kBinaryCopyHeader), end(kBinaryCopyTrailer);
  const std::string data = head + tuple(1, "a\n") + tuple(150, "") + tuple(2, "\xff\xff") + end;
  expect_split(plan, data,
               head + tuple(1, "a\n") + tuple(2, "\xff\xff") + end + "|" + head + tuple(150, "") + end + "|" +
                   head + end);
  EXPECT_EQ(split(plan, head + tuple(1, "") + std::string("\0\1", 2) + be32(UINT32_MAX) + end),
            "KG003 COPY, row 2.");
  EXPECT_EQ(split(plan_of(CopyIn::Format::kBinary, {2}), head + tuple(1, "")), "22P04 COPY, row 1.");
}

TEST(CopySplit, ReplicatedRowsGoToAll) {
  CopyIn plan = plan_of(CopyIn::Format::kText, {}, "");
  expect_split(plan, "a\tb\nc", "a\tb\nc|a\tb\nc|a\tb\nc");
}

// Whatever the lines hold, each comes out once, whole, where it belongs, however the data are cut.
TEST(CopySplit, RandomTextIsTheSameHoweverItIsCut) {
  std::minstd_rand random(7);
  const CopyIn plan = plan_of(CopyIn::Format::kText);
  for (int round = 0; round < 300; ++round) {
    std::string data, expected[3];
    for (int line = 0; line < 5; ++line) {
      const int key = static_cast<int>(random() % 300);
      std::string row = std::to_string(key) + "\t";
      for (unsigned i = random() % 12; i > 0; --i) {
        static const std::string_view kPieces[] = {"a", "\\n", "\\\n", "\\\\", "\t", "\\\t", "\\N", "\xc3\xa9"};
        row += kPieces[random() % 8];
      }
      row += "\n";
      data += row;
      expected[key / 100] += row;
    }
    const std::string whole = expected[0] + "|" + expected[1] + "|" + expected[2];
    ASSERT_EQ(split(plan, data), whole);
    ASSERT_EQ(split(plan, data, 1 + random() % 9), whole);
  }
}

}  // namespace
}  // namespace kintsugi::executor
