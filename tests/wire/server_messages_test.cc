#include "wire/server_messages.h"

#include <gtest/gtest.h>

namespace kintsugi::wire {

using namespace std::string_view_literals;

namespace {
std::string_view body_of(const std::string& frame) {
  return std::string_view(frame).substr(kHeaderBytes);
}
}  // namespace

TEST(ErrorReport, ReadsTheFieldsOfARealOne) {
  auto report = read_error(
      "SFEHLER\0VERROR\0C42P01\0MRelation \xc2\xbbx\xc2\xab existiert nicht\0P15\0Wcontext\0Fparse_relation.c\0L1\0Rparserf\0\0"sv);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->severity, "ERROR");  // the untranslated one
  EXPECT_EQ(report->sqlstate, "42P01");
  EXPECT_EQ(report->position, 15);
  EXPECT_EQ(report->context, "context");
  EXPECT_EQ(report->message, "Relation \xc2\xbbx\xc2\xab existiert nicht");
}

TEST(ErrorReport, SeverityOfAnOldServerIsTheTranslatedOne) {
  EXPECT_EQ(read_error("SFATAL\0C28000\0Mno\0\0"sv)->severity, "FATAL");
  EXPECT_EQ(read_error("VERROR\0SFEHLER\0\0"sv)->severity, "ERROR");
}

TEST(ErrorReport, AStrangePositionIsNone) {
  for (auto body : {"P\0\0"sv, "P-1\0\0"sv, "P1x\0\0"sv, "P99999999999999\0\0"sv, "P0\0\0"sv})
    EXPECT_EQ(read_error(body)->position, 0);
}

TEST(ErrorReport, WritesAnErrorOfOurs) {
  std::string out;
  Error error{"KG001", "no shardlet", "a detail", "a hint", 3};
  append_error(out, "FATAL", error);
  EXPECT_EQ(out[0], 'E');
  auto report = read_error(body_of(out));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->severity, "FATAL");
  EXPECT_EQ(report->sqlstate, "KG001");
  EXPECT_EQ(report->message, "no shardlet");
  EXPECT_EQ(report->detail, "a detail");
  EXPECT_EQ(report->hint, "a hint");
  EXPECT_EQ(report->position, 3);
}

TEST(ErrorReport, TheContextGrowsAndNothingElseChanges) {
  std::string original;
  FrameWriter(original, 'E').bytes("SERROR\0VERROR\0C23505\0Mdup\0nkey\0Wfirst\0ttbl\0Ffile.c\0\0"sv);
  std::string out = "before";
  append_error_with_context(out, **peek_frame(original, 1000), "shard s1");
  EXPECT_EQ(std::string_view(out).substr(6 + kHeaderBytes),
            "SERROR\0VERROR\0C23505\0Mdup\0nkey\0Wfirst\nshard s1\0ttbl\0Ffile.c\0\0"sv);
  std::string plain, plain_out;
  FrameWriter(plain, 'N').bytes("SNOTICE\0C00000\0Mhi\0\0"sv);
  append_error_with_context(plain_out, **peek_frame(plain, 1000), "shard s1");
  EXPECT_EQ(plain_out[0], 'N');
  EXPECT_EQ(body_of(plain_out), "SNOTICE\0C00000\0Mhi\0Wshard s1\0\0"sv);
}

TEST(ErrorReport, AMalformedFramePassesAsItCame) {
  std::string broken, out;
  FrameWriter(broken, 'E').bytes("SERROR\0Mno end");
  append_error_with_context(out, **peek_frame(broken, 1000), "shard s1");
  EXPECT_EQ(out, broken);
}

TEST(ServerMessages, NegotiateVersionCarriesTheWholeVersion) {
  std::string out;
  const std::string_view options[] = {"_pq_.x"};
  append_negotiate_version(out, 0, options);
  EXPECT_EQ(body_of(out), "\0\x03\0\0\0\0\0\x01_pq_.x\0"sv);
  EXPECT_EQ(read_negotiate_version(body_of(out))->unknown_options, std::vector<std::string_view>{"_pq_.x"});
}

TEST(ServerMessages, RowDescriptionAndDataRow) {
  std::string out;
  const Column columns[] = {{"id", 16384, 1, 20, 8, -1, 1}, {"a name", 0, 0, 1043, -1, 24, 0}};
  append_row_description(out, columns);
  auto read = read_row_description(body_of(out));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].table_oid, 16384U);
  EXPECT_EQ((*read)[0].type_size, 8);
  EXPECT_EQ((*read)[0].type_modifier, -1);
  EXPECT_EQ((*read)[0].format, 1);
  EXPECT_EQ((*read)[1].name, "a name");
  EXPECT_EQ((*read)[1].type_size, -1);
  EXPECT_EQ((*read)[1].type_modifier, 24);
  std::string row;
  const std::optional<std::string_view> values[] = {std::nullopt, ""sv, "x\0y"sv};
  append_data_row(row, values);
  auto parsed = read_data_row(body_of(row));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, (std::vector<std::optional<std::string_view>>(std::begin(values), std::end(values))));
  EXPECT_FALSE(read_data_row("\0\x01\xff\xff\xff\xfe"sv));
}

TEST(ServerMessages, AuthenticationOfAnUnknownKindIsRefused) {
  auto read = read_authentication("\0\0\0\x63"sv);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "authentication method 99 not supported");
  EXPECT_FALSE(read_authentication("\0\0\0\x05sal"sv));
  EXPECT_FALSE(read_authentication("\0\0\0\0x"sv));
  auto md5 = read_authentication("\0\0\0\x05salt"sv);
  ASSERT_TRUE(md5);
  EXPECT_EQ(md5->kind, AuthKind::kMd5);
  EXPECT_EQ(md5->data, "salt");
}

TEST(ServerMessages, SaslMechanismsEndWithAnEmptyOne) {
  EXPECT_EQ(*read_sasl_mechanisms("A\0B\0\0"sv), (std::vector<std::string_view>{"A", "B"}));
  for (auto bad : {""sv, "A"sv, "A\0"sv, "A\0\0x"sv}) EXPECT_FALSE(read_sasl_mechanisms(bad));
}

TEST(ServerMessages, ReadyForQueryHasThreeStates) {
  EXPECT_EQ(*read_ready_for_query("I"), TransactionStatus::kIdle);
  EXPECT_EQ(*read_ready_for_query("T"), TransactionStatus::kInTransaction);
  EXPECT_EQ(*read_ready_for_query("E"), TransactionStatus::kFailed);
  EXPECT_FALSE(read_ready_for_query("X"));
}

TEST(ServerMessages, CopyStartHasTwoFormats) {
  EXPECT_TRUE(read_copy_start("\x01\0\x01\0\x01"sv)->binary);
  EXPECT_FALSE(read_copy_start("\0\0\0"sv)->binary);
  EXPECT_FALSE(read_copy_start("\x02\0\0"sv));
}

}  // namespace kintsugi::wire
