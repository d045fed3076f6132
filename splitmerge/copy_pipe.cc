#include "splitmerge/copy_pipe.h"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "base/sql_quote.h"

namespace kintsugi::splitmerge {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint64_t kLookEveryBytes = 1UL << 18;  // or as often as makes a slow copy an even one
constexpr std::uint64_t kLooksASecond = 20;
constexpr milliseconds kConnectDeadline{15000};
constexpr milliseconds kSleepMax{50};

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

// After the last row: the server's word on the whole.
Status finish(RawLink& link) {
  std::optional<Error> problem;
  while (PGresult* result = PQgetResult(link.pg())) {
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && !problem) problem = link.error(result);
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
    const Deadline never = Deadline::never();
    const std::string columns = list_of(table.columns);
    const std::string format = table.as_text ? " (FORMAT text)" : " (FORMAT binary)";
    KG_CHECK(from_.run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT " +
                           quote_literal(job_.snapshot),
                       never, go_on_));
    KG_CHECK(to_.run("BEGIN", never, go_on_));
    KG_CHECK(from_.run(
        "COPY (SELECT " + columns + " FROM " + table.name + " WHERE " + table.inside + ") TO STDOUT" + format,
        never, go_on_));
    KG_CHECK(to_.run("COPY " + table.name + " (" + columns + ") FROM STDIN" + format, never, go_on_));
    KG_CHECK(pump(table.as_text));
    KG_CHECK(from_.run("COMMIT", never, go_on_));
    KG_CHECK(to_.run("COMMIT", never, go_on_));
    return {};
  }

 private:
  Status pump(bool text) {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    const std::uint64_t look_every =
        job_.max_rate == 0 ? kLookEveryBytes
                           : std::clamp<std::uint64_t>(job_.max_rate / kLooksASecond, 1, kLookEveryBytes);
    const auto tell = [&] {
      lease_.progress(rows, bytes);
      throttle_.account(bytes, go_on_);
      rows = 0;
      bytes = 0;
    };
    for (;;) {
      char* buffer = nullptr;
      const int size = PQgetCopyData(from_.pg(), &buffer, 0);
      const std::unique_ptr<char, FreeMemory> row(buffer);
      if (size == -1) break;
      if (size == -2) return fail(from_.error(nullptr));
      if (PQputCopyData(to_.pg(), row.get(), size) != 1) return fail(end_of(to_));
      ++rows;
      bytes += static_cast<std::uint64_t>(size);
      if (bytes >= look_every) {
        tell();
        KG_CHECK(go_on_());
      }
    }
    if (!text) rows -= std::min<std::uint64_t>(rows, 1);  // the trailer came as a message of its own
    tell();
    KG_CHECK(finish(from_));
    if (PQputCopyEnd(to_.pg(), nullptr) != 1) return fail(to_.error(nullptr));
    return finish(to_);
  }

  // Why the target takes no more.
  static Error end_of(RawLink& link) {
    const Status why = finish(link);
    return why ? link.error(nullptr) : why.error();
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
    KG_TRY(RawLink from, RawLink::open(job.source_dsn, job.name, false, lease, Deadline::in(kConnectDeadline)));
    KG_TRY(RawLink to, RawLink::open(job.target_dsn, job.name, false, lease, Deadline::in(kConnectDeadline)));
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
