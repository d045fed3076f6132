// What the tests of moves have in common: two servers with a shard each, a store, tables of all sorts, and what
// must be true when a move is over, whatever its end was.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "shardmap/local_map.h"
#include "shardmap/map_change.h"
#include "shardmap/map_feed.h"
#include "shardmap/recovery.h"
#include "splitmerge/job_runner.h"
#include "splitmerge/jobs.h"
#include "tests/pg/cluster.h"
#include "tests/shardmap/pg.h"

namespace kintsugi::splitmerge {

using namespace std::chrono_literals;
using shardmap::BoundColumn;
using shardmap::KeyType;
using shardmap::MapEdit;
using shardmap::MapKind;
using shardmap::MapPtr;
using shardmap::MapStore;
using shardmap::ShardletState;
using shardmap::Table;
using shardmap::TableKind;
namespace edit = shardmap::edit;

inline Deadline soon(std::chrono::milliseconds time = 60000ms) {
  return Deadline::in(time);
}

class Moving : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (auto& cluster : clusters_) cluster = std::make_unique<pgtest::Cluster>();
  }
  static void TearDownTestSuite() {
    for (auto& cluster : clusters_) cluster.reset();
  }
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      std::string sql =
          "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE active_pid IS NULL;\n"
          "ALTER SYSTEM RESET ALL;\n";
      for (const std::string& name : {"shard" + std::to_string(i + 1), std::string("store")}) {
        sql += "DROP DATABASE IF EXISTS " + name + " WITH (FORCE);\nCREATE DATABASE " + name + ";\n";
      }
      pgtest::psql(clusters_[i]->dsn(), sql);
    }
    store_ = open();
    for (int i = 1; i <= 2; ++i) must(change().create_shard({"s" + std::to_string(i), dsn(i)}, soon()));
  }
  void TearDown() override {
    runners_.clear();
    store_.reset();
  }

  static std::string dsn(int shard) { return clusters_[shard - 1]->dsn("shard" + std::to_string(shard)); }
  static std::string store_dsn() { return clusters_[0]->dsn("store"); }
  static std::unique_ptr<MapStore> open() { return must(shardmap::open_store(store_dsn(), "", soon())); }
  template <class Value>
  static Value must(Result<Value> result) {
    if (!result) throw std::runtime_error(result.error().to_string());
    return *std::move(result);
  }
  shardmap::MapChange change() { return shardmap::MapChange(*store_); }
  MapPtr map() { return must(store_->load(soon())).map; }
  Jobs jobs() { return Jobs(*store_); }

  static void on_both(const std::string& sql) {
    for (int i = 1; i <= 2; ++i) pgtest::psql(dsn(i), sql);
  }

  static JobRunnerOptions options(const std::string& router = "r1") {
    JobRunnerOptions options;
    options.store = store_dsn();
    options.router = router;
    options.poll = 20ms;
    options.lease = 1000ms;
    options.tuning.clean_batch_rows = 500;
    return options;
  }
  void start_runner(const JobRunnerOptions& with = options()) {
    runners_.push_back(must(JobRunner::start(with)));
  }

  // Tenants by ranges of bigint, all on s1: a below 100, b below 200, c the rest.
  void ranges() {
    must(change().edit({edit::CreateMap{"tenants", MapKind::kRange, {KeyType::kBigint}}, range("a", "", "100"),
                        range("b", "100", "200"), range("c", "200", "")},
                       soon()));
  }
  static edit::CreateShardlet range(const std::string& name, const std::string& low, const std::string& high,
                                    const std::string& shard = "s1") {
    return {"tenants",
            name,
            {low.empty() ? BoundColumn::min() : BoundColumn::value(low)},
            {high.empty() ? BoundColumn::max() : BoundColumn::value(high)},
            {},
            shard,
            ShardletState::kOnline};
  }
  void put_table(const std::string& name, const std::vector<std::string>& key = {"tenant"},
                 const std::string& map = "tenants") {
    must(change().edit({edit::PutTable{Table{"public", name, TableKind::kSharded, map, key}}}, soon()));
  }
  // Three tables as applications have them.
  void shop(int tenants = 300, int rows_each = 10) {
    on_both(
        "CREATE TABLE orders (tenant bigint NOT NULL, id bigint NOT NULL, note text, at timestamptz DEFAULT "
        "now(), "
        "PRIMARY KEY (tenant, id));"
        "CREATE TABLE items (id uuid DEFAULT gen_random_uuid(), tenant bigint NOT NULL, body jsonb, n numeric);"
        "CREATE TABLE stock (tenant bigint PRIMARY KEY, amount bigint NOT NULL);");
    pgtest::psql(
        dsn(1), "INSERT INTO orders SELECT t, i, 'order ' || i FROM generate_series(0, " +
                    std::to_string(tenants - 1) + ") t, generate_series(1, " + std::to_string(rows_each) +
                    ") i; INSERT INTO items (tenant, body, n) SELECT tenant, jsonb_build_object('o', id), id / "
                    "3.0 FROM orders; INSERT INTO stock SELECT DISTINCT tenant, 100 FROM orders; ANALYZE");
    for (const char* name : {"orders", "items", "stock"}) put_table(name);
  }

  static JobRequest move_of(const std::string& shardlet, const std::string& target) {
    JobRequest request;
    request.shardlets = {shardlet};
    request.to = target;
    return request;
  }
  JobInfo done(const JobRequest& request) {
    const JobInfo submitted = must(jobs().submit(request, soon()));
    return must(jobs().wait(submitted.id, soon()));
  }
  JobInfo until_copying(std::uint64_t id) {
    for (const Deadline patience = soon();; std::this_thread::sleep_for(1ms)) {
      const JobInfo job = must(jobs().show(id, soon()));
      if (job.state >= JobState::kCopying || patience.passed()) return job;
    }
  }
  // A move of b to s2 that has copied and compared its rows and waits for a transaction on the source.
  std::uint64_t move_that_waits(const JobRunnerOptions& with = options()) {
    start_runner(with);
    JobRequest request = move_of("b", "s2");
    request.max_rate = 500000;
    const std::uint64_t id = must(jobs().submit(request, soon())).id;
    until_copying(id);  // making a slot waits for transactions: this one comes behind it
    writer_ = std::make_unique<pgtest::Connection>(dsn(1));
    writer_->query("BEGIN");
    writer_->query("UPDATE orders SET note = 'slow' WHERE tenant = 199 AND id = 1");
    while (must(jobs().show(id, soon())).state < JobState::kFenced) std::this_thread::sleep_for(2ms);
    return id;
  }
  // The transaction ends, and with it the move.
  JobInfo end_of(std::uint64_t id) {
    if (writer_) writer_->query("COMMIT");
    writer_.reset();
    return must(jobs().wait(id, soon()));
  }
  static std::string story(const JobInfo& job) {
    std::string text = "job " + std::to_string(job.id) + " is " + std::string(name_of(job.state));
    if (job.error) text += ": " + job.error->to_string();
    for (const JobEvent& event : job.history) text += "\n  " + event.at + " " + event.what;
    return text;
  }
  std::string owner_of(const std::string& shardlet) {
    const MapPtr now = map();
    const auto found = now->shardlet(shardlet);
    return found ? now->shard(found->shard)->name : "";
  }

  // All rows of a table on one shard, or on both, sorted.
  static std::vector<std::string> rows(int shard, const std::string& table, const std::string& where = "true") {
    pgtest::Connection pg(dsn(shard));
    std::vector<std::string> out;
    for (const auto& row : pg.query("SELECT t::text FROM " + table + " t WHERE " + where))
      out.push_back(row[0]);
    std::sort(out.begin(), out.end());
    return out;
  }
  static std::vector<std::string> all_rows(const std::string& table) {
    auto all = rows(1, table);
    const auto others = rows(2, table);
    all.insert(all.end(), others.begin(), others.end());
    std::sort(all.begin(), all.end());
    return all;
  }

  static std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const std::string& sql) {
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    for (int i = 1; i <= 2; ++i) {
      pgtest::Connection pg(dsn(i));
      for (const auto& row : pg.query(sql)) out.emplace_back(std::stoll(row[0]), std::stoll(row[1]));
    }
    return out;
  }

  // What jobs that are over have left behind is gone: runners come back for it.
  void wait_for_leftovers() {
    const bool alone = runners_.empty();
    const Deadline patience = soon();
    for (auto jobs = must(store_->notes("job", soon())); !jobs.empty();
         jobs = must(store_->notes("job", soon()))) {
      if (runners_.empty()) start_runner();
      if (patience.passed()) {
        ADD_FAILURE() << "a job is not over: " << jobs[0].body;
        break;
      }
      std::this_thread::sleep_for(5ms);
    }
    if (alone) runners_.clear();
  }

  // Nothing is left of any move, every row is where the map says, all agree.
  void expect_clean() {
    wait_for_leftovers();
    for (int i = 1; i <= 2; ++i) {
      pgtest::Connection pg(dsn(i));
      const auto count = [&](const std::string& what) {
        return pg.query("SELECT count(*) FROM " + what)[0][0];
      };
      EXPECT_EQ(count("pg_publication"), "0") << "s" << i;
      EXPECT_EQ(count("pg_subscription"), "0") << "s" << i;
      EXPECT_EQ(count("pg_replication_slots"), "0") << "s" << i;
      EXPECT_EQ(count("pg_trigger WHERE tgname LIKE 'kintsugi%'"), "0") << "s" << i;
      EXPECT_EQ(count("kintsugi.fence"), "0") << "s" << i;
      EXPECT_EQ(count("kintsugi.marker"), "0") << "s" << i;
      EXPECT_EQ(count("kintsugi.arrival"), "0") << "s" << i;
      EXPECT_EQ(
          count("pg_class WHERE relkind IN ('r', 'p') AND relreplident = 'f' AND relname NOT LIKE '%full%'"),
          "0")
          << "s" << i;
      EXPECT_EQ(count("pg_replication_origin"), "0") << "s" << i;
    }
    const MapPtr now = map();
    for (const shardmap::Mapping* mapping : now->mappings()) {
      EXPECT_TRUE(mapping->hidden().empty());
      for (const auto& shardlet : now->shardlets_of(*mapping))
        EXPECT_NE(shardlet.state, ShardletState::kHeld) << shardlet.name;
    }
    (void)change().recover(0ms, soon());
    for (const auto& difference : must(shardmap::check(*store_, true, soon())))
      ADD_FAILURE() << difference.shard << ": " << difference.what;
    EXPECT_TRUE(must(store_->notes("job_cancel", soon())).empty());
  }

  static inline std::unique_ptr<pgtest::Cluster> clusters_[2];
  std::unique_ptr<MapStore> store_;
  std::vector<std::unique_ptr<JobRunner>> runners_;
  std::unique_ptr<pgtest::Connection> writer_;
};

}  // namespace kintsugi::splitmerge
