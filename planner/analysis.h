// From a parsed statement to its Plan, in two steps. analyse() does once for a statement's normal form what its
// values do not matter for: resolves names, finds which tables are touched and where their keys come from,
// decides the tier. make_plan() takes the values of one execution and says where they lie; for a statement that
// goes to one shard it allocates nothing.
//
// Pure: no I/O, no clock. An Analysis is immutable and may be shared by threads; it is good for the ShardMap's
// epoch and the Catalog that it was made with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "parser/normalise.h"
#include "parser/statement.h"
#include "planner/catalog.h"
#include "planner/plan.h"
#include "shardmap/shard_map.h"

namespace kintsugi::planner {

// What names mean for the one who asks.
struct NameContext {
  std::vector<std::string> search_path;  // schemas in order, "$user" resolved; pg_catalog goes without saying
  std::string user;
  std::string shard_new_tables;  // SET kintsugi.shard_new_tables as it stands
  // The session's temporary tables: they hide others of their name, and live on the home shard's connection.
  std::vector<std::string> temporary_tables;
  // What the session's open transaction has done to tables, which map and catalogue show when it has committed.
  struct NewTable {
    shardmap::Table table;
    std::shared_ptr<const Relation> relation;  // null: its columns are not known
  };
  std::vector<NewTable> new_tables;                              // placed or altered
  std::vector<std::pair<std::string, std::string>> gone_tables;  // schema and name: dropped or renamed
};

// A value as it came with Bind.
struct Parameter {
  std::uint32_t type = 0;  // OID, as the shard described the statement
  bool binary = false;
  bool null = false;
  std::string_view bytes;
};

// The literals and parameters of one execution. `normal` has read this very text, whose normal form is that of
// the analysed one.
struct Values {
  const parser::Normaliser* normal = nullptr;
  std::uint32_t begin = 0;  // where the statement begins in normal's text
  std::span<const Parameter> parameters;
  // A write goes on although its shardlet is held: its transaction has written there before.
  bool past_holds = false;
  bool explains = false;        // what would be worked out first stays as it is
  bool other_encoding = false;  // than UTF8: a text beyond ASCII is not what the shard will read
};

class Analysis;
using AnalysisPtr = std::shared_ptr<const Analysis>;

struct AnalysisOutcome {
  AnalysisPtr analysis;
  // A table or function was not found: the caller may have the catalogue read again, once, and analyse again.
  bool unknown_names = false;
  // Slots whose values the analysis depends on (for StatementCache::insert).
  std::vector<std::uint32_t> pinned;
  bool once = false;  // it holds for this very text only, not for others of its normal form
};

// An error is the reason why there will be no plan whatever the values: 0A000 says what is not supported across
// shards and what to do instead. Mistakes of the statement itself are PostgreSQL's to name: a statement with
// unknown tables or columns is a Route to the home shard, which refuses it in its own words.
Result<AnalysisOutcome> analyse(std::shared_ptr<const parser::Statement> statement,
                                const parser::Normaliser& normal, std::uint32_t begin, const NameContext& names,
                                const Catalog& catalog, const shardmap::ShardMap& map);

// KG001 to KG003 when the values have no place.
Result<Plan> make_plan(const Analysis& analysis, const Values& values, const shardmap::ShardMap& map);

// Only the parameters tell where it goes: Parse and Describe may go to any shard, Bind knows.
[[nodiscard]] bool depends_on_parameters(const Analysis& analysis, const parser::Normaliser& normal);
// It names tables that the home shard alone has, so that no other can describe it.
[[nodiscard]] bool needs_home(const Analysis& analysis);
// What is worked out once before several shards get the statement: now() and the like, what keys are compared
// with.
[[nodiscard]] std::vector<std::string> worked_out_of(const Analysis& analysis);
// Bytes held, for the statement cache.
[[nodiscard]] std::size_t bytes_of(const Analysis& analysis);

}  // namespace kintsugi::planner
