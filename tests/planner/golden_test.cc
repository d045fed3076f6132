// tests/golden/*.sql: a statement, its plan or refusal as comments behind it, an empty line. A line that begins
// with --! before the statement gives it values or a session: `--! $1 bigint = 42`, `--! search_path = shop`.
// With KINTSUGI_ACCEPT=1 in the environment the files are written anew; read the difference before committing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "shardmap/key_type.h"
#include "tests/planner/fixture.h"

namespace kintsugi::planner::testing {
namespace {

struct Case {
  std::vector<std::string> comments, directives, text, expected;
};

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream file(path);
  std::vector<Case> cases(1);
  for (std::string line; std::getline(file, line);) {
    Case& now = cases.back();
    if (line.empty()) {
      if (!now.text.empty()) cases.emplace_back();
      continue;
    }
    if (line.starts_with("--! "))
      now.directives.push_back(line.substr(4));
    else if (line.starts_with("-- ") && now.text.empty())
      now.comments.push_back(line);
    else if (line.starts_with("-- "))
      now.expected.push_back(line.substr(3));
    else
      now.text.push_back(line);
  }
  if (cases.back().text.empty()) cases.pop_back();
  return cases;
}

std::uint32_t oid_named(const std::string& name) {
  if (name == "unknown") return 705;
  if (name == "bigint[]") return 1016;
  if (name == "text[]") return 1009;
  if (name == "bpchar") return 1042;
  if (name == "float8") return 701;
  return shardmap::oid_of(*shardmap::key_type_named(name));
}

void direct(const std::string& directive, Planning& planning, std::vector<std::string>& storage) {
  std::istringstream words(directive);
  std::string what, type, equals, rest;
  words >> what;
  if (what[0] == '$') {
    words >> type >> equals;
    std::getline(words >> std::ws, rest);
    const auto at = static_cast<std::size_t>(std::stoi(what.substr(1)));
    if (planning.parameters.size() < at) planning.parameters.resize(at);
    Parameter& parameter = planning.parameters[at - 1];
    parameter.type = oid_named(type);
    parameter.null = rest == "NULL";
    storage.push_back(rest);
    parameter.bytes = storage.back();
  } else {
    words >> equals >> rest;
    if (what == "search_path") planning.names.search_path = {rest, "public"};
    if (what == "shard_new_tables") planning.names.shard_new_tables = rest;
    if (what == "temporary") planning.names.temporary_tables = {rest};
  }
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, Plans) {
  const std::string path = "tests/golden/" + GetParam() + ".sql";
  const bool accept = std::getenv("KINTSUGI_ACCEPT") != nullptr;
  std::ostringstream accepted;
  const auto cases = read_cases(path);
  ASSERT_FALSE(cases.empty()) << path;
  for (const Case& each : cases) {
    std::string text;
    for (const std::string& line : each.text) text += (text.empty() ? "" : "\n") + line;
    Planning planning(golden_world());
    std::vector<std::string> storage;
    storage.reserve(each.directives.size());
    for (const std::string& directive : each.directives) direct(directive, planning, storage);
    std::vector<std::string> lines = planning.explain(text);
    std::vector<std::string> flat;
    for (const std::string& line : lines) {
      std::string one = line;
      for (char& c : one)
        if (c == '\n') c = ' ';
      flat.push_back(one);
    }
    if (!accept) {
      EXPECT_EQ(flat, each.expected) << path << ": " << text;
    }
    for (const std::string& line : each.comments) accepted << line << "\n";
    for (const std::string& line : each.directives) accepted << "--! " << line << "\n";
    accepted << text << "\n";
    for (const std::string& line : flat) accepted << "-- " << line << "\n";
    accepted << "\n";
  }
  if (accept) std::ofstream(path) << accepted.str();
}

std::vector<std::string> files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden"))
    if (entry.path().extension() == ".sql" && entry.path().stem() != "schema")
      names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Plans, Golden, ::testing::ValuesIn(files()), [](const auto& of) { return of.param; });

}  // namespace
}  // namespace kintsugi::planner::testing
