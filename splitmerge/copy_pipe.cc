#include "splitmerge/copy_pipe.h"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/sql_quote.h"
#include "splitmerge/disk_space.h"

namespace kintsugi::splitmerge {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint64_t kLookEveryBytes = 1UL << 18;  // or as often as makes a slow copy an even one
constexpr std::uint64_t kLooksASecond = 20;
constexpr std::uint64_t kSendEveryBytes = 1UL << 16;
constexpr milliseconds kConnectDeadline{15000};
constexpr milliseconds kSleepMax{50};
constexpr milliseconds kAskEvery{20};
constexpr std::string_view kDiskFull = "53100";

// How far the copying may be; sleeps while it is ahead of its rate.
class Throttle {
 public:
  explicit Throttle(std::uint64_t rate) : rate_(rate), began_(Clock::now()) {}
  void account(std::uint64_t bytes, const RawLink::GoOn& go_on) {
    if (rate_ == 0) return;
    const std::uint64_t all = sent_ += bytes;
    const auto due = began_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                  static_cast<double>(all) / static_cast<double>(rate_)));
    while (Clock::now() < due && go_on()) {
      std::this_thread::sleep_for(std::min<Clock::duration>(due - Clock::now(), kSleepMax));
    }
  }

 private:
  const std::uint64_t rate_;
  const Clock::time_point began_;
  std::atomic<std::uint64_t> sent_{0};
};

struct FreeMemory {
  void operator()(char* buffer) const { PQfreemem(buffer); }
};

// Which of the two servers says it.
Error said_by(const std::string& shard, Error error) {
  error.message = "shard \"" + shard + "\": " + error.message;
  if (error.sqlstate == kDiskFull) error.hint = kMakeRoom;
  return error;
}

// Until the connection can be read from, or (`and_write`) written to; a while at most.
void wait_for(RawLink& link, bool and_write) {
  pollfd fd{PQsocket(link.pg()), static_cast<short>(and_write ? POLLIN | POLLOUT : POLLIN), 0};
  (void)poll(&fd, 1, static_cast<int>(kAskEvery.count()));
}

// The server has given up a COPY that it is being sent. libpq would look at that only behind the last row.
bool has_failed(RawLink& link) {
  char kind = 0;
  return PQsslInUse(link.pg()) == 0 && recv(PQsocket(link.pg()), &kind, 1, MSG_PEEK | MSG_DONTWAIT) == 1 &&
         kind == 'E';
}

// After the last row: the server's word on the whole.
Status finish(RawLink& link, const RawLink::GoOn& go_on) {
  std::optional<Error> problem;
  for (;;) {
    while (PQisBusy(link.pg()) != 0) {
      wait_for(link, false);
      if (PQconsumeInput(link.pg()) == 0) return fail(link.error(nullptr));
      KG_CHECK(go_on());
    }
    PGresult* result = PQgetResult(link.pg());
    if (result == nullptr) break;
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COPY_IN) {
      (void)PQputCopyEnd(link.pg(), "given up");
    } else if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && !problem) {
      problem = link.error(result);
    }
    PQclear(result);
  }
  if (problem) return fail(*problem);
  return {};
}

class Pipe {
 public:
  Pipe(const CopyJob& job, JobLease& lease, const RawLink::GoOn& go_on, Throttle& throttle, RawLink from,
       RawLink to)
      : job_(job),
        lease_(lease),
        go_on_(go_on),
        throttle_(throttle),
        from_(std::move(from)),
        to_(std::move(to)) {}

  Status copy(const MovedTable& table) {
    const std::string columns = list_of(table.columns);
    const std::string format = table.as_text ? " (FORMAT text)" : " (FORMAT binary)";
    KG_CHECK(at_source("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT " +
                       quote_literal(job_.snapshot)));
    KG_CHECK(at_target("BEGIN"));
    KG_CHECK(at_source("COPY (SELECT " + columns + " FROM " + table.name + " WHERE " + table.inside +
                       ") TO STDOUT" + format));
    KG_CHECK(at_target("COPY " + table.name + " (" + columns + ") FROM STDIN" + format));
    KG_CHECK(pump(table.as_text));
    KG_CHECK(at_source("COMMIT"));
    return at_target("COMMIT");
  }

 private:
  Status at_source(const std::string& sql) { return of_source(run(from_, sql)); }
  Status at_target(const std::string& sql) { return of_target(run(to_, sql)); }
  Status run(RawLink& link, const std::string& sql) {
    KG_CHECK(link.run(sql, Deadline::never(), go_on_));
    return {};
  }
  Status of_source(const Status& done) { return done ? done : told(job_.source.name, done.error()); }
  Status of_target(const Status& done) { return done ? done : told(job_.target.name, done.error()); }
  // What ends the copy from our side is none of a server's errors.
  Status told(const std::string& shard, const Error& error) {
    const Status may = go_on_();
    return may ? fail(said_by(shard, error)) : fail(may.error());
  }

