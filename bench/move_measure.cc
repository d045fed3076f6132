// A million rows of 150 bytes from one PostgreSQL to another: by a bare binary COPY | COPY pipe and by an idle
// move, and both once more under four clients that update through a router as fast as they can: a move is
// compared with a pipe beside the same clients. Prints the figures,
// writes each write's wait over time to the directory that is named, for bench/move_picture.py to draw. The
// waits are told for each step of the move, beside those of the same writers without one.
// Usage: kg_move_measure PROGRAM [DIRECTORY] [ROWS] [MOVES under load]
#include <atomic>
#include <cstdio>
#include <fstream>
#include <random>

#include "bench/router_process.h"
#include "shardmap/map_change.h"
#include "splitmerge/jobs.h"
#include "tests/pg/cluster.h"
#include "tests/shardmap/pg.h"

namespace kintsugi::splitmerge {
namespace {

using namespace std::chrono_literals;
using shardmap::BoundColumn;
using Clock = std::chrono::steady_clock;
namespace edit = shardmap::edit;

constexpr int kTenants = 1000;
constexpr int kClients = 4;
constexpr auto kAlone = 10s;  // the writers, before each move: what this machine does to them by itself

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}
Deadline soon() {
  return Deadline::in(600s);
}
template <class Value>
Value must(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return *std::move(result);
}

struct Wait {
  double at_s, ms;
};

class Measure {
 public:
  Measure(const std::string& program, std::string directory, int rows, int moves)
      : directory_(std::move(directory)), rows_(rows), moves_(moves) {
    const pgtest::ClusterOptions server{{"fsync = on", "shared_buffers = 512MB", "max_wal_size = 4GB",
                                         "checkpoint_timeout = 1h", "wal_retrieve_retry_interval = 200ms"}};
    for (auto& cluster : clusters_) {
      cluster = std::make_unique<pgtest::Cluster>(server);
      pgtest::psql(cluster->dsn(), "CREATE DATABASE shard");
    }
    pgtest::psql(clusters_[0]->dsn(), "CREATE DATABASE store");
    store_dsn_ = clusters_[0]->dsn("store");
    store_ = must(shardmap::open_store(store_dsn_, "", soon()));
    shardmap::MapChange change(*store_);
    for (int i = 1; i <= 2; ++i) {
      must(change.create_shard({"s" + std::to_string(i), dsn(i)}, soon()));
      pgtest::psql(dsn(i),
                   "CREATE TABLE accounts (tenant bigint NOT NULL, id bigint NOT NULL, n bigint NOT NULL, pad "
                   "text NOT NULL, PRIMARY KEY (tenant, id))");
    }
    using shardmap::ShardletState;
    must(change.edit(
        {edit::CreateMap{"tenants", shardmap::MapKind::kRange, {shardmap::KeyType::kBigint}},
         edit::CreateShardlet{
             "tenants", "a", {BoundColumn::min()}, {BoundColumn::max()}, {}, "s1", ShardletState::kOnline},
         edit::PutTable{{"public", "accounts", shardmap::TableKind::kSharded, "tenants", {"tenant"}}}},
        soon()));
    pgtest::psql(dsn(1), "INSERT INTO accounts SELECT g % " + std::to_string(kTenants) +
                             ", g, 0, repeat('x', 94) FROM "
                             "generate_series(1, " +
                             std::to_string(rows_) + ") g");
    for (int i = 1; i <= 2; ++i) pgtest::psql(dsn(i), "VACUUM ANALYZE accounts; CHECKPOINT");
    router_ = std::make_unique<bench::RouterProcess>(
        program, "postgresql://postgres@127.0.0.1:" + std::to_string(clusters_[0]->port()) + "/store");
  }

  void run() {
    const double pipe = pipe_seconds(1, 2);
    std::printf("bare COPY | COPY pipe     %8.0f rows/s  (%.2f s)\n", rows_ / pipe, pipe);
    const JobInfo idle = move("s2");
    tell("idle move", idle, pipe);
    pgtest::psql(dsn(1), "VACUUM accounts");
    under_load();
  }

