#include "wire/frame.h"

#include <gtest/gtest.h>

namespace kintsugi::wire {

TEST(Frame, PeekWaitsForTheHeaderThenForTheBody) {
  std::string whole;
  FrameWriter(whole, 'Q').cstring("select 1");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    auto head = peek_head(std::string_view(whole).substr(0, n), 100);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->has_value(), n >= kHeaderBytes);
    auto frame = peek_frame(std::string_view(whole).substr(0, n), 100);
    ASSERT_TRUE(frame);
    EXPECT_FALSE(frame->has_value());
  }
  std::string more = whole + "more";
  auto frame = peek_frame(more, 100);
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ((*frame)->type, 'Q');
  EXPECT_EQ((*frame)->body, std::string_view("select 1\0", 9));
  EXPECT_EQ((*frame)->size(), whole.size());
}

TEST(Frame, BytesAreHeaderAndBody) {
  std::string whole;
  FrameWriter(whole, 'X').bytes("abc");
  auto frame = peek_frame(whole, 3);
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ((*frame)->bytes(), whole);
}

TEST(Frame, ALengthBelowFourOrAboveTheBoundIsRefusedFromTheHeadAlone) {
  for (std::uint32_t length : {0U, 1U, 3U, 105U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    std::string head("Q0000");
    store_u32(head.data() + 1, length);
    auto peeked = peek_head(head, 100);
    ASSERT_FALSE(peeked) << length;
    EXPECT_EQ(peeked.error().sqlstate, "08P01");
    EXPECT_EQ(peeked.error().message, "invalid message length");
    EXPECT_FALSE(peek_frame(head, 100));
  }
  for (std::uint32_t length : {4U, 104U}) {
    std::string head("Q0000");
    store_u32(head.data() + 1, length);
    auto peeked = peek_head(head, 100);
    ASSERT_TRUE(peeked && *peeked);
    EXPECT_EQ((*peeked)->body_size, length - 4);
    EXPECT_EQ((*peeked)->frame_size(), length + 1);
  }
}

TEST(BodyReader, ReadsBigEndianFields) {
  BodyReader in(std::string_view("\x01\xff\xfe\x80\x00\x00\x01text\0tail", 16));
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.i16(), -2);
  EXPECT_EQ(in.u32(), 0x80000001U);
  EXPECT_EQ(in.cstring(), "text");
  EXPECT_EQ(in.left(), 4U);
  EXPECT_EQ(in.bytes(1), "t");
  EXPECT_FALSE(in.done());
  EXPECT_EQ(in.rest(), "ail");
  EXPECT_TRUE(in.done());
}

TEST(BodyReader, TheFirstFaultStaysAndEverythingAfterItIsEmpty) {
  BodyReader in(std::string_view("\x00\x01\x02", 3));
  EXPECT_EQ(in.u32(), 0U);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.u8(), 0);
  EXPECT_EQ(in.cstring(), "");
  EXPECT_EQ(in.rest(), "");
  EXPECT_EQ(in.bytes(0), "");
  EXPECT_FALSE(in.done());
  EXPECT_EQ(in.finish().error().message, "insufficient data left in message");
}

TEST(BodyReader, SpeaksPostgresqlsWords) {
  BodyReader byte("");
  byte.u8();
  EXPECT_EQ(byte.finish().error().message, "no data left in message");
  BodyReader text("abc");
  text.cstring();
  EXPECT_EQ(text.finish().error().message, "invalid string in message");
  BodyReader left("abc");
  left.u8();
  EXPECT_EQ(left.finish().error().message, "invalid message format");
  EXPECT_EQ(left.finish().error().sqlstate, "08P01");
  BodyReader huge("abc");
  huge.bytes(SIZE_MAX);
  EXPECT_FALSE(huge.ok());
}

TEST(FrameWriter, AStringWithAZeroInsideIsCutThere) {
  std::string out;
  FrameWriter(out, 'Q').cstring(std::string_view("select 1\0; drop", 15));
  EXPECT_EQ(out, std::string("Q\0\0\0\x0dselect 1\0", 14));
}

TEST(FrameWriter, WritesBehindWhatIsThere) {
  std::string out = "before";
  { FrameWriter empty(out, 'S'); }
  FrameWriter(out, 'H').u16(0x1234).u8(5);
  EXPECT_EQ(out, std::string("beforeS\0\0\0\x04H\0\0\0\x07\x12\x34\x05", 19));
}

}  // namespace kintsugi::wire
