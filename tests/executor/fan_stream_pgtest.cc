// A Fan over time: clients that are slow or leave, statements that are cancelled, shards that go, and memory
// that stays small meanwhile.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/io/gate.h"
#include "executor/fan.h"
#include "tests/executor/shards.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;
using planner::Merge;

// How much travels in the tests of memory, in MB a shard.
int megabytes() {
  const char* wanted = std::getenv("KINTSUGI_FAN_MB");
  return wanted != nullptr ? std::atoi(wanted) : 100;
}

std::size_t peak_memory_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
  }
  return 0;
}

void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

// What is at the other end of a client's connection: reads on a thread of its own and looks at the rows.
class Reader {
 public:
  // Waits `pause` after every MB; leaves after `most` bytes.
  Reader(int fd, std::chrono::milliseconds pause, std::size_t most = SIZE_MAX)
      : fd_(fd), thread_([this, pause, most] { run(pause, most); }) {}
  void join() { thread_.join(); }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] bool ordered() const { return ordered_; }

 private:
  void run(std::chrono::milliseconds pause, std::size_t most) {
    std::string kept;
    std::vector<char> buffer(1 << 16);
    std::size_t total = 0, since = 0;
    long last = -1;
    for (;;) {
      const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      kept.append(buffer.data(), static_cast<std::size_t>(got));
      total += static_cast<std::size_t>(got);
      since += static_cast<std::size_t>(got);
      std::size_t at = 0;
      for (;;) {
        const auto next = wire::peek_frame(std::string_view(kept).substr(at), UINT32_MAX);
        if (!next || !next->has_value()) break;
        if ((*next)->type == 'D') {
          ++rows_;
          const auto row = wire::read_data_row((*next)->body);
          const long id = std::stol(std::string(*row->at(0)));
          ordered_ = ordered_ && id > last;
          last = id;
        }
        at += (*next)->size();
      }
      kept.erase(0, at);
      if (total >= most) break;
      if (since >= 1 << 20) {
        since = 0;
        std::this_thread::sleep_for(pause);
      }
    }
    close(fd_);
  }
  int fd_;
  std::uint64_t rows_ = 0;
  bool ordered_ = true;
  std::thread thread_;
};

struct Run {
  std::vector<std::string> texts;
  Merge merge{};
  int client = -1;
  bool with_cancel = true;
  std::chrono::milliseconds canceled_after{0}, deadline{0}, slow_client{0};
  std::vector<std::string> before{};
};
struct Seen {
  std::string outcome, statuses, after;
  std::chrono::milliseconds took{};
};

// A cancel request as a session sends it: counted until it has arrived, then the waiter is woken.
io::Task<> deliver(int shard, io::HostPort peer, wire::BackendKey key, std::shared_ptr<Cancels> cancels,
                   io::Waiter* session) {
  io::Waiter waiter(session->loop());
  auto canceling = cancel_on_shard(login_to(shard), peer, key, &waiter, patience());
  const Status sent = co_await std::move(canceling);
  if (!sent) cancels->lost = true;
  --cancels->under_way;
  session->notify();
}

