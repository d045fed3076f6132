// A catalogue and a map for tests, made of SQL text: CREATE TABLE ... SHARD BY and its like, as a user writes
// them. PostgreSQL's own functions come from functions.txt (name, kinds, volatility, returns set, type), as
// PostgreSQL 15 lists them.
#pragma once

#include <string>
#include <vector>

#include "parser/parser.h"
#include "parser/split_statements.h"
#include "planner/analysis.h"
#include "planner/catalog.h"
#include "shardmap/map_edit.h"

namespace kintsugi::planner::testing {

struct World {
  CatalogPtr catalog;
  shardmap::MapPtr map;
};

// Statements that make tables, views, sequences, functions, schemas and types.
World make_world(const std::string& sql, shardmap::MapPtr map);
// The world of the golden files: tests/golden/schema.sql over golden_map().
const World& golden_world();
shardmap::MapPtr golden_map();

// One statement with its values, planned.
struct Planning {
  explicit Planning(const World& world) : world_(world) { names.search_path = {"public"}; }

  NameContext names;
  std::vector<Parameter> parameters;
  bool read_only_analysis = false;

  Result<AnalysisPtr> analyse_text(std::string_view text);
  Result<Plan> plan(std::string_view text);
  // The plan's lines, or the error as "refused: KG001 ..." with its hint.
  std::vector<std::string> explain(std::string_view text);

  parser::Normaliser normal;
  AnalysisOutcome outcome;

 private:
  const World& world_;
};

parser::Parser& shared_parser();

}  // namespace kintsugi::planner::testing
