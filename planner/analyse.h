// The parts of analyse(), one for each kind of statement. Private to planner/.
#pragma once

#include "planner/analysis_parts.h"
#include "planner/analyzer.h"

namespace kintsugi::planner {

// "0A000: `what`. Hint: `instead`."
Error refused(std::string what, std::string instead);

// Everything that does not depend on how several shards are merged: tables and their keys, what may run where.
// To be called when the analyzer has finished.
void take_tables(Analyzer& analyzer, Analysis& analysis);

// Edits that leave out hidden rows of the tables in the main text (and of the views in it). Says in
// analysis.unhideable when they cannot be.
// For UPDATE and DELETE: the block of their target, their WHERE, and where one may be put when there is none.
struct WriteClauses {
  const Block* block = nullptr;
  parser::Range where_clause;
  std::uint32_t where_goes = 0;
  parser::Range returning;
};
void add_ownership(Analyzer& analyzer, Analysis& analysis, TextEdits& edits,
                   const WriteClauses* write = nullptr);

// Why nothing of several shards can be planned for it at all; none: it may.
std::optional<Error> hopeless(const Analyzer& analyzer);

// Why a statement that names no sharded table may not run on one shard either; none: it may.
std::optional<Error> sees_one_shard(const Analyzer& analyzer);

// `copied`: it stands in COPY (...) TO.
void analyse_query(Analyzer& analyzer, const parser::Query& query, Analysis& analysis, bool copied = false);

void analyse_update(Analyzer& analyzer, const parser::Update& update, Analysis& analysis);
void analyse_delete(Analyzer& analyzer, const parser::Delete& del, Analysis& analysis);
void analyse_merge(Analyzer& analyzer, const parser::Merge& merge, Analysis& analysis);
void analyse_insert(Analyzer& analyzer, const parser::Insert& insert, Analysis& analysis);

// Whether each shard would make a value of its own for the column: "the default of column x"; empty: no.
std::string own_default(const Column& column);
// What the trigger's function does elsewhere than on the shard of its row, or otherwise on each shard.
std::optional<Error> trigger_elsewhere(const Analyzer& analyzer, const RelationUse& table,
                                       const Function& function);
// The same of CREATE RULE and CREATE POLICY.
std::optional<Error> text_elsewhere(const Analyzer& analyzer, const RelationUse& table, std::string_view text,
                                    bool rule);
// Of those that a table has now, whatever they were when they were made.
std::optional<Error> triggers_elsewhere(const Analyzer& analyzer, const RelationUse& table);
// Of those that EXECUTE what they put together, which may be any table's rows: over several shards.
std::optional<Error> triggers_run_anything(const Analyzer& analyzer, const RelationUse& table);
// Of the statement's functions and of the tables that it writes to.
std::optional<Error> written_elsewhere(const Analyzer& analyzer);
// Its default may be another value on each shard.
bool is_made(const Column& column);

// Everything that is neither a query nor a write: COPY, EXPLAIN, cursors, definitions.
void analyse_utility(Analyzer& analyzer, const parser::StatementBody& body, Analysis& analysis);

// The shards that have the replicated tables.
std::vector<shardmap::ShardId> replicated_shards(const shardmap::ShardMap& map);

// setval() of a sharded table's sequence (sequence.cc): noted on the way, placed at the end.
void note_setval(Analyzer& analyzer, const parser::FuncCall& call);
void place_setval(Analyzer& analyzer, const parser::StatementBody& body, Analysis& analysis);
void place_sequence_read(Analyzer& analyzer, const parser::StatementBody& body, Analysis& analysis);

// Tier 2 for the query, or why not.
Result<FanOutTemplate> fan_out_of(Analyzer& analyzer, const parser::Query& query, const Shape& shape,
                                  const TextEdits& ownership);

// Tier 3 for the query, or why not.
Result<GatherTemplate> finish_of(Analyzer& analyzer, const Analysis& analysis, const parser::Query& query,
                                 const Shape& shape, const TextEdits& ownership);

// A statement that makes a table of the home shard from a query, which has been analysed: rows of sharded
// tables are brought there.
void made_at_home(Analyzer& analyzer, Analysis& analysis, std::string_view what);

// Tier 4 for the query, or why not.
// The temporary tables' names begin with `prefix`.
Result<GatherTemplate> gather_of(Analyzer& analyzer, const Analysis& analysis, std::string prefix = "kg");

// A type that a merge may order by, and whether its text form is good enough for that.
enum class Order : std::uint8_t { kNo, kVisible, kBinaryOnly };
Order order_of(std::uint32_t type, std::string_view collation);

}  // namespace kintsugi::planner
