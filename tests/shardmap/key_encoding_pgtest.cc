// Order, hash, text and binary forms of keys against a real PostgreSQL, with random values of every type.
#include <gtest/gtest.h>

#include <random>

#include "shardmap/key_encoding.h"
#include "shardmap/pg_hash.h"
#include "tests/pg/cluster.h"
#include "tests/shardmap/pg.h"

namespace kintsugi::shardmap {
namespace {

constexpr int kValuesAType = 600;

class Values {
 public:
  std::string of(KeyType type) {
    switch (type) {
      case KeyType::kSmallint: return std::to_string(static_cast<std::int16_t>(integer()));
      case KeyType::kInt: return std::to_string(static_cast<std::int32_t>(integer()));
      case KeyType::kBigint: return std::to_string(integer());
      case KeyType::kNumeric: return numeric();
      case KeyType::kUuid: return uuid();
      case KeyType::kText: return text();
      case KeyType::kBytea: return bytea();
      case KeyType::kDate: return one_in(20) ? infinity() : date();
      case KeyType::kTimestamp: return one_in(20) ? infinity() : date() + " " + time() + era();
      case KeyType::kTimestamptz: return one_in(20) ? infinity() : date() + " " + time() + offset() + era();
      case KeyType::kBoolean: return one_in(2) ? "true" : "false";
    }
    return {};
  }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::int64_t integer() { return static_cast<std::int64_t>(random_()) >> below(64); }
  std::string digits(std::uint64_t most) {
    std::string out;
    for (std::uint64_t i = below(most) + 1; i > 0; --i)
      out += static_cast<char>('0' + (one_in(2) ? 0 : below(10)));
    return out;
  }
  std::string numeric() {
    if (one_in(40)) return one_in(2) ? "NaN" : infinity_of("Infinity");
    const bool large = one_in(30);
    std::string out = one_in(2) ? "-" : "";
    out += digits(large ? 2000 : 12);
    if (one_in(2)) out += "." + digits(large ? 2000 : 12);
    if (one_in(4)) out += "e" + std::string(one_in(2) ? "-" : "") + digits(one_in(8) ? 4 : 1);
    return out;
  }
  std::string hex(std::size_t bytes) {
    std::string out;
    for (std::size_t i = 0; i < 2 * bytes; ++i) out += "0123456789abcdef"[one_in(3) ? 0 : below(16)];
    return out;
  }
  std::string uuid() {
    std::string out = hex(16);
    for (std::size_t at : {20, 16, 12, 8}) out.insert(at, "-");
    return out;
  }
  std::string text() {
    static const std::vector<std::string> kPieces = {"a",
                                                     "b",
                                                     "A",
                                                     "Z",
                                                     "_",
                                                     "-",
                                                     " ",
                                                     "1",
                                                     "\\",
                                                     "'",
                                                     "\xc3\xa4",
                                                     "\xc3\x9f",
                                                     "\x7f",
                                                     "\x01",
                                                     "tenant-",
                                                     "\xe2\x82\xac",
                                                     "\xf0\x9f\xa6\x9c"};
    std::string out;
    for (std::uint64_t i = below(one_in(10) ? 60 : 6); i > 0; --i) out += kPieces[below(kPieces.size())];
    return out;
  }
  std::string bytea() { return "\\x" + hex(below(one_in(10) ? 80 : 5)); }
  std::string infinity_of(const std::string& word) { return (one_in(2) ? "-" : "") + word; }
  std::string infinity() { return infinity_of("infinity"); }
  std::string number(std::uint64_t value, std::size_t width) {
    std::string out = std::to_string(value);
    return out.size() < width ? std::string(width - out.size(), '0') + out : out;
  }
  std::string date() {
    const std::uint64_t year = one_in(3) ? 1 + below(4000) : 1970 + below(60);
    return number(year, 4) + "-" + number(1 + below(12), 2) + "-" + number(1 + below(28), 2);
  }
  std::string time() {
    std::string out = number(below(24), 2) + ":" + number(below(60), 2) + ":" + number(below(60), 2);
    if (one_in(2)) out += "." + digits(8);
    return out;
  }
  std::string offset() {
    return (one_in(2) ? "+" : "-") + number(below(14), 2) + (one_in(2) ? "" : ":" + number(below(60), 2));
  }
  std::string era() { return one_in(4) ? " BC" : ""; }