io::Task<Seen> play(io::Waiter* waiter, const Run* run) {
  auto linking = link_up(waiter);
  Links links = co_await std::move(linking);
  io::Gate gate;
  Seen seen;
  Outbox client;
  io::Stream stream;
  if (run->client >= 0) {
    stream.adopt(io::UniqueFd(run->client));
    stream.attach(waiter->loop(), waiter);
  }
  FanRequest request;
  for (int i = 0; i < kShards; ++i) {
    const std::size_t at = run->texts.size() == 1 ? 0 : static_cast<std::size_t>(i);
    request.branches.push_back({links[i], run->texts[at], run->before});
  }
  request.merge = run->merge;
  request.client = &client;
  if (run->client >= 0) request.client_stream = &stream;
  request.waiter = waiter;
  request.deadline = run->deadline.count() > 0 ? Deadline::in(run->deadline) : Deadline::never();
  request.slow_client_timeout = run->slow_client;
  const auto canceled = std::make_shared<bool>(false);
  io::Timer timer;
  if (run->canceled_after.count() > 0) {
    timer.on_fire = [canceled, waiter] {
      *canceled = true;
      waiter->notify();
    };
    timer.set(waiter->loop(), Deadline::in(run->canceled_after));
  }
  request.still_wanted = [canceled]() -> Status {
    if (*canceled) return fail(sqlstate::kQueryCanceled, "canceling statement due to user request");
    return {};
  };
  if (run->with_cancel) {
    request.cancel = [&gate, &links, waiter](Backend& backend) {
      for (int i = 0; i < kShards; ++i) {
        if (links[i] != &backend) continue;
        ++backend.cancels->under_way;
        gate.spawn(deliver(i, backend.peer, backend.key, backend.cancels, waiter));
      }
    };
  }
  const auto began = Deadline::Clock::now();
  Fan fan(std::move(request));
  auto advancing = fan.advance();
  const FanStep step = co_await std::move(advancing);
  seen.took = std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - began);
  seen.outcome = step.kind == FanStep::kFailed ? trace(step.error) : step.tag;
  while (run->client >= 0 && step.kind == FanStep::kComplete && !client.empty()) {
    const io::IoResult result = client.flush(stream);
    if (result.kind != io::IoResult::kWouldBlock) break;
    stream.want(false, true);
    (void)co_await waiter->wait(patience());
  }
  client.clear();
  stream.close();
  for (auto& backend : links.backends) {
    seen.statuses += backend->broken ? 'X' : static_cast<char>(backend->status);
    if (backend->broken) continue;
    auto asking = run_control_query(backend.get(), "ROLLBACK; SELECT 1", waiter, patience());
    const auto rows = co_await std::move(asking);
    seen.after += rows ? *rows->at(0).at(0) : "!";
  }
  auto closing = gate.close(&waiter->loop());
  co_await std::move(closing);
  co_return seen;
}

Seen run_it(const Run& run) {
  return act(play, &run);
}

// Gives up its first descriptor to the router, the other end is the client's.
struct Line {
  int router = -1, client = -1;
  Line() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) throw std::runtime_error("socketpair");
    router = fds[0];
    client = fds[1];
    fcntl(router, F_SETFL, O_NONBLOCK);
  }
};

// One KB a row, of which only the number is sorted.
std::string kilobytes_of_rows(int shard, bool ordered) {
  return "SELECT g, repeat('x', 990) FROM (SELECT g FROM generate_series(" + std::to_string(shard) + ", " +
         std::to_string(3 * 1000 * megabytes()) + ", 3) AS g" + (ordered ? " ORDER BY g OFFSET 0" : "") + ") s";
}

void expect_little_memory(const Merge& merge) {
  (void)Shards::get();
  const Line line;
  forget_peak();
  const std::size_t before = peak_memory_kb();
  Reader reader(line.client, 5ms);
  const Seen seen =
      run_it({.texts = {kilobytes_of_rows(1, true), kilobytes_of_rows(2, true), kilobytes_of_rows(3, true)},
              .merge = merge,
              .client = line.router});
  reader.join();
  const auto rows = static_cast<std::uint64_t>(3000 * megabytes());
  EXPECT_EQ(seen.outcome, "SELECT " + std::to_string(rows));
  EXPECT_EQ(reader.rows(), rows);
  EXPECT_TRUE(merge.kind != Merge::Kind::kOrdered || reader.ordered());
  EXPECT_EQ(seen.statuses, "III");
  const std::size_t grown = peak_memory_kb() - before;
  ::testing::Test::RecordProperty("peak_kb", static_cast<int>(grown));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(grown, 16u * 1024) << "kB of memory for " << rows << " kB of rows";
#endif
}

TEST(FanStream, ASlowClientCostsNoMemory) {
  expect_little_memory({});
}

