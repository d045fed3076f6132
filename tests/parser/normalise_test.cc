#include "parser/normalise.h"

#include <gtest/gtest.h>

#include "parser/parser.h"
#include "parser/statement_cache.h"
#include "tests/allocations.h"
#include "tests/parser/agreement.h"

namespace kintsugi::parser {
namespace {

Range whole(std::string_view text) {
  return {0, static_cast<std::uint32_t>(text.size())};
}

std::string key(std::string_view text) {
  Normaliser normaliser;
  EXPECT_TRUE(normaliser.read(text, whole(text)));
  std::string shown;
  for (char c : normaliser.key()) shown += c == '\1' ? '?' : c == '\2' ? '#' : c == '\3' ? '&' : c;
  return shown;
}

std::vector<std::string> slots(std::string_view text) {
  Normaliser normaliser;
  EXPECT_TRUE(normaliser.read(text, whole(text)));
  std::vector<std::string> found;
  for (const Slot& slot : normaliser.slots())
    found.push_back((slot.negative ? "-" : "") + std::string(slot.token.of(text)));
  return found;
}

TEST(Normalise, LiteralsBecomeSlots) {
  EXPECT_EQ(key("SELECT a FROM T where b = 5 AND c='x'"), "select a from t where b = ?iand c = ?s");
  EXPECT_EQ(key("select a from t\n where b=77 /* hm */ and c = $$y$$"),
            key("SELECT a FROM T WHERE b = 5 AND c = 'x'"));
  EXPECT_EQ(slots("SELECT 1, 'x', 2.5, $1, 12345678901"),
            (std::vector<std::string>{"1", "'x'", "2.5", "12345678901"}));
}

TEST(Normalise, KindsAndNamesKeepStatementsApart) {
  EXPECT_NE(key("select 1"), key("select '1'"));
  EXPECT_NE(key("select 1"), key("select 1.0"));
  EXPECT_NE(key("select 1"), key("select 12345678901"));
  EXPECT_NE(key("select $1"), key("select $2"));
  EXPECT_NE(key("select null"), key("select true"));
  EXPECT_NE(key("select \"A\""), key("select a"));
  EXPECT_NE(key("select a - 5"), key("select a, - 5"));
  EXPECT_NE(key("select b'1'"), key("select x'1'"));
}

TEST(Normalise, PositionsOfColumnsStay) {
  EXPECT_NE(key("select a, b from t order by 1"), key("select a, b from t order by 2"));
  EXPECT_NE(key("select a, b from t order by a, 1 desc"), key("select a, b from t order by a, 2 desc"));
  EXPECT_NE(key("select a, b from t group by 1 having true"), key("select a, b from t group by 2 having true"));
  EXPECT_NE(key("select a from t group by rollup (1, 2)"), key("select a from t group by rollup (1, 3)"));
  EXPECT_NE(key("select distinct on (1) a from t"), key("select distinct on (2) a from t"));
  EXPECT_EQ(key("select a from t order by a + 1"), key("select a from t order by a + 2"));
  EXPECT_EQ(key("select a from t order by 1 limit 5"), key("select a from t order by 1 limit 6"));
  EXPECT_EQ(key("select a from t group by 1 having count(*) > 5"),
            key("select a from t group by 1 having count(*) > 6"));
  EXPECT_EQ(key("select a from (select b from u order by 1) x where c = 5"),
            key("select a from (select b from u order by 1) x where c = 6"));
}

TEST(Normalise, InListsAreOneThing) {
  EXPECT_EQ(key("select 1 from t where a in (1, 2, 3)"), key("select 1 from t where a in (7)"));
  EXPECT_EQ(key("select 1 from t where a in (1, -2)"), key("select 1 from t where a in (7)"));
  EXPECT_EQ(key("select 1 from t where a in ($1, $2)"), key("select 1 from t where a in ($3)"));
  EXPECT_NE(key("select 1 from t where a in (1)"), key("select 1 from t where a in ('1')"));
  EXPECT_NE(key("select 1 from t where a in (1, 2)"), key("select 1 from t where a in (1, b)"));
  EXPECT_NE(key("select 1 from t where a in (1, 2 + 3)"), key("select 1 from t where a in (1, 2)"));
  const std::string_view text = "select 1 from t where a in (1, -2, 3) and b = 4";
  Normaliser normaliser;
  ASSERT_TRUE(normaliser.read(text, whole(text)));
  ASSERT_EQ(normaliser.groups().size(), 1U);
  EXPECT_EQ(normaliser.groups()[0].first, 1U);
  EXPECT_EQ(normaliser.groups()[0].count, 3U);
  EXPECT_EQ(normaliser.groups()[0].range.of(text), "1, -2, 3");
  EXPECT_EQ(slots(text), (std::vector<std::string>{"1", "1", "-2", "3", "4"}));
}

TEST(Normalise, RowsOfAnInsertAreOneForm) {
  const std::string one = key("insert into t (a, b) values (1, 'x')");
  EXPECT_EQ(one, key("insert into t (a, b) values (null, -5.5)"));
  EXPECT_EQ(one, key("insert into t (a, b) values (true, $4)"));
  EXPECT_NE(one, key("insert into t (a, b) values (default, 1)"));
  const std::string two = key("insert into t (a, b) values (1, 'x'), (2, 'y')");
  EXPECT_NE(one, two);
  EXPECT_EQ(two, key("insert into t (a, b) values (1, 'x'), (null, 'y'), (3, 4), (5, 6)"));
  EXPECT_NE(two, key("insert into t (a, b) values (1, 'x'), (2, now())"));
  EXPECT_EQ(key("insert into t values (1, f(2)), (3, f(4))"),
            key("insert into t values (1, f(2)), (3, f(4)), (5, f(6))"));
  const std::string_view text = "insert into t values (1, f(2)), (3, f(4)), (5, f(6)) returning a";
  Normaliser normaliser;
  ASSERT_TRUE(normaliser.read(text, whole(text)));
  ASSERT_EQ(normaliser.groups().size(), 1U);
  EXPECT_TRUE(normaliser.groups()[0].rows);
  EXPECT_EQ(normaliser.groups()[0].stride, 2U);
  EXPECT_EQ(normaliser.groups()[0].count, 6U);
  EXPECT_EQ(normaliser.groups()[0].range.of(text), "(1, f(2)), (3, f(4)), (5, f(6))");
}

TEST(Normalise, OtherStatementsKeepTheirLiterals) {
  EXPECT_NE(key("set a to 1"), key("set a to 2"));
  EXPECT_NE(key("fetch 1 from c"), key("fetch 2 from c"));
  EXPECT_EQ(key("BEGIN"), key("begin"));
}

TEST(Normalise, UnitsTranslateRanges) {
  const std::string_view first = "SELECT a FROM t WHERE b IN (1,2) AND c = 'x' ORDER BY a";
  const std::string_view second =
      "select  a from t  where b in (100, 200, 300)\n and c = 'long one' order by a";
  Normaliser one;
  Normaliser two;
  ASSERT_TRUE(one.read(first, whole(first)));
  ASSERT_TRUE(two.read(second, whole(second)));
  ASSERT_EQ(one.key(), two.key());
  ASSERT_EQ(one.units().size(), two.units().size());
  const auto there = [&](std::string_view part) {
    const auto begin = static_cast<std::uint32_t>(first.find(part));
    return std::string(
        translate({begin, begin + static_cast<std::uint32_t>(part.size())}, one.units(), two.units())
            .of(second));
  };
  EXPECT_EQ(there("WHERE b IN (1,2)"), "where b in (100, 200, 300)");
  EXPECT_EQ(there("1,2"), "100, 200, 300");
  EXPECT_EQ(there("'x'"), "'long one'");
  EXPECT_EQ(there("ORDER BY a"), "order by a");
  EXPECT_EQ(there(first), second);
}

// The tree's literals are found among the slots.
TEST(Normalise, SlotsAreWhereTheTreeSaysLiteralsAre) {
  const std::string_view text = "select a from t where b = 5";
  Parser parser;
  auto statement = parser.parse(text);
  ASSERT_TRUE(statement);
  const auto* where = as<Operator>((*statement)->get<Query>()->simple()->where);
  Normaliser normaliser;
  ASSERT_TRUE(normaliser.read(text, whole(text)));
  EXPECT_EQ(normaliser.slot_at(where->right->range.begin), 0);
  EXPECT_EQ(normaliser.slot_at(where->left->range.begin), -1);
}

// Whatever two statements of the corpus have the same key, they also have the same units, and every literal is
// in its place.
TEST(Normalise, WholeCorpus) {
  Normaliser normaliser;
  for (const std::string& text : whole_corpus()) {
    ASSERT_TRUE(normaliser.read(text, whole(text))) << text;
    std::uint32_t last = 0;
    for (const Range& unit : normaliser.units()) {
      ASSERT_GE(unit.begin, last) << text;
      ASSERT_GT(unit.end, unit.begin) << text;
      last = unit.end;
    }
    for (std::size_t i = 0; i < normaliser.slots().size(); ++i)
      ASSERT_EQ(normaliser.slot_at(normaliser.slots()[i].token.begin), static_cast<int>(i)) << text;
  }
}

TEST(Cache, FindsWhatDiffersOnlyInLiterals) {
  StatementCache<int> cache(1 << 20);
  Normaliser n;
  const std::string_view one = "select a from t where b = 1";
  ASSERT_TRUE(n.read(one, whole(one)));
  EXPECT_EQ(cache.find(n, 7), nullptr);
  cache.insert(n, 7, 42, 0);
  const std::string_view two = "SELECT a FROM t WHERE b = 2";
  ASSERT_TRUE(n.read(two, whole(two)));
  ASSERT_NE(cache.find(n, 7), nullptr);
  EXPECT_EQ(*cache.find(n, 7), 42);
  EXPECT_EQ(cache.find(n, 8), nullptr);  // another epoch or search_path
  EXPECT_EQ(cache.counters().hits, 2U);
  EXPECT_EQ(cache.counters().misses, 2U);
}

TEST(Cache, PinnedSlotsMustBeEqual) {
  StatementCache<int> cache(1 << 20);
  Normaliser n;
  const std::string_view a = "select nextval('a'), 1";
  const std::string_view b = "select nextval('b'), 1";
  const std::string_view a2 = "select nextval('a'), 2";
  ASSERT_TRUE(n.read(a, whole(a)));
  cache.insert(n, 0, 1, 0, {0});
  ASSERT_TRUE(n.read(b, whole(b)));
  EXPECT_EQ(cache.find(n, 0), nullptr);
  cache.insert(n, 0, 2, 0, {0});
  ASSERT_TRUE(n.read(a2, whole(a2)));
  EXPECT_EQ(*cache.find(n, 0), 1);
}

TEST(Cache, IsBoundedAndForgetsTheLongestUnused) {
  StatementCache<int> cache(64 * 1024);
  Normaliser n;
  const std::string_view kept = "select kept";
  ASSERT_TRUE(n.read(kept, whole(kept)));
  cache.insert(n, 0, -1, 0);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = "select c" + std::to_string(i);
    ASSERT_TRUE(n.read(text, whole(text)));
    EXPECT_EQ(cache.find(n, 0), nullptr);
    cache.insert(n, 0, i, 100);
    ASSERT_TRUE(n.read(kept, whole(kept)));
    ASSERT_NE(cache.find(n, 0), nullptr);
    ASSERT_LE(cache.counters().bytes, 64U * 1024);
  }
  EXPECT_GT(cache.counters().evictions, 1000U);
  EXPECT_EQ(cache.insert(n, 0, 5, 64 * 1024), nullptr);
}

TEST(Cache, AHitAllocatesNothing) {
  StatementCache<int> cache(1 << 20);
  Normaliser n;
  const std::string_view text =
      "INSERT INTO t (a, b, c) VALUES (1, 'x', now()), (2, 'y', now()) ON CONFLICT DO NOTHING";
  const std::string_view other = "SELECT a FROM t WHERE b IN (1, 2, 3) AND c = 'x' ORDER BY 1 LIMIT 10";
  for (const std::string_view t : {text, other}) {
    ASSERT_TRUE(n.read(t, whole(t)));
    cache.insert(n, 0, 1, 0);
  }
  const std::size_t before = kintsugi::testing::allocations;
  bool found = true;
  for (int i = 0; i < 100; ++i)
    for (const std::string_view t : {text, other})
      found = found && n.read(t, whole(t)) && cache.find(n, 0) != nullptr;
  const std::size_t after = kintsugi::testing::allocations;
  EXPECT_TRUE(found);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace kintsugi::parser
