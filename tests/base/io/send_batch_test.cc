#include "base/io/send_batch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/io/stream.h"
#include "tests/base/io/scene.h"

namespace kintsugi::io {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPeers = 6;  // several events in one round, or nothing is put together

// Streams that all have an event in the first round; each then does what the test says, within that round.
class SendBatchTest : public ::testing::Test {
 protected:
  struct Peer final : EventTarget {
    Pair pair;
    Stream stream;
    std::function<void(Peer&)> act;
    int events = 0;
    void on_event(Watch&, std::uint32_t) override {
      ++events;
      if (act) act(*this);
    }
  };

  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    if (SendBatch::make() == nullptr)
      GTEST_SKIP() << "this system has no io_uring: nothing is put together here";
    for (std::size_t i = 0; i < kPeers; ++i) {
      auto peer = std::make_unique<Peer>();
      peer->stream.adopt(std::move(peer->pair.here));
      peer->stream.attach(loop_, peer.get());
      peer->stream.want(true, false);
      peers_.push_back(std::move(peer));
    }
  }

  void run(std::function<void(Peer&)> act, std::function<bool()> done) {
    for (auto& peer : peers_) {
      peer->act = act;
      ASSERT_EQ(write(peer->pair.there.get(), "!", 1), 1);
    }
    Timer end;
    bool late = false;
    std::function<void()> look = [&] {
      if (done()) {
        loop_.stop();
      } else {
        loop_.post(look);
      }
    };
    end.on_fire = [&] {
      late = true;
      loop_.stop();
    };
    end.set(loop_, Deadline::in(10s));
    loop_.post(look);
    loop_.run();
    EXPECT_FALSE(late);
  }

  static std::string arrived(Peer& peer) {
    std::string all;
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::recv(peer.pair.there.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got <= 0) return all;
      all.append(buffer, static_cast<std::size_t>(got));
    }
  }

  Loop loop_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

TEST_F(SendBatchTest, EveryStreamKeepsItsOrder) {
  const std::string large(3 * SendBatch::kSlotBytes, 'L');
  bool together = false;
  run(
      [&](Peer& peer) {
        char byte = 0;
        ASSERT_EQ(peer.stream.read(&byte, 1).kind, IoResult::kOk);
        for (const std::string& piece :
             {std::string("one "), std::string("two "), large, std::string(" three")}) {
          ASSERT_EQ(peer.stream.write(piece).bytes, piece.size());
          if (piece == "two ") together |= arrived(peer).empty();  // nothing has gone yet
        }
      },
      [&] { return peers_.back()->events > 0; });
  EXPECT_TRUE(together);
  for (auto& peer : peers_) EXPECT_EQ(arrived(*peer), "one two " + large + " three");
}

TEST_F(SendBatchTest, AFullSocketKeepsTheRestAndItsOrder) {
  std::vector<std::string> sent(kPeers), got(kPeers);
  std::size_t full = 0;
  run(
      [&](Peer& peer) {
        std::size_t index = 0;
        while (peers_[index].get() != &peer) ++index;
        if (peer.events > 1) return;
        char byte = 0;
        ASSERT_EQ(peer.stream.read(&byte, 1).kind, IoResult::kOk);
        // Pieces of a size that does not divide the socket's buffer, until it takes no more.
        for (int i = 0;; ++i) {
          const std::string piece(1000 + i % 7, static_cast<char>('a' + i % 26));
          const IoResult result = peer.stream.write(piece);
          if (result.kind == IoResult::kWouldBlock) break;
          ASSERT_EQ(result.kind, IoResult::kOk);
          sent[index].append(piece, 0, result.bytes);
          if (result.bytes < piece.size()) break;
        }
        ++full;
      },
      [&] {
        bool all = full == kPeers;
        for (std::size_t i = 0; i < kPeers; ++i) {
          got[i] += arrived(*peers_[i]);
          all &= got[i].size() == sent[i].size();
        }
        return all;
      });
  for (std::size_t i = 0; i < kPeers; ++i) EXPECT_EQ(got[i], sent[i]) << i;
}

TEST_F(SendBatchTest, ClosingSendsFirst) {
  run(
      [&](Peer& peer) {
        ASSERT_EQ(peer.stream.write("last words").kind, IoResult::kOk);
        peer.stream.close();
      },
      [&] { return !peers_.back()->stream.open(); });
  for (auto& peer : peers_) EXPECT_EQ(arrived(*peer), "last words");
}

TEST_F(SendBatchTest, DetachingSendsFirst) {
  run(
      [&](Peer& peer) {
        if (peer.events > 1) return;
        ASSERT_EQ(peer.stream.write("mine").kind, IoResult::kOk);
        peer.stream.detach();
      },
      [&] { return peers_.back()->events > 0; });
  for (auto& peer : peers_) EXPECT_EQ(arrived(*peer), "mine");
}

TEST_F(SendBatchTest, ThePeersEndIsSaidByTheNextWrite) {
  std::size_t told = 0;
  run(
      [&](Peer& peer) {
        char buffer[16];
        if (peer.events == 1) {
          peer.pair.there.reset();
          ASSERT_EQ(peer.stream.write("to nobody").kind, IoResult::kOk);
          return;
        }
        if (peer.events > 2) return;
        (void)peer.stream.read(buffer, sizeof buffer);
        const IoResult next = peer.stream.write("more");
        EXPECT_EQ(next.kind, IoResult::kError);
        EXPECT_EQ(next.error, EPIPE);
        peer.stream.close();
        ++told;
      },
      [&] { return told == kPeers; });
}

}  // namespace
}  // namespace kintsugi::io
