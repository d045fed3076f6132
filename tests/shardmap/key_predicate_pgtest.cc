// The SQL of key ranges, held against the encoding that routing uses: PostgreSQL must select exactly the keys
// whose bytes lie between the bounds' bytes. And it must be allowed where a move needs it.
#include "shardmap/key_predicate.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/sql_quote.h"
#include "shardmap/key_encoding.h"
#include "shardmap/map_edit.h"
#include "shardmap/pg_hash.h"
#include "tests/pg/cluster.h"
#include "tests/shardmap/pg.h"

namespace kintsugi::shardmap {
namespace {

struct Case {
  const char* name;
  KeyTypes types;
  std::vector<std::string> columns;              // as CREATE TABLE has them
  std::vector<std::vector<std::string>> values;  // a column each
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"bigint",
       {KeyType::kBigint},
       {"bigint"},
       {{"-9223372036854775808", "-5", "0", "1", "7", "9223372036854775807"}}},
      {"int_under_bigint", {KeyType::kBigint}, {"int"}, {{"-2147483648", "-5", "0", "1", "7", "2147483647"}}},
      {"text", {KeyType::kText}, {"text"}, {{"", "a", "B", "b", "Ä", "zz", "o'b\\x", "z"}}},
      // Its collation sorts a, B, b: not as bytes do.
      {"varchar_en", {KeyType::kText}, {"varchar(20) COLLATE \"en-x-icu\""}, {{"", "a", "B", "b", "Z", "zz"}}},
      {"uuid",
       {KeyType::kUuid},
       {"uuid"},
       {{"00000000-0000-0000-0000-000000000000", "7fffffff-0000-0000-0000-000000000000",
         "80000000-0000-0000-0000-000000000001"}}},
      {"timestamptz",
       {KeyType::kTimestamptz},
       {"timestamptz"},
       {{"-infinity", "2020-01-01 00:00:00+00", "2026-11-18 15:00:00.5+02", "infinity"}}},
      {"date", {KeyType::kDate}, {"date"}, {{"-infinity", "0044-03-15 BC", "2026-11-18", "infinity"}}},
      {"numeric", {KeyType::kNumeric}, {"numeric"}, {{"-Infinity", "-1.5", "0", "1e10", "1.50", "NaN"}}},
      {"bytea", {KeyType::kBytea}, {"bytea"}, {{"\\x", "\\x00", "\\x0000", "\\x00ff", "\\xff"}}},
      {"bigint_text",
       {KeyType::kBigint, KeyType::kText},
       {"bigint", "text"},
       {{"-1", "0", "1", "2"}, {"", "a", "B", "b"}}},
      {"three",
       {KeyType::kDate, KeyType::kInt, KeyType::kUuid},
       {"date", "int", "uuid"},
       {{"2026-01-01", "2026-01-02"},
        {"-1", "0", "1"},
        {"00000000-0000-0000-0000-000000000000", "80000000-0000-0000-0000-000000000001"}}},
  };
  return all;
}

class KeyPredicateTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<pgtest::Cluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }

  // Every combination of the values, and a row with a NULL in each column.
  static std::string table_sql(const Case& c) {
    std::string sql = "DROP TABLE IF EXISTS t; CREATE TABLE t (";
    std::string lists;
    std::string values = "INSERT INTO t SELECT ";
    for (std::size_t i = 0; i < c.columns.size(); ++i) {
      const std::string name = "K" + std::to_string(i);
      sql += (i > 0 ? ", \"" : "\"") + name + "\" " + c.columns[i];
      std::string list;
      for (const std::string& value : c.values[i]) list += (list.empty() ? "(" : "), (") + quote_literal(value);
      const std::string type = c.columns[i].substr(0, c.columns[i].find(' '));
      values += (i > 0 ? ", " : "") + name + ".v::" + type;
      lists += (i > 0 ? ", (VALUES " : " FROM (VALUES ") + list + "), (NULL)) AS " + name + "(v)";
    }
    return sql + "); " + values + lists + ";";
  }
  static std::vector<std::string> columns_of(const Case& c) {
    std::vector<std::string> columns;
    for (std::size_t i = 0; i < c.columns.size(); ++i) columns.push_back("\"K" + std::to_string(i) + "\"");
    return columns;
  }
  static std::string texts_of(const Case& c) {
    std::string out;
    for (const std::string& column : columns_of(c)) out += (out.empty() ? "" : ", ") + column + "::text";
    return out;
  }
  static void settle(pgtest::Connection& pg) {
    pg.query("SET datestyle = 'ISO'");
    pg.query("SET timezone = 'UTC'");
  }
  // The encoded keys that are selected, each as often as it is.
  static std::multiset<std::string> selected(pgtest::Connection& pg, const Case& c, const std::string& where) {
    std::multiset<std::string> keys;
    for (const auto& row : pg.query("SELECT " + texts_of(c) + " FROM t WHERE " + where)) {
      const auto key = encode_key(c.types, row);
      EXPECT_TRUE(key) << key.error().to_string();
      if (key) keys.insert(*key);
    }
    return keys;
  }
  static std::string none_null(const Case& c) {
    std::string out;
    for (const std::string& column : columns_of(c))
      out += (out.empty() ? "" : " AND ") + column + " IS NOT NULL";
    return out;
  }

  static inline std::unique_ptr<pgtest::Cluster> cluster_;
};

