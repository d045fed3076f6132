// The startup packets, by the rules of PostgreSQL 15's ProcessStartupPacket.
#include <gtest/gtest.h>

#include "wire/client_messages.h"

namespace kintsugi::wire {
namespace {

std::string packet(std::string_view body) {
  std::string out(4, '\0');
  store_u32(out.data(), static_cast<std::uint32_t>(body.size() + 4));
  return out.append(body);
}
std::string startup_body(std::string_view rest, std::uint16_t major = 3, std::uint16_t minor = 0) {
  std::string body(4, '\0');
  store_u16(body.data(), major);
  store_u16(body.data() + 2, minor);
  return body.append(rest);
}
using namespace std::string_view_literals;

Result<StartupMessage> read_startup(std::string_view bytes) {
  KG_TRY(auto read, read_initial_packet(bytes));
  if (!read) return fail("00000", "incomplete");
  EXPECT_EQ(read->size, bytes.size());
  return std::get<StartupMessage>(read->packet);
}

}  // namespace

TEST(InitialPacket, StartupRoundTrip) {
  std::vector<std::pair<std::string, std::string>> parameters{
      {"user", "app"}, {"database", "shop"}, {"application_name", ""}, {"options", "-c geqo=off"}};
  std::string out;
  append_startup(out, parameters);
  for (std::size_t n = 0; n < out.size(); ++n) {
    auto part = read_initial_packet(std::string_view(out).substr(0, n));
    ASSERT_TRUE(part);
    EXPECT_FALSE(part->has_value());
  }
  auto startup = read_startup(out);
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->major, 3);
  EXPECT_EQ(startup->minor, 0);
  EXPECT_EQ(startup->parameters, parameters);
  EXPECT_EQ(*startup->user(), "app");
  EXPECT_EQ(startup->database(), "shop");
  auto more = read_initial_packet(std::string(out).append("Q\0\0"sv));
  ASSERT_TRUE(more && *more);
  EXPECT_EQ((*more)->size, out.size());
}

TEST(InitialPacket, SslGssAndCancel) {
  std::string ssl, cancel;
  append_ssl_request(ssl);
  EXPECT_EQ(ssl, "\0\0\0\x08\x04\xd2\x16\x2f"sv);
  EXPECT_TRUE(std::holds_alternative<SslRequest>((*read_initial_packet(ssl))->packet));
  EXPECT_TRUE(
      std::holds_alternative<GssEncRequest>((*read_initial_packet("\0\0\0\x08\x04\xd2\x16\x30"sv))->packet));
  append_cancel_request(cancel, CancelRequest{77, 0xdeadbeef});
  auto read = read_initial_packet(cancel);
  ASSERT_TRUE(read && *read);
  auto request = std::get<CancelRequest>((*read)->packet);
  EXPECT_EQ(request.pid, 77U);
  EXPECT_EQ(request.secret, 0xdeadbeefU);
}

TEST(InitialPacket, ACancelRequestOfAnotherSizeIsRefused) {
  for (std::size_t size : {4, 8, 11, 13, 40}) {
    std::string body("\x04\xd2\x16\x2e");
    body.resize(size, '\0');
    auto read = read_initial_packet(packet(body));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().message, "invalid length of query cancel packet");
    EXPECT_EQ(read.error().sqlstate, "08P01");
  }
}

TEST(InitialPacket, TheLengthIsJudgedBeforeTheBodyHasCome) {
  for (std::uint32_t length : {0U, 4U, 7U, kMaxInitialPacket + 5, 0x47455420U /* "GET " */, 0xffffffffU}) {
    std::string head(4, '\0');
    store_u32(head.data(), length);
    auto read = read_initial_packet(head);
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().message, "invalid length of startup packet");
    EXPECT_EQ(read.error().sqlstate, "08P01");
  }
  std::string longest = startup_body("");
  longest.append("user\0a\0options\0"sv).append(kMaxInitialPacket - longest.size() - 2, 'x').append("\0\0"sv);
  ASSERT_EQ(longest.size(), kMaxInitialPacket);
  EXPECT_TRUE(read_startup(packet(longest)));
}

TEST(InitialPacket, OtherVersionsAreRefusedInPostgresqlsWords) {
  auto old = read_initial_packet(packet(startup_body("user\0a\0\0"sv, 2, 0)));
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().sqlstate, "0A000");
  EXPECT_EQ(old.error().message, "unsupported frontend protocol 2.0: server supports 3.0 to 3.0");
  EXPECT_FALSE(read_initial_packet(packet(startup_body("user\0a\0\0"sv, 4, 1))));
  EXPECT_FALSE(read_initial_packet("\0\0\0\x08\x04\xd2\x16\x31"sv));  // 1234.5681
}

TEST(InitialPacket, AHigherMinorVersionAndProtocolOptionsAreReadForNegotiation) {
  auto startup = read_startup(packet(startup_body("user\0a\0_pq_.one\0x\0_pq_.two\0\0\0"sv, 3, 2)));
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->minor, 2);
  EXPECT_EQ(startup->protocol_options(), (std::vector<std::string_view>{"_pq_.one", "_pq_.two"}));
}

TEST(InitialPacket, AParameterSentTwiceCountsTheLastTime) {
  auto startup = read_startup(packet(startup_body("user\0first\0user\0second\0\0"sv)));
  ASSERT_TRUE(startup);
  EXPECT_EQ(*startup->user(), "second");
  EXPECT_EQ(startup->parameters.size(), 2U);
}

TEST(InitialPacket, TheLayoutMustEndWithItsTerminator) {
  for (auto rest : {""sv, "user"sv, "user\0"sv, "user\0a"sv, "user\0a\0"sv, "user\0a\0\0x"sv, "\0\0"sv}) {
    auto startup = read_startup(packet(startup_body(rest)));
    ASSERT_FALSE(startup) << rest.size();
    EXPECT_EQ(startup.error().sqlstate, "08P01");
    EXPECT_EQ(startup.error().message, "invalid startup packet layout: expected terminator as last byte");
  }
}

TEST(InitialPacket, NoUserIsAnAuthorizationError) {
  for (auto rest : {"\0"sv, "database\0d\0\0"sv, "user\0\0\0"sv}) {
    auto startup = read_startup(packet(startup_body(rest)));
    ASSERT_TRUE(startup) << rest.size();
    ASSERT_FALSE(startup->user());
    EXPECT_EQ(startup->user().error().sqlstate, "28000");
    EXPECT_EQ(startup->user().error().message, "no PostgreSQL user name specified in startup packet");
  }
  auto startup = read_startup(packet(startup_body("user\0app\0\0"sv)));
  EXPECT_EQ(startup->database(), "app");
}

TEST(InitialPacket, WhatWeWriteCannotBeExtendedByAZero) {
  std::vector<std::pair<std::string, std::string>> parameters{
      {"user", std::string("a\0replication\0true", 18)}, {std::string("\0x", 2), "y"}, {"database", "d"}};
  std::string out;
  append_startup(out, parameters);
  auto startup = read_startup(out);
  ASSERT_TRUE(startup);
  EXPECT_EQ(startup->parameters,
            (std::vector<std::pair<std::string, std::string>>{{"user", "a"}, {"database", "d"}}));
}

}  // namespace kintsugi::wire