  // One message of the source's, without waiting for it longer than we may be asked to stop. None: the last was
  // read.
  Result<std::string_view> next_row(std::unique_ptr<char, FreeMemory>& owned) {
    for (;;) {
      char* buffer = nullptr;
      const int size = PQgetCopyData(from_.pg(), &buffer, 1);
      owned.reset(buffer);
      if (size > 0) return std::string_view(buffer, static_cast<std::size_t>(size));
      if (size == -1) return std::string_view();
      if (size == -2) return fail(from_.error(nullptr));
      wait_for(from_, false);
      if (PQconsumeInput(from_.pg()) == 0) return fail(from_.error(nullptr));
      KG_CHECK(go_on_());
    }
  }

  // What was given to the connection is on its way.
  Status flush() {
    for (;;) {
      const int left = PQflush(to_.pg());
      if (left == 0) return {};
      if (left < 0) return fail(end_of_target());
      wait_for(to_, true);
      if (PQconsumeInput(to_.pg()) == 0) return fail(end_of_target());
      KG_CHECK(go_on_());
    }
  }

  // Binary: the end, two bytes, comes as a message of its own; where there are no rows with the beginning,
  // which comes with the first row else.
  static bool is_end(std::size_t size, bool first) {
    constexpr std::size_t kBegin = 19, kEnd = 2;
    return size == kEnd || (first && size == kBegin + kEnd);
  }

  Status pump(bool text) {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    std::uint64_t unsent = 0;
    bool first = true;
    const std::uint64_t look_every =
        job_.max_rate == 0 ? kLookEveryBytes
                           : std::clamp<std::uint64_t>(job_.max_rate / kLooksASecond, 1, kLookEveryBytes);
    const auto tell = [&] {
      lease_.progress(rows, bytes);
      throttle_.account(bytes, go_on_);
      rows = 0;
      bytes = 0;
    };
    std::unique_ptr<char, FreeMemory> owned;
    for (;;) {
      const auto row = next_row(owned);
      if (!row) return of_source(fail(row.error()));
      if (row->empty()) break;
      if (PQputCopyData(to_.pg(), row->data(), static_cast<int>(row->size())) < 0)
        return of_target(fail(end_of_target()));
      if (text || !is_end(row->size(), std::exchange(first, false))) ++rows;
      bytes += row->size();
      unsent += row->size();
      if (unsent >= kSendEveryBytes) {
        KG_CHECK(of_target(flush()));
        unsent = 0;
      }
      if (bytes >= look_every) {
        tell();
        KG_CHECK(go_on_());
        if (has_failed(to_)) return of_target(fail(end_of_target()));
      }
    }
    tell();
    KG_CHECK(of_source(finish(from_, go_on_)));
    if (PQputCopyEnd(to_.pg(), nullptr) < 0) return of_target(fail(end_of_target()));
    KG_CHECK(of_target(flush()));
    return of_target(finish(to_, go_on_));
  }

  // Why the target takes no more.
  Error end_of_target() {
    const Status why = finish(to_, go_on_);
    return why ? to_.error(nullptr) : why.error();
  }

  const CopyJob& job_;
  JobLease& lease_;
  const RawLink::GoOn& go_on_;
  Throttle& throttle_;
  RawLink from_;
  RawLink to_;
};

}  // namespace

Status copy_rows(const CopyJob& job, JobLease& lease, const RawLink::GoOn& go_on) {
  // The largest first: the last to end should be a small one.
  std::vector<const MovedTable*> order;
  for (const MovedTable& table : *job.tables) order.push_back(&table);
  std::stable_sort(order.begin(), order.end(), [](const MovedTable* a, const MovedTable* b) {
    return a->rows_estimate > b->rows_estimate;
  });
  std::mutex mutex;
  std::optional<Error> problem;
  std::size_t next = 0;
  Throttle throttle(job.max_rate);
  const RawLink::GoOn unless_failed = [&]() -> Status {
    {
      const std::lock_guard lock(mutex);
      if (problem) return fail(*problem);
    }
    return go_on();
  };
  const auto work = [&]() -> Status {
    KG_TRY(RawLink from, RawLink::open(job.source, job.name, false, lease, Deadline::in(kConnectDeadline)));
    KG_TRY(RawLink to, RawLink::open(job.target, job.name, false, lease, Deadline::in(kConnectDeadline)));
    // Nobody waits for a server that does not take or give anything longer than he is asked to stop.
    if (PQsetnonblocking(to.pg(), 1) != 0) return fail(to.error(nullptr));
    Pipe pipe(job, lease, unless_failed, throttle, std::move(from), std::move(to));
    for (;;) {
      const MovedTable* table = nullptr;
      {
        const std::lock_guard lock(mutex);
        if (problem || next == order.size()) return {};
        table = order[next++];
      }
      KG_CHECK(pipe.copy(*table));
    }
  };
  std::vector<std::thread> threads;
  const std::size_t count = std::min(order.size(), static_cast<std::size_t>(std::max(1, job.tables_at_once)));
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      if (const Status done = work(); !done) {
        const std::lock_guard lock(mutex);
        if (!problem) problem = done.error();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (problem) return fail(*problem);
  return {};
}

}  // namespace kintsugi::splitmerge
