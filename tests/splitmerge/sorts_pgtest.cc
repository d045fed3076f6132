// Tables of every sort move back and forth while clients write to all of them: identity and generated columns,
// a foreign key, partitions between which rows change, large values, no key at all, triggers and row-level
// security.
#include <atomic>
#include <mutex>
#include <random>

#include "tests/splitmerge/moving.h"
#include "tests/splitmerge/small_router.h"

namespace kintsugi::splitmerge {
namespace {

constexpr int kTenants = 120;
constexpr int kWriters = 3;

constexpr const char* kTables = R"(
  CREATE TABLE parent (tenant bigint, id bigint GENERATED ALWAYS AS IDENTITY, v int,
                       twice int GENERATED ALWAYS AS (v * 2) STORED, PRIMARY KEY (tenant, id));
  CREATE TABLE child (tenant bigint, id bigint, parent bigint, big text, PRIMARY KEY (tenant, id),
                      FOREIGN KEY (tenant, parent) REFERENCES parent ON DELETE CASCADE);
  CREATE TABLE log (tenant bigint NOT NULL, at date NOT NULL, n int) PARTITION BY RANGE (at);
  CREATE TABLE log_old PARTITION OF log FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
  CREATE TABLE log_new PARTITION OF log FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);
  CREATE TABLE keyless (tenant bigint NOT NULL, what text, n int);
  CREATE TABLE other_key (id serial PRIMARY KEY, tenant bigint NOT NULL, at point, doc json, n int);
  CREATE TABLE large (tenant bigint PRIMARY KEY, body text, n int);
  ALTER TABLE large ALTER body SET STORAGE EXTERNAL;
  CREATE TABLE secret (tenant bigint PRIMARY KEY, v text);
  ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
  ALTER TABLE secret FORCE ROW LEVEL SECURITY;
  CREATE FUNCTION longer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v || 't'; RETURN NEW; END $$;
  CREATE TRIGGER longer BEFORE UPDATE ON secret FOR EACH ROW EXECUTE FUNCTION longer();
)";

constexpr const char* kRows = R"(
  INSERT INTO parent (tenant, v) SELECT t, 0 FROM generate_series(0, 119) t;
  INSERT INTO child SELECT tenant, 0, id, repeat('x', 3000) FROM parent;
  INSERT INTO log SELECT t, date '2025-12-01' + t % 60, 0 FROM generate_series(0, 119) t;
  INSERT INTO keyless SELECT t, 'twin', 0 FROM generate_series(0, 119) t, generate_series(1, 2);
  INSERT INTO other_key (tenant, at, doc, n) SELECT t, point(t, 1), '{"a": 1}', 0 FROM generate_series(0, 119) t;
  INSERT INTO large SELECT t, string_agg(md5(t::text || i), ''), 0 FROM generate_series(0, 119) t,
    generate_series(1, 600) i GROUP BY t;
  INSERT INTO secret SELECT t, '' FROM generate_series(0, 119) t;
  ANALYZE;
)";

// What a tenant's rows must be, each number in its own table.
struct Expected {
  int parent = 0, log = 0, keyless = 0, other_key = 0, large = 0, secret = 0;
  int children = 1;
};