Bound random_bound(const Case& c, std::mt19937& random) {
  Bound bound;
  const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const std::size_t values = pick(c.types.size() + 1);
  const bool max = pick(2) == 0;
  for (std::size_t i = 0; i < c.types.size(); ++i) {
    if (i < values) {
      bound.push_back(BoundColumn::value(c.values[i][pick(c.values[i].size())]));
    } else {
      bound.push_back(max ? BoundColumn::max() : BoundColumn::min());
    }
  }
  return bound;
}

}  // namespace

TEST_F(KeyPredicateTest, ARangeSelectsTheKeysWhoseBytesAreBetweenItsBounds) {
  pgtest::Connection pg(cluster_->dsn());
  settle(pg);
  std::mt19937 random(7);
  for (const Case& c : cases()) {
    pg.query(table_sql(c));
    const auto all = selected(pg, c, none_null(c));
    const auto total = std::stoul(pg.query("SELECT count(*) FROM t")[0][0]);
    for (int n = 0; n < 60; ++n) {
      const auto low = encode_bound(c.types, random_bound(c, random));
      const auto high = encode_bound(c.types, random_bound(c, random));
      ASSERT_TRUE(low && high);
      const auto text = inside_ranges(MapKind::kRange, c.types, columns_of(c), {{*low, *high}});
      ASSERT_TRUE(text) << text.error().to_string();
      std::multiset<std::string> expected;
      for (const std::string& key : all) {
        if (*low <= key && key < *high) expected.insert(key);
      }
      ASSERT_EQ(selected(pg, c, *text), expected) << c.name << ": " << *text;
      const auto rest = pg.query("SELECT count(*) FROM t WHERE (" + *text + ") IS NOT TRUE");
      ASSERT_EQ(std::stoul(rest[0][0]), total - expected.size()) << c.name << ": " << *text;
    }
  }
}

TEST_F(KeyPredicateTest, SeveralRangesAreTheirUnion) {
  pgtest::Connection pg(cluster_->dsn());
  settle(pg);
  const Case& c = cases()[0];
  pg.query(table_sql(c));
  const auto bound = [&](const char* text) { return *encode_bound(c.types, {BoundColumn::value(text)}); };
  const auto text = inside_ranges(MapKind::kRange, c.types, columns_of(c),
                                  {{bound("-10"), bound("0")}, {bound("1"), bound("2")}});
  ASSERT_TRUE(text);
  EXPECT_EQ(selected(pg, c, *text), (std::multiset<std::string>{bound("-5"), bound("1")}));
  EXPECT_EQ(*inside_ranges(MapKind::kRange, c.types, columns_of(c), {}), "false");
}

TEST_F(KeyPredicateTest, AHashRangeSelectsTheKeysWhoseHashIsInIt) {
  pgtest::Connection pg(cluster_->dsn());
  settle(pg);
  const KeyTypes hash{KeyType::kBigint};
  for (const Case& c : cases()) {
    pg.query(table_sql(c));
    const auto all = selected(pg, c, none_null(c));
    std::size_t found = 0;
    const std::vector<std::string> bounds{"-9223372036854775808", "-5000000000000000000", "0",
                                          "5000000000000000000"};
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const std::string low = *encode_bound(hash, {BoundColumn::value(bounds[i])});
      const std::string high =
          *encode_bound(hash, {i + 1 < bounds.size() ? BoundColumn::value(bounds[i + 1]) : BoundColumn::max()});
      const auto text = inside_ranges(MapKind::kHash, c.types, columns_of(c), {{low, high}});
      ASSERT_TRUE(text);
      std::multiset<std::string> expected;
      for (const std::string& key : all) {
        std::string encoded;
        append_bigint(hash_of_key(c.types, key), encoded);
        if (low <= encoded && encoded < high) expected.insert(key);
      }
      found += expected.size();
      ASSERT_EQ(selected(pg, c, *text), expected) << c.name << ": " << *text;
    }
    EXPECT_EQ(found, all.size()) << c.name << ": the four ranges are all there is";
  }
}

