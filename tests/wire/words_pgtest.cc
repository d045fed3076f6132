// The same malformed bytes to a real PostgreSQL and to our readers: the same SQLSTATE and the same words.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/wire/every_message.h"
#include "tests/wire/real_postgres.h"

namespace kintsugi::wire {
namespace {
using namespace std::string_view_literals;

int port() {
  return RealPostgres::shared().port();
}

std::string words(const Error& error) {
  return error.sqlstate + " " + error.message;
}

std::string first_error(BlockingPeer& peer) {
  while (auto frame = peer.receive()) {
    if (frame->type != server::kError) continue;
    auto report = read_error(frame->body);
    return report ? report->sqlstate + " " + report->message : "unreadable";
  }
  return "closed";
}

std::string packet(std::uint16_t major, std::uint16_t minor, std::string_view rest) {
  std::string out(8, '\0');
  store_u32(out.data(), static_cast<std::uint32_t>(8 + rest.size()));
  store_u16(out.data() + 4, major);
  store_u16(out.data() + 6, minor);
  return out.append(rest);
}
}  // namespace

TEST(WordsPg, StartupPackets) {
  for (const std::string& bytes :
       {packet(3, 0, "user\0postgres\0"sv), packet(3, 0, "user\0postgres\0\0x"sv),
        packet(3, 0, "user\0postgres"sv), packet(3, 0, "user"sv), packet(3, 0, ""sv), packet(3, 0, "\0\0"sv),
        packet(3, 0, "\0"sv), packet(3, 0, "database\0postgres\0\0"sv), packet(3, 0, "user\0\0\0"sv),
        packet(4, 1, "user\0postgres\0\0"sv), packet(1234, 5681, "")}) {
    BlockingPeer peer(port());
    peer.send(bytes);
    std::string theirs = first_error(peer), ours;
    auto read = read_initial_packet(bytes);
    if (!read) {
      ours = words(read.error());
    } else {
      ASSERT_TRUE(*read);
      auto user = std::get<StartupMessage>((*read)->packet).user();
      ours = user ? "none" : words(user.error());
    }
    EXPECT_EQ(ours, theirs) << ::testing::PrintToString(bytes);
  }
}

TEST(WordsPg, StartupPacketsThatPostgresqlAnswersByClosing) {
  std::string short_cancel("\0\0\0\x0c\x04\xd2\x16\x2e\0\0\0\x01", 12);
  for (const std::string& bytes : {std::string("\0\0\0\x07\0\x03\0", 7), std::string("\0\0\x27\x15", 4),
                                   std::string("GET / HTTP/1.1\r\n\r\n"), short_cancel}) {
    BlockingPeer peer(port());
    peer.send(bytes);
    EXPECT_FALSE(peer.receive()) << ::testing::PrintToString(bytes);
    EXPECT_FALSE(read_initial_packet(bytes)) << ::testing::PrintToString(bytes);
  }
  // The longest that both take.
  std::string longest("user\0postgres\0options\0", 22);
  longest.append(kMaxInitialPacket - 4 - longest.size() - 2, ' ').append("\0\0"sv);
  BlockingPeer peer(port());
  peer.send(packet(3, 0, longest));
  EXPECT_EQ(peer.receive()->type, server::kAuthentication);
  EXPECT_TRUE(read_initial_packet(packet(3, 0, longest)));
}

TEST(WordsPg, DuplicatedParametersCountTheLastTime) {
  std::string bytes = packet(3, 0,
                             "user\0nobody\0user\0postgres\0application_name\0one\0application_name\0two\0"
                             "database\0nowhere\0database\0postgres\0\0"sv);
  BlockingPeer peer(port());
  peer.send(bytes);
  while (auto frame = peer.receive())
    if (frame->type == server::kReadyForQuery) break;
  EXPECT_EQ(ask(peer, "select current_user || ' ' || current_setting('application_name')").value(),
            "postgres two");
  auto startup = std::get<StartupMessage>((*read_initial_packet(bytes))->packet);
  EXPECT_EQ(*startup.user(), "postgres");
  EXPECT_EQ(startup.get("application_name"), "two");
  EXPECT_EQ(startup.database(), "postgres");
}

TEST(WordsPg, VersionNegotiationIsTheSameBytes) {
  std::string bytes = packet(3, 2, "user\0postgres\0_pq_.one\0x\0_pq_.two\0\0\0"sv);
  BlockingPeer peer(port());
  peer.send(bytes);
  auto theirs = peer.receive();
  ASSERT_TRUE(theirs);
  EXPECT_EQ(theirs->type, server::kNegotiateVersion);
  auto startup = std::get<StartupMessage>((*read_initial_packet(bytes))->packet);
  std::string ours;
  append_negotiate_version(ours, 0, startup.protocol_options());
  EXPECT_EQ(std::string_view(ours).substr(kHeaderBytes), theirs->body);
}

TEST(WordsPg, MessagesOfASession) {
  struct Case {
    char type;
    std::string_view body;
  };
  const Case cases[] = {
      {'Q', "select 1"sv},
      {'Q', "select 1\0x"sv},
      {'Q', ""sv},
      {'P', ""sv},
      {'P', "s\0select"sv},
      {'P', "s\0select 1\0"sv},
      {'P', "s\0select 1\0\0"sv},
      {'P', "s\0select 1\0\0\x01"sv},
      {'P', "s\0select 1\0\0\x01\0\0\0"sv},
      {'P', "s\0select 1\0\xff\xff"sv},
      {'P', "s\0select 1\0\0\0x"sv},
      {'B', "p"sv},
      {'B', "\0\0\0"sv},
      {'B', "\0\0\0\x02\0\x01\0\x01\0\x01\0\0\0\0\0\0"sv},
      {'B', "\0\0\0\0\0\x01\0\0\0\x05xy\0\0"sv},
      {'B', "\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"sv},
      {'B',
       "\0\0\0\0\0\x01\0\0\0\x01"
       "1\0\x01"sv},
      {'B',
       "\0\0\0\0\0\x01\0\0\0\x01"
       "1\0\0x"sv},
      {'B',
       "\0\0\0\x01\0\x07\0\x01\0\0\0\x01"
       "1\0\0"sv},
      {'D', ""sv},
      {'D', "S"sv},
      {'D', "Sx"sv},
      {'D', "X\0"sv},
      {'D', "Sx\0y"sv},
      {'C', ""sv},
      {'C', "X\0"sv},
      {'C', "\xff\0"sv},
      {'C', "P\0\0"sv},
      {'E', "p"sv},
      {'E', "p\0\0\0\0"sv},
      {'E', "p\0\0\0\0\0x"sv},
      {'S', "x"sv},
      {'H', "x"sv},
      {'!', "x"sv},
      {'\0', ""sv},
      {'\x80', ""sv},
      {'p' + 1, "x"sv},
  };
  for (const auto& [type, body] : cases) {
    auto session = log_in(port(), Login{});
    ASSERT_TRUE(session);
    ASSERT_TRUE(ask(*session->peer, "select 1"));
    std::string out;
    FrameWriter(out, type).bytes(body);
    // A Bind is looked at after its statement has been found.
    if (type == 'B') append_parse(out, "", "select $1::int", "");
    if (type == 'B')
      std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(body.size() + 5), out.end());
    append_sync(out);
    session->peer->send(out);
    std::string theirs = first_error(*session->peer);
    auto ours = rewrite_client(type, body);
    EXPECT_EQ(ours ? "none" : words(ours.error()), theirs)
        << static_cast<int>(type) << " " << ::testing::PrintToString(std::string(body));
  }
}

TEST(WordsPg, TheShortBoundsArePostgresqls) {
  for (char type : {'C', 'D', 'E', 'H', 'S', 'c', 'f', 'd', 'Q', 'P', 'B'}) {
    std::uint64_t bound = client::max_body(type, 1 << 28);
    bool is_short = bound == 10000;
    EXPECT_EQ(is_short, std::string_view("CDEHSc").find(type) != std::string_view::npos || type == 'f') << type;
    // One byte more than the short bound: PostgreSQL gives up at once, or waits for a long message's body.
    auto session = log_in(port(), Login{});
    ASSERT_TRUE(session);
    std::string head(kHeaderBytes, type);
    store_u32(head.data() + 1, 10001 + 4);
    session->peer->send(head);
    if (is_short) {
      EXPECT_EQ(first_error(*session->peer), "closed") << type;
    } else {
      session->peer->send(std::string(10001, 'x'));
      std::string sync;
      append_sync(sync);
      session->peer->send(sync);
      EXPECT_TRUE(session->peer->receive()) << type;
    }
  }
}

}  // namespace kintsugi::wire