class SortsTest : public Moving {
 protected:
  void write(SmallRouter& router, int me) {
    SmallRouter::Client client(router);
    std::mt19937 random(static_cast<unsigned>(me) + 7);
    int child = 1;
    while (!stop_) {
      const int tenant = static_cast<int>(random() % (kTenants / kWriters)) * kWriters + me;
      const std::string t = std::to_string(tenant);
      Expected& due = expected_[static_cast<std::size_t>(tenant)];
      // The rows of the answer, and the number in each.
      const auto run = [&](const std::string& sql, std::size_t rows, int number) {
        const auto answer = client.write(tenant, sql);
        if (!answer) return complain(sql + ": " + answer.error().to_string());
        if (answer->size() != rows) return complain(sql + ": " + std::to_string(answer->size()) + " rows");
        for (const auto& row : *answer) {
          if (std::stoi(*row.at(0)) != number)
            return complain(sql + ": " + *row[0] + " and not " + std::to_string(number));
        }
        ++writes_;
      };
      switch (random() % 9) {
        case 0:
          ++due.parent;
          run("UPDATE parent SET v = v + 1 WHERE tenant = " + t + " AND v >= 0 RETURNING twice", 1,
              2 * due.parent);
          break;
        case 1:
          ++due.children;
          run("INSERT INTO child SELECT tenant, " + std::to_string(++child * kWriters + me) +
                  ", id, repeat('y', 3000) FROM parent WHERE tenant = " + t + " AND v >= 0 RETURNING tenant",
              1, tenant);
          break;
        case 2:
          if (due.children < 2) break;
          --due.children;
          run("DELETE FROM child WHERE tenant = " + t +
                  " AND id = (SELECT max(id) FROM child WHERE tenant = " + t + ") RETURNING tenant",
              1, tenant);
          break;
        case 3:
          run("UPDATE log SET n = n + 1, at = at + CASE WHEN at < '2026-01-01' THEN 60 ELSE -60 END WHERE "
              "tenant = " +
                  t + " RETURNING n",
              1, ++due.log);
          break;
        case 4:
          run("UPDATE keyless SET n = n + 1 WHERE tenant = " + t + " RETURNING n", 2, ++due.keyless);
          break;
        case 5:
          run("UPDATE other_key SET n = n + 1, doc = doc WHERE tenant = " + t + " RETURNING n", 1,
              ++due.other_key);
          break;
        case 6:
          run("UPDATE large SET n = n + 1 WHERE tenant = " + t + " AND length(body) = 19200 RETURNING n", 1,
              ++due.large);
          break;
        case 7:
          run("UPDATE secret SET v = v WHERE tenant = " + t + " RETURNING length(v)", 1, ++due.secret);
          break;
        default:
          // Comes and goes, with what hangs on it.
          run("INSERT INTO parent (tenant, v) VALUES (" + t + ", -1) RETURNING v", 1, -1);
          run("INSERT INTO child SELECT tenant, -id, id, 'z' FROM parent WHERE tenant = " + t +
                  " AND v = -1 RETURNING tenant",
              1, tenant);
          run("DELETE FROM parent WHERE tenant = " + t + " AND v = -1 RETURNING v", 1, -1);
      }
    }
  }
  void complain(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = what;
    stop_ = true;
  }
  void expect(const std::string& sql, int Expected::*number) {
    const auto found = pairs(sql);
    EXPECT_EQ(found.size(), expected_.size()) << sql;
    for (const auto& [tenant, n] : found)
      EXPECT_EQ(n, expected_[static_cast<std::size_t>(tenant)].*number) << sql << ", tenant " << tenant;
  }

  std::vector<Expected> expected_{kTenants};
  std::atomic<bool> stop_{false};
  std::atomic<int> writes_{0};
  std::mutex mutex_;
  std::string problem_;
};

}  // namespace

TEST_F(SortsTest, TablesOfEverySortMoveWhileTheyAreWrittenTo) {
  must(change().edit({edit::CreateMap{"tenants", MapKind::kRange, {KeyType::kBigint}}, range("a", "", "40"),
                      range("b", "40", "80"), range("c", "80", "")},
                     soon()));
  on_both(kTables);
  pgtest::psql(dsn(1), kRows);
  for (const char* name : {"parent", "child", "log", "keyless", "other_key", "large", "secret"})
    put_table(name);
  start_runner();
  {
    SmallRouter router(store_dsn(), "router");
    std::vector<std::thread> writers;
    for (int i = 0; i < kWriters; ++i) writers.emplace_back([&, i] { write(router, i); });
    for (int i = 0; i < 4 && !stop_; ++i) {
      JobRequest request = move_of("b", i % 2 == 0 ? "s2" : "s1");
      request.mode = i == 3 ? MoveMode::kOffline : MoveMode::kOnline;
      const JobInfo job = done(request);
      EXPECT_EQ(job.state, JobState::kDone) << story(job);
      EXPECT_EQ(job.progress.rows, job.progress.total);
      expect_clean();
      if (HasFailure()) break;
      const int before = writes_;
      for (int n = 0; n < 500 && writes_ < before + 100; ++n) std::this_thread::sleep_for(10ms);
    }
    stop_ = true;
    for (std::thread& writer : writers) writer.join();
  }
  EXPECT_EQ(problem_, "");
  EXPECT_GT(writes_, 400);
  expect("SELECT tenant, v FROM parent", &Expected::parent);
  expect("SELECT tenant, count(*) FROM child GROUP BY 1", &Expected::children);
  expect("SELECT tenant, n FROM log", &Expected::log);
  expect("SELECT tenant, min(n) FROM keyless GROUP BY 1 HAVING count(*) = 2 AND min(n) = max(n)",
         &Expected::keyless);
  expect("SELECT tenant, n FROM other_key", &Expected::other_key);
  expect("SELECT tenant, n FROM large WHERE length(body) = 19200", &Expected::large);
  expect("SELECT tenant, length(v) FROM secret", &Expected::secret);
  std::printf("%d writes\n", writes_.load());
}

}  // namespace kintsugi::splitmerge
