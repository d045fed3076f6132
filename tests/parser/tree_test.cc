// The trees of tests/parser/golden/*.tree: a statement on a line, its tree on the next, an empty line. With
// KINTSUGI_ACCEPT=1 in the environment the files are written anew with what the parser says now; read the
// difference before committing it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "parser/parser.h"
#include "parser/to_string.h"

namespace kintsugi::parser {
namespace {

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, Trees) {
  const std::string path = std::string("tests/parser/golden/") + GetParam() + ".tree";
  std::vector<std::pair<std::string, std::string>> pairs;
  {
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    for (std::string line; std::getline(file, line);) {
      if (line.empty()) continue;
      if (line.starts_with("  "))
        pairs.back().second = line.substr(2);
      else
        pairs.emplace_back(line, "");
    }
  }
  ASSERT_GE(pairs.size(), 10U);
  Parser parser;
  const bool accept = std::getenv("KINTSUGI_ACCEPT") != nullptr;
  std::string accepted;
  for (const auto& [text, expected] : pairs) {
    auto statement = parser.parse(text);
    const std::string tree = statement ? to_string(**statement) : statement.error().to_string();
    if (!accept) {
      EXPECT_EQ(tree, expected) << text;
    }
    accepted.append(text).append("\n  ").append(tree).append("\n\n");
  }
  if (accept) std::ofstream(path) << accepted;
}

INSTANTIATE_TEST_SUITE_P(Trees, Golden,
                         testing::Values("expressions", "queries", "writes", "utilities", "definitions", "own"),
                         [](const auto& file) { return std::string(file.param); });

const Select& simple(const Statement& statement) {
  return *statement.get<Query>()->simple();
}

TEST(Tree, RangesAreWhatTheyName) {
  Parser parser;
  const std::string_view text =
      "WITH w AS (SELECT 1) SELECT DISTINCT a.x AS y, count(*) FROM s.t AS a, u JOIN v ON u.i = v.i WHERE (a.x "
      "= 5) AND "
      "b IN (1, 2) GROUP BY 1 HAVING count(*) > 2 ORDER BY y DESC LIMIT 10 OFFSET 5 FOR UPDATE OF a";
  auto statement = parser.parse(text);
  ASSERT_TRUE(statement) << statement.error().to_string();
  const Query& query = *(*statement)->get<Query>();
  const Select& select = simple(**statement);
  EXPECT_EQ(query.with->range.of(text), "WITH w AS (SELECT 1)");
  EXPECT_EQ(query.with->tables[0]->body.range.of(text), "SELECT 1");
  EXPECT_EQ(select.select_list.of(text), "a.x AS y, count(*)");
  EXPECT_EQ(select.targets[0].alias.range.of(text), "y");
  EXPECT_EQ(select.from_clause.of(text), "FROM s.t AS a, u JOIN v ON u.i = v.i");
  EXPECT_EQ(select.from[0]->range.of(text), "s.t AS a");
  EXPECT_EQ(select.from[1]->range.of(text), "u JOIN v ON u.i = v.i");
  EXPECT_EQ(select.where_clause.of(text), "WHERE (a.x = 5) AND b IN (1, 2)");
  EXPECT_EQ(as<BoolExpr>(select.where)->args[0]->range.of(text), "a.x = 5");
  EXPECT_EQ(as<InList>(as<BoolExpr>(select.where)->args[1])->list_range.of(text), "(1, 2)");
  EXPECT_EQ(select.group_clause.of(text), "GROUP BY 1");
  EXPECT_EQ(select.having_clause.of(text), "HAVING count(*) > 2");
  EXPECT_EQ(query.order_clause.of(text), "ORDER BY y DESC");
  EXPECT_EQ(query.limit_clause.of(text), "LIMIT 10");
  EXPECT_EQ(query.offset_clause.of(text), "OFFSET 5");
  EXPECT_EQ(query.locking_clause.of(text), "FOR UPDATE OF a");
}

TEST(Tree, RangesCountFromTheStatementErrorsFromTheText) {
  Parser parser;
  const std::string_view text = "SELECT 'ä'; SELECT b FROM t; SELECT c FROM";
  auto second = parser.parse(text, Range{13, 28});
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->text(), "SELECT b FROM t");
  EXPECT_EQ(simple(**second).from[0]->range.of((*second)->text()), "t");
  auto third = parser.parse(text, Range{30, 43});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().message, "syntax error at end of input");
  EXPECT_EQ(third.error().position, 43);
}