  std::mt19937_64 random_{20240117};
};

const std::vector<KeyType> kAllTypes = {KeyType::kSmallint,    KeyType::kInt,    KeyType::kBigint,
                                        KeyType::kNumeric,     KeyType::kUuid,   KeyType::kText,
                                        KeyType::kBytea,       KeyType::kDate,   KeyType::kTimestamp,
                                        KeyType::kTimestamptz, KeyType::kBoolean};

std::string sql_name(KeyType type) {
  return std::string(name_of(type));
}
std::string ordered(KeyType type, const std::string& column) {
  return type == KeyType::kText ? column + " COLLATE \"C\"" : column;
}

class KeyEncodingPg : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<pgtest::Cluster>();
    connection_ = std::make_unique<pgtest::Connection>(cluster_->dsn());
    connection_->query("SET TIME ZONE 'UTC'");
  }
  static void TearDownTestSuite() {
    connection_.reset();
    cluster_.reset();
  }
  static pgtest::Connection& pg() { return *connection_; }

 private:
  static inline std::unique_ptr<pgtest::Cluster> cluster_;
  static inline std::unique_ptr<pgtest::Connection> connection_;
};

}  // namespace

// One pass a type: PostgreSQL stores random values, and answers with rank, hash, text and binary form of each.
TEST_F(KeyEncodingPg, OrderHashTextAndBinaryAgreeForEveryType) {
  Values values;
  for (KeyType type : kAllTypes) {
    SCOPED_TRACE(sql_name(type));
    pg().query("DROP TABLE IF EXISTS v");
    pg().query("CREATE TABLE v (i int, given text, k " + sql_name(type) + ")");
    for (int i = 0; i < kValuesAType; ++i) {
      const std::string given = values.of(type);
      pg().query("INSERT INTO v VALUES ($1, $2, $3)", {std::to_string(i), given, given});
    }
    const std::string order = ordered(type, "k");
    const auto rows = pg().query("SELECT given, k::text AS printed, dense_rank() OVER (ORDER BY " + order +
                                 "), " + hash_expression({"k"}) + " FROM v ORDER BY " + order + ", i");
    const auto binary = pg().query("SELECT k FROM v ORDER BY " + order + ", i", {}, true);
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(kValuesAType));
    std::string previous;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(rows[i][0]);
      std::string from_given;
      std::string from_printed;
      std::string from_binary;
      ASSERT_TRUE(append_text(type, rows[i][0], from_given));
      ASSERT_TRUE(append_text(type, rows[i][1], from_printed));
      ASSERT_TRUE(append_binary(type, oid_of(type), binary[i][0], from_binary));
      EXPECT_EQ(from_given, from_printed);
      EXPECT_EQ(from_given, from_binary);
      if (i > 0) {
        const bool same = rows[i][2] == rows[i - 1][2];
        EXPECT_EQ(previous == from_given, same);
        EXPECT_EQ(previous < from_given, !same);
      }
      EXPECT_EQ(std::to_string(hash_of_key({type}, from_given)), rows[i][3]);
      const auto decoded = decode_bound({type}, from_given);
      ASSERT_TRUE(decoded);
      const std::string comparable =
          type == KeyType::kNumeric ? "trim_scale($1::numeric)::text" : "$1::" + sql_name(type) + "::text";
      if (i % 8 == 0) {
        EXPECT_EQ(decoded->at(0).text, pg().query("SELECT " + comparable, {rows[i][0]})[0][0]);
      }
      previous = std::move(from_given);
    }
  }
}