TEST_F(KeyPredicateTest, AListSelectsItsValues) {
  pgtest::Connection pg(cluster_->dsn());
  settle(pg);
  for (const Case& c : cases()) {
    pg.query(table_sql(c));
    const auto all = selected(pg, c, none_null(c));
    std::vector<KeyRange> values;
    std::multiset<std::string> expected;
    int n = 0;
    for (const std::string& key : std::set<std::string>(all.begin(), all.end())) {
      if (n++ % 2 != 0) continue;
      values.push_back({key, {}});
      for (std::size_t i = 0; i < all.count(key); ++i) expected.insert(key);
    }
    const auto text = inside_ranges(MapKind::kList, c.types, columns_of(c), values);
    ASSERT_TRUE(text);
    ASSERT_EQ(selected(pg, c, *text), expected) << c.name << ": " << *text;
  }
}

TEST_F(KeyPredicateTest, PostgresTakesItAsARowFilterAndAsATriggersCondition) {
  pgtest::Connection pg(cluster_->dsn());
  settle(pg);
  pg.query(
      "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN RAISE EXCEPTION 'moved'; END $$");
  for (const Case& c : cases()) {
    pg.query(table_sql(c));
    Bound low;
    Bound high;
    std::vector<std::string> fresh;
    for (std::size_t i = 0; i < c.types.size(); ++i) {
      low.push_back(BoundColumn::value(c.values[i].front()));
      high.push_back(BoundColumn::value(c.values[i].back()));
      fresh.push_back("NEW." + columns_of(c)[i]);
    }
    const std::string hash_low = *encode_bound({KeyType::kBigint}, {BoundColumn::value("-5")});
    const std::string hash_high = *encode_bound({KeyType::kBigint}, {BoundColumn::max()});
    const KeyRange range{*encode_bound(c.types, low), *encode_bound(c.types, high)};
    for (const MapKind kind : {MapKind::kRange, MapKind::kHash, MapKind::kList}) {
      const std::vector<KeyRange> ranges{kind == MapKind::kHash ? KeyRange{hash_low, hash_high} : range};
      const auto filter = inside_ranges(kind, c.types, columns_of(c), ranges);
      const auto when = inside_ranges(kind, c.types, fresh, ranges);
      ASSERT_TRUE(filter && when);
      EXPECT_NO_THROW(pg.query("CREATE PUBLICATION p FOR TABLE t WHERE (" + *filter + ")")) << c.name;
      pg.query("DROP PUBLICATION p");
      EXPECT_NO_THROW(pg.query("CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW WHEN (" + *when +
                               ") EXECUTE FUNCTION refuse()"))
          << c.name;
      pg.query("DROP TRIGGER f ON t");
    }
  }
}

TEST_F(KeyPredicateTest, TheOtherRowsAreOutsideAlsoThoseWithoutAKey) {
  pgtest::Connection pg(cluster_->dsn());
  MapPtr map = ShardMap::empty("x");
  map = *apply(
      *map,
      {edit::CreateShard{"s1", "host=x", "", ShardState::kOnline},
       edit::CreateShard{"s2", "host=y", "", ShardState::kOnline},
       edit::CreateMap{"m", MapKind::kRange, {KeyType::kBigint}},
       edit::CreateShardlet{
           "m", "a", {BoundColumn::value("0")}, {BoundColumn::value("7")}, {}, "s1", ShardletState::kOnline},
       edit::HideRange{"a", "s2", "1"}});
  const Mapping& mapping = *map->mapping("m");
  EXPECT_TRUE(hidden_on(mapping, map->shard_named("s1")->id).empty());
  EXPECT_EQ(hidden_on(mapping, map->shard_named("s2")->id), ranges_of(*map->shardlet("a")));
  pg.query(table_sql(cases()[0]));
  const auto text = outside_ranges(mapping, {"\"K0\""}, hidden_on(mapping, map->shard_named("s2")->id));
  ASSERT_TRUE(text);
  EXPECT_EQ(pg.query("SELECT count(*) FROM t WHERE " + *text)[0][0], "5");
  EXPECT_EQ(*outside_ranges(mapping, {"\"K0\""}, {}), "true");
}

}  // namespace kintsugi::shardmap
