#include "tests/parser/agreement.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "parser/split_statements.h"
#include "tests/parser/pg_oracle.h"

namespace kintsugi::parser {

std::string disagreement(Parser& parser, const std::string& text) {
  const oracle::Failure theirs = oracle::parse(text);
  Error ours;
  for (Range statement : split_statements(text)) {
    auto parsed = parser.parse(text, statement);
    if (parsed) continue;
    ours = parsed.error();
    break;
  }
  if (ours.message == theirs.message && ours.position == theirs.position) return {};
  const auto say = [](const std::string& message, int position) {
    return message.empty() ? std::string("accepts") : message + " (at " + std::to_string(position) + ")";
  };
  return "ours: " + say(ours.message, ours.position) + "\nPostgreSQL: " + say(theirs.message, theirs.position) +
         "\n" + text;
}

std::vector<std::string> corpus(const std::string& file) {
  std::ifstream stream("tests/parser/corpus/" + file + ".sql");
  std::stringstream text;
  text << stream.rdbuf();
  const std::string whole = std::move(text).str();
  std::vector<std::string> found;
  for (Range range : split_statements(whole)) found.emplace_back(range.of(whole));
  return found;
}

std::vector<std::string> whole_corpus() {
  std::vector<std::string> all;
  for (const char* file : {"psql", "drivers", "tpch", "select", "write", "orm", "utility", "ddl", "regression"})
    for (std::string& text : corpus(file)) all.push_back(std::move(text));
  return all;
}

std::vector<std::string> corpus_lines(const std::string& file) {
  std::ifstream stream("tests/parser/corpus/" + file);
  std::vector<std::string> found;
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) found.push_back(line);
  return found;
}

namespace {

class Corpus : public testing::TestWithParam<const char*> {};

TEST_P(Corpus, IsTakenAsPostgresTakesIt) {
  Parser parser;
  const auto statements = corpus(GetParam());
  ASSERT_GE(statements.size(), 20U);
  for (const std::string& text : statements) {
    EXPECT_FALSE(oracle::parse(text).failed()) << "not PostgreSQL: " << text;
    EXPECT_EQ(disagreement(parser, text), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Corpus,
                         testing::Values("psql", "drivers", "tpch", "select", "write", "orm", "utility", "ddl",
                                         "regression"),
                         [](const auto& file) { return std::string(file.param); });

TEST(CorpusSize, IsLarge) {
  const auto all = whole_corpus();
  EXPECT_GE(std::set<std::string>(all.begin(), all.end()).size(), 500U);
}

// PostgreSQL's own files, where they are installed: information_schema, the system views, the extensions.
TEST(Corpus, PostgresOwnFiles) {
  Parser parser;
  for (const std::string& text : oracle::sql_files("/usr/share/postgresql/15")) {
    if (text.find("\n\\") != std::string::npos || text.find('@') == 0) continue;  // psql's commands, templates
    for (Range range : split_statements(text)) {
      const std::string statement(range.of(text));
      if (oracle::parse(statement).failed()) continue;
      EXPECT_EQ(disagreement(parser, statement), "");
    }
  }
}

TEST(Rejected, WithPostgresWordsAtPostgresPlace) {
  Parser parser;
  const auto lines = corpus_lines("rejected.txt");
  ASSERT_GE(lines.size(), 400U);
  for (const std::string& text : lines) {
    EXPECT_TRUE(oracle::parse(text).failed()) << "PostgreSQL takes: " << text;
    EXPECT_EQ(disagreement(parser, text), "");
  }
}

}  // namespace
}  // namespace kintsugi::parser