TEST(FanStream, AnOrderedMergeCostsNoMemory) {
  expect_little_memory({.kind = Merge::Kind::kOrdered, .keys = {{.column = 0, .type = 23}}});
}

TEST(FanStream, AClientThatLeavesStopsTheShards) {
  (void)Shards::get();
  const Line line;
  Reader reader(line.client, 0ms, 1 << 20);
  const Seen seen = run_it({.texts = {kilobytes_of_rows(1, false)}, .client = line.router});
  reader.join();
  EXPECT_EQ(seen.outcome, "E(08006 the client has gone)");
  EXPECT_EQ(seen.after, "111");
}

TEST(FanStream, AClientThatReadsNothingIsGivenUp) {
  (void)Shards::get();
  const Line line;
  const Seen seen =
      run_it({.texts = {kilobytes_of_rows(1, false)}, .client = line.router, .slow_client = 300ms});
  EXPECT_EQ(seen.outcome, "E(08006 the client takes no data)");
  EXPECT_LT(seen.took, 5s * kPatience);
  EXPECT_EQ(seen.after, "111");
  close(line.client);
}

TEST(FanStream, ACanceledStatementEndsOnAllShards) {
  const Seen seen = run_it({.texts = {"SELECT pg_sleep(30)"}, .canceled_after = 200ms});
  EXPECT_EQ(seen.outcome, "E(57014 canceling statement due to user request)");
  EXPECT_LT(seen.took, 5s * kPatience);
  EXPECT_EQ(seen.statuses, "III");
  EXPECT_EQ(seen.after, "111");
  const Seen within = run_it({.texts = {"SELECT pg_sleep(30)"}, .canceled_after = 200ms, .before = {"BEGIN"}});
  EXPECT_EQ(within.statuses, "EEE");
}

TEST(FanStream, ADeadlineThatPassesCancels) {
  const Seen seen =
      run_it({.texts = {"SELECT pg_sleep(30)", "SELECT 1", "SELECT pg_sleep(30)"}, .deadline = 200ms});
  // The columns differ, but nobody has come to see that.
  EXPECT_EQ(seen.outcome, "E(57014 canceling statement due to statement timeout)");
  EXPECT_LT(seen.took, 5s * kPatience);
  EXPECT_EQ(seen.after, "111");
}

TEST(FanStream, OneShardsErrorCancelsTheOthers) {
  const Seen seen = run_it({.texts = {"SELECT pg_sleep(30)", "SELECT 1/0", "SELECT pg_sleep(30)"}});
  EXPECT_EQ(seen.outcome, "E(22012 division by zero @ shard s2)");
  EXPECT_LT(seen.took, 5s * kPatience);
  EXPECT_EQ(seen.after, "111");
}

TEST(FanStream, AShardThatGoesIsNamed) {
  const Seen seen =
      run_it({.texts = {"SELECT pg_sleep(30)", "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(1)",
                        "SELECT pg_sleep(30)"}});
  EXPECT_NE(seen.outcome.find("E(KG005 lost the connection to shard s2: terminating connection"),
            std::string::npos)
      << seen.outcome;
  EXPECT_LT(seen.took, 5s * kPatience);
  EXPECT_EQ(seen.statuses, "IXI");
  EXPECT_EQ(seen.after, "11");
}

// Nobody can cancel: what is left over of a LIMIT is read to its end.
TEST(FanStream, ARestBehindTheLimitIsReadWhenNobodyCancels) {
  const Seen seen = run_it({.texts = {"SELECT g, repeat('x', 1000) FROM generate_series(1, 9000) g"},
                            .merge = {.limit = 5},
                            .with_cancel = false});
  EXPECT_EQ(seen.outcome, "SELECT 5");
  EXPECT_EQ(seen.statuses, "III");
  EXPECT_EQ(seen.after, "111");
}

}  // namespace
}  // namespace kintsugi::executor