TEST(Tree, OneStatementAtATime) {
  Parser parser;
  EXPECT_TRUE(parser.parse("SELECT 1;"));
  EXPECT_FALSE(parser.parse("SELECT 1; SELECT 2"));
  EXPECT_FALSE(parser.parse("  -- nothing"));
}

TEST(Tree, CountsParameters) {
  Parser parser;
  EXPECT_EQ((*parser.parse("SELECT $3, $1"))->parameters(), 3);
  EXPECT_EQ((*parser.parse("SELECT 1"))->parameters(), 0);
}

TEST(Tree, PlacementIsCutFromWhatTheShardsGet) {
  Parser parser;
  auto statement = parser.parse("CREATE TABLE o (a int) PARTITION BY HASH (a)\n SHARD BY m (a);");
  ASSERT_TRUE(statement) << statement.error().to_string();
  EXPECT_EQ((*statement)->get<CreateTable>()->without_placement.of((*statement)->text()),
            "CREATE TABLE o (a int) PARTITION BY HASH (a)");
}

// Kintsugi's words are no keywords: everywhere else they are names like any other.
TEST(Tree, OwnWordsAreNamesElsewhere) {
  Parser parser;
  for (const char* text :
       {"SELECT shard, map, split FROM shardlets AS job WHERE drain = resume",
        "CREATE TABLE shard (map int, list text)", "ALTER TABLE shard ADD split int",
        "ALTER TABLE t DROP replicated", "ALTER TABLE t RENAME TO replicated", "SHOW shard", "MOVE shardlet",
        "SELECT rebalance()", "INSERT INTO jobs (job) VALUES (1)", "CREATE SHARD map DSN 'x'",
        "CREATE SHARD MAP map BY LIST (text)", "DROP SHARDLET shardlet", "CREATE TABLE replicated AS SELECT 1",
        "CREATE TABLE t (replicated int)"})
    EXPECT_TRUE(parser.parse(text)) << text;
  EXPECT_NE((*parser.parse("ALTER TABLE t DROP replicated"))->get<AlterTable>()->commands.size(), 0U);
  EXPECT_EQ((*parser.parse("ALTER TABLE t REPLICATED"))->get<AlterTable>()->commands.size(), 0U);
}

TEST(Tree, OwnStatementsAreRefusedWhereTheyAreWrong) {
  Parser parser;
  const std::pair<const char*, int> wrong[] = {
      {"CREATE SHARD s1", 16},
      {"CREATE SHARD MAP m BY (int)", 23},
      {"CREATE SHARDLET a OF m ON SHARD s", 24},
      {"SPLIT SHARDLET", 15},
      {"SPLIT a AT (1)", 7},
      {"MOVE SHARDLET a TO s2", 20},
      {"MERGE SHARDLETS a", 18},
      {"SHOW SHARD MAPS 5", 17},
      {"CANCEL JOB", 11},
      {"CREATE TABLE t (a int) SHARD BY m", 34},
      {"DRAIN s1", 7},
      {"ALTER SHARDLET a SET AWAY", 22},
  };
  for (const auto& [text, position] : wrong) {
    auto parsed = parser.parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().sqlstate, "42601");
    EXPECT_EQ(parsed.error().position, position) << text << ": " << parsed.error().message;
  }
}

TEST(Tree, DepthIsLimited) {
  Parser parser;
  const auto nested = [](std::size_t depth) {
    return "SELECT " + std::string(depth, '(') + "1" + std::string(depth, ')');
  };
  EXPECT_TRUE(parser.parse(nested(50)));
  auto deep = parser.parse(nested(100000));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().sqlstate, "54001");
  std::string chain = "SELECT 1";
  for (int i = 0; i < 20000; ++i) chain += " + 1";
  ASSERT_FALSE(parser.parse(chain));
  EXPECT_EQ(parser.parse(chain).error().sqlstate, "54001");
  std::string ors = "SELECT a = 1";
  for (int i = 0; i < 20000; ++i) ors += " OR a = 1";
  EXPECT_TRUE(parser.parse(ors));
  std::string nots = "SELECT ";
  for (int i = 0; i < 100000; ++i) nots += "NOT ";
  EXPECT_FALSE(parser.parse(nots + "true"));
}

}  // namespace
}  // namespace kintsugi::parser
