// Whatever the socket takes at a time, what comes out is what went in, and nothing of the caller's buffers is
// looked at after a flush.
#include "executor/outbox.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/base/io/scene.h"

namespace kintsugi::executor {
namespace {

// A stream whose other end is read by the test, with as little room between as the kernel gives.
struct Narrow {
  io::Pair pair;
  io::Stream stream;
  std::string arrived;

  explicit Narrow(int room = 0) {
    if (room == 0) {
      const int least = 1;
      setsockopt(pair.here.get(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    }
    stream.adopt(std::move(pair.here));
  }
  std::size_t take(std::size_t most) {
    std::string chunk(most, '\0');
    const ssize_t got = recv(pair.there.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got <= 0) return 0;
    arrived.append(chunk, 0, static_cast<std::size_t>(got));
    return static_cast<std::size_t>(got);
  }
};

std::string numbered(std::size_t size, char seed) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(seed + static_cast<char>(i % 23));
  return bytes;
}

}  // namespace

TEST(Outbox, IsEmptyAtFirstAndAfterAFlush) {
  Narrow to;
  Outbox out;
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(out.flush(to.stream).kind, io::IoResult::kOk);
  out.pass("");
  EXPECT_TRUE(out.empty());
  out.pass("one");
  EXPECT_FALSE(out.empty());
  EXPECT_EQ(out.kept_bytes(), 0U) << "nothing is copied before it has to be";
  EXPECT_EQ(out.flush(to.stream).kind, io::IoResult::kOk);
  EXPECT_TRUE(out.empty());
  to.take(100);
  EXPECT_EQ(to.arrived, "one");
}

TEST(Outbox, KeepsTheOrderOfPassedAndComposed) {
  Narrow to;
  Outbox out;
  const std::string buffer = "abcdef";
  const std::string_view piece = buffer;
  out.pass(piece.substr(0, 2));
  out.pass(piece.substr(2, 2));  // a neighbour: still nothing copied
  EXPECT_EQ(out.kept_bytes(), 0U);
  out.compose() += "-";
  out.pass(piece.substr(4));
  out.compose() += "+";
  out.pass(piece.substr(0, 1));
  EXPECT_EQ(out.flush(to.stream).kind, io::IoResult::kOk);
  to.take(100);
  EXPECT_EQ(to.arrived, "abcd-ef+a");
}

TEST(Outbox, KeepsACopyOfWhatTheSocketDoesNotTake) {
  Narrow to;
  Outbox out;
  const std::string whole = numbered(1 << 20, 'a');
  std::string buffer = whole;
  out.pass(buffer);
  EXPECT_EQ(out.flush(to.stream).kind, io::IoResult::kWouldBlock);
  EXPECT_GT(out.kept_bytes(), 0U);
  EXPECT_LT(out.kept_bytes(), whole.size());
  std::fill(buffer.begin(), buffer.end(), '!');  // the caller reads the next chunk into it
  while (!out.empty()) {
    to.take(1 << 16);
    (void)out.flush(to.stream);
  }
  while (to.take(1 << 16) > 0) {
  }
  EXPECT_EQ(to.arrived, whole);
  EXPECT_LE(out.compose().capacity(), 4096U) << "an idle connection keeps no large buffer";
}

TEST(Outbox, RandomPiecesArriveWholeAndInOrder) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    Narrow to;
    Outbox out;
    std::string expected;
    for (int round = 0; round < 200; ++round) {
      std::string buffer = numbered(random() % 3000, static_cast<char>('A' + round % 26));
      std::string_view rest = buffer;
      while (!rest.empty()) {
        const std::size_t size = std::min<std::size_t>(rest.size(), 1 + random() % 700);
        if (random() % 4 == 0) {
          out.compose().append(rest.substr(0, size));
          expected.append(rest.substr(0, size));
        } else if (random() % 8 != 0) {
          out.pass(rest.substr(0, size));
          expected.append(rest.substr(0, size));
        }  // else a piece that is left out, so that neighbours are none
        rest.remove_prefix(size);
      }
      const io::IoResult result = out.flush(to.stream);
      EXPECT_EQ(result.kind == io::IoResult::kOk, out.empty());
      std::fill(buffer.begin(), buffer.end(), '!');
      if (random() % 3 == 0) to.take(random() % 20000);
    }
    while (!out.empty()) {
      to.take(1 << 16);
      (void)out.flush(to.stream);
    }
    while (to.take(1 << 16) > 0) {
    }
    ASSERT_EQ(to.arrived, expected) << "seed " << seed;
  }
}

TEST(Outbox, ABrokenConnectionIsTold) {
  Narrow to;
  Outbox out;
  to.pair.there.reset();
  out.pass("lost");
  EXPECT_EQ(out.flush(to.stream).kind, io::IoResult::kError);
  out.compose() += "lost as well";
  EXPECT_EQ(out.flush(to.stream).kind, io::IoResult::kError);
  out.clear();
  EXPECT_TRUE(out.empty());
}

}  // namespace kintsugi::executor