 private:
  std::string dsn(int shard) const { return clusters_[shard - 1]->dsn("shard"); }

  // Into a table that is made like the other and is no table of the map.
  double pipe_seconds(int from, int to) {
    pgtest::psql(dsn(to), "CREATE TABLE spare (LIKE accounts INCLUDING ALL)");
    const std::string psql = "/usr/lib/postgresql/15/bin/psql -X -q ";
    const std::string command = psql + "-d '" + dsn(from) +
                                "' -c 'COPY accounts TO STDOUT (FORMAT binary)' | " + psql + "-d '" + dsn(to) +
                                "' -c 'COPY spare FROM STDIN (FORMAT binary)'";
    const auto began = Clock::now();
    if (std::system(command.c_str()) != 0) throw std::runtime_error("the pipe failed");
    const double took = seconds(Clock::now() - began);
    pgtest::psql(dsn(to), "DROP TABLE spare; CHECKPOINT");
    return took;
  }

  JobInfo move(const std::string& to) {
    JobRequest request;
    request.shardlets = {"a"};
    request.to = to;
    Jobs jobs(*store_);
    const JobInfo job = must(jobs.submit(request, soon()));
    JobInfo ended = must(jobs.wait(job.id, soon()));
    if (ended.state != JobState::kDone)
      throw std::runtime_error(ended.error ? ended.error->to_string() : "not done");
    return ended;
  }

  // Of "2026-11-18T15:00:00.123Z", seconds of the day.
  static double time_of(const std::string& at) {
    return std::stod(at.substr(11, 2)) * 3600 + std::stod(at.substr(14, 2)) * 60 + std::stod(at.substr(17, 6));
  }
  static double at(const JobInfo& job, const std::string& what) {
    for (auto event = job.history.rbegin(); event != job.history.rend(); ++event) {
      if (event->what.starts_with(what)) return time_of(event->at);
    }
    return 0;
  }
  void tell(const char* what, const JobInfo& job, double pipe) const {
    const double copy = at(job, "copied") - at(job, "copying");
    const double until_commit = at(job, "committed") - at(job, "preparing");
    std::printf(
        "%-24s  %8.0f rows/s copying (%.2f of the pipe, %.2f s), %8.0f rows/s until the commit (%.2f s), all "
        "of it "
        "%.2f s\n",
        what, rows_ / copy, pipe / copy, copy, rows_ / until_commit, until_commit,
        at(job, "done") - at(job, "preparing"));
    for (const JobEvent& event : job.history)
      std::printf("    %8.3f s  %s\n", time_of(event.at) - at(job, "preparing"), event.what.c_str());
  }

  struct Run {
    double alone_from, alone_to;  // seconds of the run in which the writers are alone
    double from, to;
    double pipe;  // what it took beside them
    JobInfo job;
  };

