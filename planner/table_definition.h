// What CREATE TABLE, ALTER TABLE and CREATE INDEX say of a sharded table's columns and constraints: how a shard
// gets them, and what cannot hold over several shards. Private to planner/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/analyzer.h"

namespace kintsugi::planner {

// A range of the statement and what stands there instead on one shard. Sequences of sharded tables count apart
// from those of other shards, so that what they make is unique without asking anyone: each from its shard's
// number in the same steps. Replicated tables' sequences are the home shard's, and stay as they are.
struct ColumnEdit {
  parser::Range range;
  std::string text;
};
std::vector<ColumnEdit> apart(const parser::ColumnDefinition& column, shardmap::ShardId shard,
                              std::string_view text);
// Identity columns with options of their own cannot be made to count apart.
std::optional<Error> identity_options(const parser::ColumnDefinition& column, std::string_view text);
// The same of ALTER COLUMN ... ADD GENERATED AS IDENTITY, whose options, as pg_dump writes those of another
// such table, are replaced by the shard's own. `big`: of a bigint.
Result<ColumnEdit> identity_apart(const parser::AlterCommand& command, bool big, shardmap::ShardId shard,
                                  std::string_view text);
Error identity_with_options(std::string_view column);

// The range of the text with the edits in it; empty when there is none and the range is the whole text.
std::string edited(std::string_view text, parser::Range whole, const std::vector<ColumnEdit>& edits);

// A foreign key can be checked on one shard when the referenced row is there: same key, or replicated. `made`:
// null for a table of the home shard.
std::optional<Error> check_foreign_keys(Analyzer& analyzer, const parser::CreateTable& table,
                                        const shardmap::Table* made);
std::optional<Error> check_foreign_keys(Analyzer& analyzer, const parser::AlterCommand& command,
                                        const RelationUse& table);

// A unique constraint holds on each shard. It holds over all of them when it has the sharding key, or a column
// whose values the shards make apart: a sequence or a random uuid.
std::optional<Error> check_unique(const parser::CreateTable& table, const shardmap::Table& made);
std::optional<Error> check_unique(const parser::AlterCommand& command, const RelationUse& table);
std::optional<Error> check_unique(const parser::CreateIndex& index, const RelationUse& table);

}  // namespace kintsugi::planner
