// What a database or a role has set for the application is not meant for the move, and does not change what is
// moved.
#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

constexpr const char* kTables = R"(
  CREATE TABLE texts (name text COLLATE "C" PRIMARY KEY, v int NOT NULL, body text);
  CREATE TABLE values_ (name text COLLATE "C", i int, b bytea, at timestamptz, day date, span interval, f float8, x xml, m
    money, n numeric, PRIMARY KEY (name, i, f, b, at, day, span));
  CREATE TABLE loose (name text NOT NULL, f float8, b bytea, x int GENERATED ALWAYS AS IDENTITY);
)";

// Keys on both sides of each bound, with what a setting could take for something else.
constexpr const char* kRows = R"(
  CREATE TABLE names AS SELECT n FROM unnest(ARRAY['a', 'b', E'b\\', E'b\\''', 'b''', 'ü', 'üb', '中', E'\x01', E'\\x41', 'z', '', 'bb',
    E'\u00ff', E'\u0100', '😀', 'ｂ']) n;
  INSERT INTO texts SELECT n, 0, repeat(n || 'ä', 10) FROM names;
  INSERT INTO values_ SELECT n, i, decode('00ff5c27', 'hex'), timestamptz '2026-02-03 04:05:06.789+01' + i * interval '1 day', date
    '2026-01-12' + i, interval '1 mon -2 days 3:04:05.6' * i, 0.1 + i / 3.0, xml '<a>b</a>', 12.34 * i, 1.10 FROM names,
    generate_series(1, 5) i;
  INSERT INTO loose (name, f, b) SELECT name, f, b FROM values_;
  DROP TABLE names;
)";

constexpr const char* kSettings[] = {
    "bytea_output = 'escape'",
    "standard_conforming_strings = off",
    "datestyle = 'SQL, DMY'",
    "intervalstyle = 'sql_standard'",
    "extra_float_digits = -5",
    "xmlbinary = 'hex'",
    "xmloption = 'document'",
    "timezone = 'Asia/Kathmandu'",
    "client_encoding = 'LATIN1'",
    "quote_all_identifiers = on",
    "search_path = evil, public",
    "default_transaction_isolation = 'serializable'",
    "default_transaction_deferrable = on",
    "default_transaction_read_only = on",
    "statement_timeout = '20s'",
    "lock_timeout = 1",
    "idle_session_timeout = '1s'",
    "idle_in_transaction_session_timeout = '1s'",
    "synchronous_commit = off",
    "row_security = off",
    "default_tablespace = ''",
    "transform_null_equals = on",
    "array_nulls = off",
    "enable_indexscan = off",
    "session_replication_role = 'origin'",
    "check_function_bodies = off",
    "application_name = 'app'",
};

constexpr const char* kNames[] = {"texts", "values_", "loose"};

class SettingsTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    must(change().edit({edit::CreateMap{"names", MapKind::kRange, {KeyType::kText}}, between("low", "", "b"),
                        between("b", "b", "ü"), between("high", "ü", "")},
                       soon()));
    on_both(kTables);
    pgtest::psql(dsn(1), kRows);
    for (const char* table : kNames) put_table(table, {"name"}, "names");
  }
  static edit::CreateShardlet between(const std::string& name, const std::string& low,
                                      const std::string& high) {
    return {"names",
            name,
            {low.empty() ? BoundColumn::min() : BoundColumn::value(low)},
            {high.empty() ? BoundColumn::max() : BoundColumn::value(high)},
            {},
            "s1",
            ShardletState::kOnline};
  }
  static void set(int shard, const std::string& what) {
    pgtest::Connection pg(clusters_[shard - 1]->dsn());
    pg.query("ALTER DATABASE shard" + std::to_string(shard) + " SET " + what);
  }
  // As nobody's settings change it.
  static std::vector<std::string> plainly(int shard, const std::string& table) {
    std::vector<std::string> found;
    pgtest::Connection pg(
        dsn(shard) +
        " options='-c bytea_output=hex -c datestyle=ISO -c intervalstyle=postgres -c "
        "extra_float_digits=1 -c timezone=UTC -c client_encoding=UTF8 -c search_path=public'");
    for (const auto& row : pg.query("SELECT t::text FROM " + table + " t")) found.push_back(row[0]);
    return found;
  }
  static std::vector<std::string> together(std::vector<std::string> some,
                                           const std::vector<std::string>& others) {
    some.insert(some.end(), others.begin(), others.end());
    std::sort(some.begin(), some.end());
    return some;
  }
  // There and back, b and what lies above it, each time with a change behind the copy.
  void expect_travels(const std::string& what) {
    for (const int to : {2, 1}) {
      const int from = 3 - to;
      for (const char* shardlet : {"b", "high"}) {
        std::vector<std::vector<std::string>> due;
        for (const char* table : kNames) due.push_back(plainly(to, table));
        JobRequest request = move_of(shardlet, "s" + std::to_string(to));
        request.max_rate = 20000;
        const JobInfo submitted = must(jobs().submit(request, soon()));
        until_copying(submitted.id);
        pgtest::Connection pg(dsn(from) + " options='-c default_transaction_read_only=off'");
        pg.query("SET search_path = public");
        pg.query("UPDATE texts SET v = v + 1, body = body || E'\\\\'");
        pg.query("UPDATE values_ SET f = f + 1 WHERE i < 3");
        pg.query("UPDATE loose SET f = f / 7 WHERE f > 3");
        for (std::size_t i = 0; i < std::size(kNames); ++i) due[i] = together(due[i], plainly(from, kNames[i]));
        const JobInfo job = must(jobs().wait(submitted.id, soon()));
        EXPECT_EQ(job.state, JobState::kDone) << what << "\n" << story(job);
        if (job.state != JobState::kDone) return;
        for (std::size_t i = 0; i < std::size(kNames); ++i)
          EXPECT_EQ(together(plainly(1, kNames[i]), plainly(2, kNames[i])), due[i]) << what;
        wait_for_leftovers();
        (void)change().recover(0ms, soon());
        for (const auto& difference : must(shardmap::check(*store_, true, soon())))
          ADD_FAILURE() << what << ", " << difference.shard << ": " << difference.what;
      }
    }
  }
};

}  // namespace

TEST_F(SettingsTest, OnOneShardAndOnBothNothingIsLostOrChanged) {
  start_runner();
  for (const int shard : {1, 2}) {
    for (const char* setting : kSettings) set(shard, setting);
    expect_travels(shard == 1 ? "settings of s1" : "settings of both");
  }
}

TEST_F(SettingsTest, ADatabaseInAnotherEncodingIsRefused) {
  pgtest::psql(
      clusters_[1]->dsn(),
      "DROP DATABASE IF EXISTS shard3 WITH (FORCE);\nCREATE DATABASE shard3 ENCODING 'LATIN1' LOCALE 'C' "
      "TEMPLATE template0");
  must(change().create_shard({"s3", clusters_[1]->dsn("shard3")}, soon()));
  for (const MoveMode mode : {MoveMode::kOnline, MoveMode::kOffline}) {
    JobRequest request = move_of("b", "s3");
    request.mode = mode;
    const auto refused = jobs().submit(request, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().sqlstate, "55000");
    EXPECT_NE(refused.error().to_string().find(
                  "the database of the target has the encoding LATIN1; a shard must have UTF8"),
              std::string::npos)
        << refused.error().to_string();
  }
}

}  // namespace kintsugi::splitmerge