  void under_load() {
    std::atomic<bool> stop{false};
    std::vector<std::vector<Wait>> waits(kClients);
    const auto began = Clock::now();
    const double day_began = static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                     std::chrono::system_clock::now().time_since_epoch())
                                                     .count() %
                                                 86400000) /
                             1000.0;
    std::vector<std::thread> clients;
    for (int c = 0; c < kClients; ++c) {
      clients.emplace_back([&, c] {
        pgtest::Connection client(router_->dsn());
        std::mt19937 random(static_cast<unsigned>(c));
        while (!stop) {
          const std::uint64_t id = random() % static_cast<unsigned>(rows_) + 1;
          const auto sent = Clock::now();
          client.query("UPDATE accounts SET n = n + 1 WHERE tenant = " + std::to_string(id % kTenants) +
                       " AND id = " + std::to_string(id));
          const auto answered = Clock::now();
          waits[static_cast<std::size_t>(c)].push_back(
              {seconds(answered - began), 1000 * seconds(answered - sent)});
        }
      });
    }
    std::vector<Run> runs;
    for (int i = 0; i < moves_; ++i) {
      std::this_thread::sleep_for(2s);  // what the last one has left to the disks
      Run& run = runs.emplace_back();
      run.alone_from = seconds(Clock::now() - began);
      std::this_thread::sleep_for(kAlone);
      run.alone_to = seconds(Clock::now() - began);
      const int to = i % 2 == 0 ? 1 : 2;
      run.pipe = pipe_seconds(3 - to, to);
      std::this_thread::sleep_for(2s);
      run.from = seconds(Clock::now() - began);
      run.job = move("s" + std::to_string(to));
      run.to = seconds(Clock::now() - began);
    }
    std::this_thread::sleep_for(3s);
    stop = true;
    for (std::thread& client : clients) client.join();
    for (const Run& run : runs) {
      std::printf("pipe beside the writers   %8.0f rows/s  (%.2f s)\n", rows_ / run.pipe, run.pipe);
      tell("move under load", run.job, run.pipe);
      report(waits, run, day_began);
    }
    write_series(waits, runs.back().job, day_began);
  }

  // Of the writes that were under way at some time between the two.
  struct Spread {
    std::size_t writes = 0;
    double longest = 0, p999 = 0, median = 0;
  };
  static Spread spread(const std::vector<std::vector<Wait>>& waits, double from, double to) {
    std::vector<double> during;
    for (const auto& some : waits) {
      for (const Wait& wait : some) {
        if (wait.at_s >= from && wait.at_s - wait.ms / 1000 <= to) during.push_back(wait.ms);
      }
    }
    if (during.empty()) return {};
    std::sort(during.begin(), during.end());
    return {during.size(), during.back(), during[during.size() * 999 / 1000], during[during.size() / 2]};
  }

  static void report(const std::vector<std::vector<Wait>>& waits, const Run& run, double day_began) {
    const auto line = [&](const std::string& what, double from, double to) {
      const Spread its = spread(waits, from, to);
      std::printf("    %-28s %6.2f s  %8.0f writes/s  longest %6.1f ms  99.9th %6.1f ms  median %5.2f ms\n",
                  what.c_str(), to - from, static_cast<double>(its.writes) / (to - from), its.longest, its.p999,
                  its.median);
    };
    line("writers alone before it", run.alone_from, run.alone_to);
    line("the whole move", run.from, run.to);
    // Each state with the steps that the history names, up to the next.
    std::vector<std::pair<double, std::string>> marks;
    for (const JobEvent& event : run.job.history) marks.emplace_back(time_of(event.at) - day_began, event.what);
    std::stable_sort(marks.begin(), marks.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < marks.size(); ++i) {
      const double end = i + 1 < marks.size() ? marks[i + 1].first : run.to;
      if (end > marks[i].first) line("from " + marks[i].second.substr(0, 22), marks[i].first, end);
    }
  }

  void write_series(const std::vector<std::vector<Wait>>& waits, const JobInfo& job, double day_began) const {
    if (directory_.empty()) return;
    std::ofstream series(directory_ + "/move_waits.csv");
    series << "at_s,wait_ms\n";
    for (const auto& some : waits) {
      for (const Wait& wait : some) series << wait.at_s << "," << wait.ms << "\n";
    }
    std::ofstream states(directory_ + "/move_states.csv");
    states << "at_s,state\n";
    for (const JobEvent& event : job.history)
      states << time_of(event.at) - day_began << "," << event.what << "\n";
  }

  std::string directory_;
  int rows_;
  int moves_;  // under load
  std::unique_ptr<pgtest::Cluster> clusters_[2];
  std::string store_dsn_;
  std::unique_ptr<shardmap::MapStore> store_;
  std::unique_ptr<bench::RouterProcess> router_;
};

}  // namespace
}  // namespace kintsugi::splitmerge

int main(int count, char** arguments) {
  try {
    if (count < 2) throw std::runtime_error("the program to measure is not named");
    kintsugi::splitmerge::Measure(arguments[1], count > 2 ? arguments[2] : "",
                                  count > 3 ? std::atoi(arguments[3]) : 1000000,
                                  count > 4 ? std::atoi(arguments[4]) : 1)
        .run();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "kg_move_measure: %s\n", problem.what());
    return 1;
  }
  return 0;
}
