#include "base/io/stream.h"

#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <thread>

#include "base/io/connect.h"
#include "tests/base/io/scene.h"

namespace kintsugi::io {
namespace {

using namespace std::chrono_literals;

class StreamTest : public ::testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() {
    std::signal(SIGPIPE, SIG_IGN);
    std::string pattern = (std::filesystem::temp_directory_path() / "kg-io-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    const std::string command =
        "cd " + directory_ +
        " && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        " -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out cert.pem 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory_); }
  static std::string cert() { return directory_ + "/cert.pem"; }
  static std::string key() { return directory_ + "/key.pem"; }

  static inline std::string directory_;
};

Task<> accept_side(Stream* stream, std::shared_ptr<const TlsContext> tls, Waiter* waiter, Status* result) {
  auto accepting = stream->accept_tls(std::move(tls), waiter, Deadline::in(5s));
  *result = co_await std::move(accepting);
}

// Both ends in one loop; `there` echoes what it gets, in small pieces.
Task<> echo(Stream* stream, Waiter* waiter, std::size_t total) {
  std::size_t done = 0;
  while (done < total) {
    std::string got;
    auto reading = stream->read_some(&got, waiter, Deadline::in(5s));
    if (Status more = co_await std::move(reading); !more) co_return;
    done += got.size();
    auto writing = stream->write_all(std::move(got), waiter, Deadline::in(5s));
    (void)co_await std::move(writing);
  }
}

// The peer's whole story: under TLS 1.3 its handshake ends after ours.
Task<> accept_and_echo(Stream* stream, std::shared_ptr<const TlsContext> tls, Waiter* waiter,
                       std::size_t total) {
  if (tls != nullptr) {
    auto accepting = stream->accept_tls(std::move(tls), waiter, Deadline::in(5s));
    if (Status done = co_await std::move(accepting); !done) co_return;
  }
  auto echoing = echo(stream, waiter, total);
  co_await std::move(echoing);
}

// A megabyte there and back through sockets that take far less at once.
Task<> round_trip(Loop* loop, bool tls, std::string cert, std::string key, std::string* back, Status* status) {
  Pair pair;
  Stream here(std::move(pair.here)), there(std::move(pair.there));
  Waiter here_waiter(*loop), there_waiter(*loop);
  here.attach(*loop, &here_waiter);
  there.attach(*loop, &there_waiter);
  Gate gate;
  Status wrote;
  std::string sent;
  for (int i = 0; i < 1 << 20; ++i) sent += static_cast<char>('a' + i % 23);
  if (!tls) gate.spawn(accept_and_echo(&there, nullptr, &there_waiter, sent.size()));
  if (tls) {
    auto server = TlsContext::server(cert, key);
    auto client = TlsContext::client({.verify_chain = true, .root_cert_file = cert});
    EXPECT_TRUE(server && client);
    gate.spawn(accept_and_echo(&there, *server, &there_waiter, sent.size()));
    auto connecting = here.connect_tls(*client, "localhost", true, &here_waiter, Deadline::in(5s));
    *status = co_await std::move(connecting);
    if (!*status) co_return;
    EXPECT_TRUE(here.encrypted());
    EXPECT_FALSE(here.peer_certificate_der().empty());
  }
  // One coroutine a direction cannot share a waiter, so the first half is written and read in turn.
  for (std::size_t at = 0; at < sent.size(); at += 4096) {
    auto writing = here.write_all(sent.substr(at, 4096), &here_waiter, Deadline::in(5s));
    wrote = co_await std::move(writing);
    const std::size_t wanted = std::min(at + 4096, sent.size());
    while (back->size() < wanted) {
      auto reading = here.read_some(back, &here_waiter, Deadline::in(5s));
      *status = co_await std::move(reading);
      if (!*status) co_return;
    }
  }
  EXPECT_EQ(*back, sent);
  auto closing = gate.close(loop);
  co_await std::move(closing);
}

TEST_P(StreamTest, CarriesBytesBothWays) {
  Scene scene;
  std::string back;
  Status status;
  scene.run(round_trip(&scene.loop, GetParam(), cert(), key(), &back, &status));
  EXPECT_TRUE(status) << status.error().to_string();
  EXPECT_EQ(back.size(), 1U << 20);
}

// The other end reads late: write_all waits, and comes to its end, and a peer that never reads meets the
// deadline.
TEST_F(StreamTest, PartialWritesAndTheirDeadline) {
  struct Story {
    static Task<> tell(Loop* loop, Status* slow, Status* never) {
      Pair pair;
      Stream here(std::move(pair.here));
      Waiter waiter(*loop);
      here.attach(*loop, &waiter);
      std::thread reader([fd = pair.there.get()] {
        std::this_thread::sleep_for(50ms);
        std::size_t got = 0;
        char buffer[65536];
        while (got < (8U << 20)) {
          const ssize_t n = ::read(fd, buffer, sizeof buffer);
          if (n > 0) got += static_cast<std::size_t>(n);
        }
      });
      auto writing = here.write_all(std::string(8U << 20, 'w'), &waiter, Deadline::in(10s));
      *slow = co_await std::move(writing);
      reader.join();
      auto stuck = here.write_all(std::string(8U << 20, 'w'), &waiter, Deadline::in(50ms));
      *never = co_await std::move(stuck);
    }
  };
  Scene scene;
  Status slow, never;
  scene.run(Story::tell(&scene.loop, &slow, &never));
  EXPECT_TRUE(slow);
  EXPECT_FALSE(never);
}

TEST_P(StreamTest, ThePeersEndIsTheEnd) {
  struct Story {
    static Task<> tell(Loop* loop, Status* status) {
      Pair pair;
      Stream here(std::move(pair.here));
      Waiter waiter(*loop);
      here.attach(*loop, &waiter);
      EXPECT_FALSE(here.has_unread_or_closed());
      pair.there.reset();
      EXPECT_TRUE(here.has_unread_or_closed());
      std::string got;
      auto reading = here.read_some(&got, &waiter, Deadline::in(5s));
      *status = co_await std::move(reading);
      EXPECT_EQ(here.write("x").kind, IoResult::kError);
    }
  };
  Scene scene;
  Status status;
  scene.run(Story::tell(&scene.loop, &status));
  EXPECT_FALSE(status);
}

// A stream whose reader is busy with something else, while data waits: the loop must not spin.
TEST_F(StreamTest, DataThatNobodyReadsYetDoesNotKeepTheLoopAwake) {
  struct Story {
    static Task<> tell(Loop* loop, int* wakes) {
      Pair pair;
      Stream here(std::move(pair.here));
      Waiter waiter(*loop);
      here.attach(*loop, &waiter);
      here.want(true, false);
      EXPECT_EQ(::write(pair.there.get(), "x", 1), 1);
      const Deadline end = Deadline::in(200ms);
      // As in a wait for a connection to a shard: woken by the client's stream, it looks and goes on waiting.
      while (!end.passed()) {
        (void)co_await waiter.wait(end);
        ++*wakes;
      }
      // Wanted again, it is told again.
      here.want(true, false);
      EXPECT_TRUE(co_await waiter.wait(Deadline::in(1s)));
      char byte = 0;
      EXPECT_EQ(here.read(&byte, 1).kind, IoResult::kOk);
    }
  };
  Scene scene;
  int wakes = 0;
  const std::clock_t before = std::clock();
  scene.run(Story::tell(&scene.loop, &wakes));
  EXPECT_LT(wakes, 10) << "the loop was spinning";
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
}

// The end stands behind the last bytes and has no event of its own.
TEST_F(StreamTest, TheEndBehindTheLastBytesIsFound) {
  struct Story {
    static Task<> tell(Loop* loop) {
      Pair pair;
      Stream here(std::move(pair.here));
      Waiter waiter(*loop);
      here.attach(*loop, &waiter);
      here.want(true, false);
      EXPECT_EQ(::write(pair.there.get(), "last", 4), 4);
      pair.there.reset();
      EXPECT_TRUE(co_await waiter.wait(Deadline::in(5s)));
      char bytes[16];
      const IoResult last = here.read(bytes, sizeof bytes);
      EXPECT_EQ(last.kind, IoResult::kOk);
      EXPECT_EQ(last.bytes, 4U);
      EXPECT_TRUE(here.readable()) << "whoever waited for an event now would wait for ever";
      EXPECT_EQ(here.read(bytes, sizeof bytes).kind, IoResult::kClosed);
    }
  };
  Scene scene;
  scene.run(Story::tell(&scene.loop));
}

// What came while the stream belonged to nobody in particular is told to the one who wants it next.
TEST_F(StreamTest, WhatCameUnwantedIsToldToTheNextTarget) {
  struct Story {
    static Task<> tell(Loop* loop) {
      Pair pair;
      Stream here(std::move(pair.here));
      Waiter waiter(*loop), next(*loop);
      here.attach(*loop, nullptr);
      EXPECT_EQ(::write(pair.there.get(), "x", 1), 1);
      Deadline moment = Deadline::in(20ms);
      EXPECT_FALSE(co_await waiter.wait(moment));
      EXPECT_TRUE(here.readable()) << "the loop has said it once";
      here.set_target(&next);
      here.want(true, false);
      EXPECT_TRUE(co_await next.wait(Deadline::in(5s)));
    }
  };
  Scene scene;
  scene.run(Story::tell(&scene.loop));
}

// ---- TLS ----

Task<> handshake(Loop* loop, std::string cert, std::string key, TlsContext::ClientOptions options,
                 std::string host, bool verify_host, Status* status) {
  Pair pair;
  Stream here(std::move(pair.here)), there(std::move(pair.there));
  Waiter here_waiter(*loop), there_waiter(*loop);
  here.attach(*loop, &here_waiter);
  there.attach(*loop, &there_waiter);
  auto server = TlsContext::server(cert, key);
  auto client = TlsContext::client(options);
  EXPECT_TRUE(server && client);
  Gate gate;
  Status accepted;
  gate.spawn(accept_side(&there, *server, &there_waiter, &accepted));
  auto connecting = here.connect_tls(*client, host, verify_host, &here_waiter, Deadline::in(3s));
  *status = co_await std::move(connecting);
  here.close();
  auto closing = gate.close(loop);
  co_await std::move(closing);
}

TEST_F(StreamTest, VerifiesTheChainAndTheName) {
  const std::string other = directory_ + "/other.pem";
  ASSERT_EQ(
      std::system(("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout /dev/null -out " +
                   other + " 2>/dev/null")
                      .c_str()),
      0);
  struct Case {
    TlsContext::ClientOptions options;
    std::string host;
    bool verify_host, good;
  };
  const std::vector<Case> cases = {
      {{}, "whatever", false, true},
      {{.verify_chain = true, .root_cert_file = cert()}, "whatever", false, true},
      {{.verify_chain = true, .root_cert_file = cert()}, "localhost", true, true},
      {{.verify_chain = true, .root_cert_file = cert()}, "127.0.0.1", true, true},
      {{.verify_chain = true, .root_cert_file = cert()}, "whatever", true, false},
      {{.verify_chain = true, .root_cert_file = cert()}, "127.0.0.2", true, false},
      {{.verify_chain = true, .root_cert_file = other}, "localhost", true, false},
      {{.verify_chain = true, .root_cert_file = other}, "localhost", false, false},
      {{.verify_chain = true}, "localhost", true, false},
  };
  for (const Case& c : cases) {
    Scene scene;
    Status status;
    scene.run(handshake(&scene.loop, cert(), key(), c.options, c.host, c.verify_host, &status));
    EXPECT_EQ(status.has_value(), c.good)
        << c.host << " " << c.options.root_cert_file << (status ? "" : status.error().message);
  }
}

TEST_F(StreamTest, APeerThatSpeaksNoTlsAndOneThatIsSilent) {
  struct Story {
    static Task<> tell(Loop* loop, std::string words, Status* status) {
      Pair pair;
      Stream here(std::move(pair.here));
      Waiter waiter(*loop);
      here.attach(*loop, &waiter);
      EXPECT_EQ(::write(pair.there.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
      auto client = TlsContext::client({});
      auto connecting = here.connect_tls(*client, "localhost", false, &waiter, Deadline::in(100ms));
      *status = co_await std::move(connecting);
    }
  };
  for (const std::string words : {"E no TLS here, no TLS here", ""}) {
    Scene scene;
    Status status;
    scene.run(Story::tell(&scene.loop, words, &status));
    EXPECT_FALSE(status);
  }
}

TEST_F(StreamTest, CertificatesThatCannotBeUsedAreNamed) {
  auto missing = TlsContext::server(directory_ + "/none.pem", key());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("none.pem"), std::string::npos);
  EXPECT_FALSE(TlsContext::server(cert(), cert()));
  EXPECT_FALSE(TlsContext::client({.verify_chain = true, .root_cert_file = directory_ + "/none.pem"}));
}

INSTANTIATE_TEST_SUITE_P(PlainAndTls, StreamTest, ::testing::Bool());

// ---- connect ----

Task<> connect_to(Loop* loop, HostPort to, std::chrono::milliseconds patience, Status* status) {
  Stream stream;
  Waiter waiter(*loop);
  auto connecting = connect(&stream, std::move(to), &waiter, Deadline::in(patience));
  *status = co_await std::move(connecting);
}

Status try_connect(HostPort to, std::chrono::milliseconds patience = 3000ms) {
  Scene scene;
  Status status;
  scene.run(connect_to(&scene.loop, std::move(to), patience, &status));
  return status;
}

TEST(ConnectTo, ToANumberANameAndASocketDirectory) {
  auto listener = listen_tcp({"127.0.0.1", 0}, Listening::kFirst);
  ASSERT_TRUE(listener);
  const int port = local_port(listener->get());
  EXPECT_TRUE(try_connect({"127.0.0.1", port}));
  EXPECT_TRUE(try_connect({"localhost", port}));
  std::string directory = (std::filesystem::temp_directory_path() / "kg-un-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const std::string path = directory + "/.s.PGSQL.5432";
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(listen(fd, 5), 0);
  EXPECT_TRUE(try_connect({directory, 5432}));
  EXPECT_FALSE(try_connect({directory, 5433}));
  close(fd);
  EXPECT_FALSE(try_connect({directory, 5432}));
  std::filesystem::remove_all(directory);
}

TEST(ConnectTo, RefusedUnknownAndTooSlow) {
  auto listener = listen_tcp({"127.0.0.1", 0}, Listening::kFirst);
  const int port = local_port(listener->get());
  listener->reset();
  const Status refused = try_connect({"127.0.0.1", port});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("refused"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(try_connect({"no-such-host.invalid", port}, 5000ms));
  EXPECT_FALSE(try_connect({std::string(200, 'x') + "/", 1}, 2000ms));
  EXPECT_FALSE(try_connect({"/" + std::string(300, 'x'), 1}));
  // A listener whose queue is full answers no more.
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_storage at{};
  auto address = numeric_address({"127.0.0.1", 0});
  ASSERT_TRUE(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(address->bytes), address->size), 0);
  ASSERT_EQ(listen(fd, 0), 0);
  const int full = local_port(fd);
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 4; ++i)
    waiting.push_back(std::move(*start_connect(*numeric_address({"127.0.0.1", full}))));
  const auto began = Deadline::Clock::now();
  EXPECT_FALSE(try_connect({"127.0.0.1", full}, 200ms));
  EXPECT_LT(Deadline::Clock::now() - began, 2s);
  (void)at;
  close(fd);
}

// The resolver's thread may come back when nobody is there any more, not even the loop.
TEST(ConnectTo, TheResolverMayOutliveTheLoop) {
  for (int i = 0; i < 20; ++i) {
    auto scene = std::make_unique<Scene>();
    Status status;
    scene->run(connect_to(&scene->loop, {"localhost", 1}, 0ms, &status));
    scene.reset();
  }
  std::this_thread::sleep_for(200ms);
}

TEST(HostPort, IsReadAndWritten) {
  EXPECT_EQ(*parse_host_port("127.0.0.1:6432"), (HostPort{"127.0.0.1", 6432}));
  EXPECT_EQ(*parse_host_port("[::1]:0"), (HostPort{"::1", 0}));
  EXPECT_EQ(parse_host_port("[::1]:5")->to_string(), "[::1]:5");
  for (const char* wrong : {"", ":", "x", ":5", "x:", "x:65536", "x:-1", "x:5x", "::1:5", "[]:5"}) {
    EXPECT_FALSE(parse_host_port(wrong)) << wrong;
  }
}

}  // namespace
TEST(Listen, ThreadsShareAnAddressAndTwoRoutersDoNot) {
  const auto first = listen_tcp({"127.0.0.1", 0}, Listening::kFirst);
  ASSERT_TRUE(first) << first.error().message;
  const HostPort at{"127.0.0.1", local_port(first->get())};
  const auto second = listen_tcp(at, Listening::kJoining);
  EXPECT_TRUE(second) << second.error().message;
  const auto other = listen_tcp(at, Listening::kFirst);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("Address already in use"), std::string::npos) << other.error().message;
}

}  // namespace kintsugi::io