TEST_F(KeyEncodingPg, TuplesAgreeInOrderAndHash) {
  Values values;
  for (int round = 0; round < 12; ++round) {
    KeyTypes types;
    for (std::uint64_t n = 2 + values.below(3); n > 0; --n) types.push_back(kAllTypes[values.below(10)]);
    SCOPED_TRACE(list_of(types));
    pg().query("DROP TABLE IF EXISTS t");
    std::string create = "CREATE TABLE t (i int";
    std::string order;
    std::vector<std::string> columns;
    for (std::size_t c = 0; c < types.size(); ++c) {
      columns.push_back("k" + std::to_string(c));
      create += ", " + columns[c] + " " + sql_name(types[c]);
      order += (c > 0 ? ", " : "") + ordered(types[c], columns[c]);
    }
    pg().query(create + ")");
    std::vector<std::string> keys;
    std::vector<std::vector<std::string>> pool(types.size());
    for (std::size_t c = 0; c < types.size(); ++c) {
      for (int i = 0; i < 4; ++i) pool[c].push_back(values.of(types[c]));
    }
    for (int i = 0; i < 120; ++i) {
      std::vector<std::string> texts;
      std::vector<std::string> parameters{std::to_string(i)};
      std::string insert = "INSERT INTO t VALUES ($1";
      for (std::size_t c = 0; c < types.size(); ++c) {
        texts.push_back(pool[c][values.below(4)]);
        insert += ", $" + std::to_string(c + 2);
        parameters.push_back(texts.back());
      }
      pg().query(insert + ")", parameters);
      keys.push_back(*encode_key(types, texts));
    }
    const auto rows = pg().query("SELECT i, dense_rank() OVER (ORDER BY " + order + "), " +
                                 hash_expression(columns) + " FROM t ORDER BY " + order + ", i");
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::string& mine = keys[std::stoul(rows[r][0])];
      EXPECT_EQ(std::to_string(hash_of_key(types, mine)), rows[r][2]);
      if (r == 0) continue;
      const std::string& before = keys[std::stoul(rows[r - 1][0])];
      EXPECT_EQ(before == mine, rows[r][1] == rows[r - 1][1]);
      EXPECT_EQ(before < mine, rows[r][1] != rows[r - 1][1]);
    }
  }
}

// For one column the record's hash is the type's own extended hash function.
TEST_F(KeyEncodingPg, TheExpressionIsTheTypesOwnHashFunction) {
  const std::string seed = std::to_string(static_cast<std::int64_t>(kHashSeed));
  for (const auto& [function, value] : std::vector<std::pair<std::string, std::string>>{
           {"hashint2extended", "7::smallint"},
           {"hashint4extended", "7::int"},
           {"hashint8extended", "7::bigint"},
           {"hash_numeric_extended", "7.5::numeric"},
           {"hashtextextended", "'seven'::text COLLATE \"C\""},
           {"uuid_hash_extended", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid"},
           {"timestamp_hash_extended", "'2024-01-01'::timestamp"}}) {
    const auto rows =
        pg().query("SELECT " + function + "(" + value + ", " + seed + ") = " + hash_expression({value}));
    EXPECT_EQ(rows[0][0], "t") << function;
  }
  // A row filter of a publication takes the expression too, so that moves can select by hash.
  pg().query("CREATE TABLE filtered (a int, b text, PRIMARY KEY (a, b))");
  EXPECT_NO_THROW(
      pg().query("CREATE PUBLICATION p FOR TABLE filtered WHERE (" + hash_expression({"a", "b"}) + " >= 0)"));
}

TEST_F(KeyEncodingPg, NumericBinaryIsCutAtItsScaleAsPostgresDoes) {
  // 1.2345 announced with a scale of 2: PostgreSQL keeps 1.23.
  const std::string bytes("\x00\x02\x00\x00\x00\x00\x00\x02\x00\x01\x09\x29", 12);
  std::string key;
  ASSERT_TRUE(append_binary(KeyType::kNumeric, 1700, bytes, key));
  EXPECT_EQ(decode_bound({KeyType::kNumeric}, key)->at(0).text, "1.23");
}

}  // namespace kintsugi::shardmap
