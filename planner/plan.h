// Where a statement goes, what each place runs, and how the answers become one: a plain value. It compares, it
// prints, and it knows nothing of connections. Made by the planner for one statement with its values under one
// ShardMap, run by the executor, shown by EXPLAIN (ROUTE).
//
// A text that is empty means the client's own, byte for byte. Texts keep the client's $n: whoever runs them
// gives every shard all parameters, with the types that the whole statement has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/key_limit.h"
#include "shardmap/shard_map.h"

namespace kintsugi::planner {

using shardmap::ShardId;

// DESIGN, section 5.
enum class Tier : std::uint8_t { kRoute = 1, kFanOut = 2, kFinish = 3, kGather = 4 };

// What one shard runs.
struct ShardTask {
  ShardId shard = 0;
  std::string text;
  friend bool operator==(const ShardTask&, const ShardTask&) = default;
};

// Tier 1: one shard does all of it, and its bytes are the answer.
struct Route {
  ShardId shard = 0;   // 0: any shard gives this answer, as SELECT 1 does
  std::string text;    // with an ownership predicate put in, say
  bool writes = true;  // false: reads only, and takes no lock that outlives it
  // The one that is touched, when it is one. Good as long as the ShardMap: a point route allocates nothing.
  std::string_view shardlet;
  friend bool operator==(const Route&, const Route&) = default;
};

// A column to compare by: of a built-in type whose order needs no collation.
struct SortKey {
  int column = 0;          // of the shards' rows, from 0
  std::uint32_t type = 0;  // pg_type OID
  bool descending = false;
  bool nulls_first = false;
  friend bool operator==(const SortKey&, const SortKey&) = default;
};

// How a column of one-row answers is put together. NULLs do not count but in kFirst.
enum class Fold : std::uint8_t {
  kFirst,  // the same on every shard
  kSum,    // smallint to bigint, 22003 beyond bigint; numeric without a fraction
  kMin,
  kMax,
  kAnd,
  kOr,
};
struct FoldColumn {
  Fold fold = Fold::kFirst;
  std::uint32_t type = 0;  // pg_type OID of the column
  friend bool operator==(const FoldColumn&, const FoldColumn&) = default;
};

struct Merge {
  enum class Kind : std::uint8_t {
    kConcat,   // all rows, in any order
    kOrdered,  // each shard's rows come in the order of `keys`, and so does the whole
    kFold,     // one row from each becomes one, by `columns`
    kPlaced,   // a split INSERT ... RETURNING: row i of the whole is the next one of task placement[i]
    kOne,      // all did the same (a write to a replicated table): the first task's answer, the tags must agree
  };
  Kind kind = Kind::kConcat;
  std::vector<SortKey> keys;
  bool distinct = false;  // kOrdered over all visible columns: equal neighbours are one row
  std::vector<FoldColumn> columns;
  std::vector<std::uint32_t> placement;
  int hidden_columns = 0;  // at the end of the shards' rows, for `keys`: the client never sees them
  std::optional<std::uint64_t> limit;
  std::uint64_t offset = 0;
  friend bool operator==(const Merge&, const Merge&) = default;
};

// Tier 2: several shards at the same time, their answers merged. The command tag of a write counts the rows of
// all shards, that of a query the rows that went out.
struct FanOut {
  std::vector<ShardTask> tasks;
  Merge merge;
  bool writes = false;
  friend bool operator==(const FanOut&, const FanOut&) = default;
};

// Only rows whose column has a value that another relation, gathered before, has in one of its: where those are
// few, the tasks' texts get the condition in the place of `mark`.
struct KeyFilter {
  std::string mark;    // a comment
  std::string column;  // as the tasks' texts name it
  std::string of;      // the other relation's temporary table
  std::string values;  // its column, unquoted
  std::string type;    // of that, as format_type() writes it
  friend bool operator==(const KeyFilter&, const KeyFilter&) = default;
};

// A temporary table that is filled from several shards before the final statement runs.
struct GatheredRelation {
  std::string temporary;             // its name, unquoted
  std::string of;                    // what it stands for, in errors: "public.orders"
  std::vector<ShardTask> tasks;      // one SELECT a shard, of exactly these columns
  std::vector<std::string> columns;  // names, unquoted
  // As format_type() writes them; none: PostgreSQL finds them out from a task's text.
  std::vector<std::string> types;
  // Where `types` is empty: pg_type OIDs as far as the planner knows them, else 0.
  std::vector<std::uint32_t> oids;
  std::vector<std::string> primary_key;  // of which the final statement's GROUP BY makes use
  std::vector<std::string> indexed;      // columns that the final statement looks rows up by, again and again
  std::vector<KeyFilter> keys;
  friend bool operator==(const GatheredRelation&, const GatheredRelation&) = default;
};

// Tiers 3 and 4: partial results, or rows, of several shards come together on one, and the rest of the
// statement runs there over them.
struct Gather {
  Tier tier = Tier::kGather;
  std::vector<GatheredRelation> relations;
  ShardId finisher = 0;
  std::string text;  // the final statement, with the temporary tables' names in it
  bool writes = false;
  // The cursor that the final statement declares: the tables stay until the transaction ends.
  std::string cursor;
  bool hold = false;      // that is WITH HOLD: it outlives its transaction, and the tables
  bool copy_out = false;  // the final statement is COPY (...) TO STDOUT
  friend bool operator==(const Gather&, const Gather&) = default;
};

// COPY table FROM STDIN of a sharded or replicated table: each row to its shard, or to all.
struct CopyIn {
  enum class Format : std::uint8_t { kText, kCsv, kBinary };
  std::string text;              // the COPY for the shards; empty: the client's own
  std::string map;               // empty: every row goes to every shard
  std::vector<int> key_columns;  // where the key stands in a row, in the order of the map's types
  std::vector<KeyLimit> limits;  // and what each of them stores of a value
  Format format = Format::kText;
  char delimiter = '\t', quote = '"', escape = '"';
  std::string null_text = "\\N";
  // CSV, of each key column: a quoted null_text is NULL too; one without quotes is not.
  std::vector<bool> force_null, force_not_null;
  bool header = false;
  std::vector<ShardId> shards;  // that may receive rows
  // A replicated table with defaults that each shard would make for itself: the rows go into this temporary
  // table of the one shard, which makes them, and `fill` into the table afterwards. Empty: straight into it.
  std::string stage;
  std::vector<std::string> fill;  // of a Pour: its head and its source
  friend bool operator==(const CopyIn&, const CopyIn&) = default;
};

// COPY ... TO STDOUT from several: their data one after the other, with one header and one end.
struct CopyOut {
  std::vector<ShardTask> tasks;
  bool header = false, binary = false;
  friend bool operator==(const CopyOut&, const CopyOut&) = default;
};

// The same definition on several shards, all or nothing; then the map learns of it.
struct Ddl {
  std::vector<ShardTask> tasks;
  bool in_transaction = true;           // false (CREATE INDEX CONCURRENTLY, VACUUM): one after the other
  std::vector<shardmap::Table> record;  // tables that the map is to have
  std::vector<std::pair<std::string, std::string>> forget;  // (schema, name) of tables that go
  friend bool operator==(const Ddl&, const Ddl&) = default;
};

// A shardlet that the statement touches is being handed over: wait for the next map, then plan again.
struct Hold {
  std::string shardlet;
  friend bool operator==(const Hold&, const Hold&) = default;
};

// Values that a PostgreSQL has to work out once before it is known where the statement goes, or before several
// shards may have it: a key by default, now() for a replicated table. They are put into the statement as
// literals (text_with), and that is planned.
struct WorkOut {
  ShardId shard = 0;  // 0: any
  std::vector<std::string> expressions;
  std::vector<std::string> parts;  // of the new statement: one more than expressions, which stand between them
  friend bool operator==(const WorkOut&, const WorkOut&) = default;
};

// Parts of a write that several shards have to read: each is a statement of its own, and its rows stand in its
// place, as array parameters, when the statement is planned again.
struct ReadFirst {
  struct Read {
    enum class Form : std::uint8_t {
      kRows,   // a query that gives the rows again
      kArray,  // = ANY (the only column)
      kValue,  // the columns of the only row, one behind the other, or NULL; kRows when there are more rows
    };
    std::string query;
    Form form = Form::kRows;
    std::string before, after;  // around it
    bool writes = false;        // it is a data-modifying WITH
    friend bool operator==(const Read&, const Read&) = default;
  };
  std::vector<Read> reads;
  std::vector<std::string> parts;  // of the new statement: one more than reads, which stand between them
  ShardId where = 0;               // the shard that can say what they are; 0: any
  bool alone = false;              // nothing else reads a table that others change: one moment anyway
  friend bool operator==(const ReadFirst&, const ReadFirst&) = default;
};

// INSERT ... SELECT whose rows go elsewhere than they come from: `source` is a statement of its own, and its
// rows, some at a time, become the VALUES between `head` and `tail`.
struct Pour {
  std::string source;
  std::string head, tail;
  std::vector<bool> untyped;  // columns that are literals: the target's column says of which type
  // ON CONFLICT DO UPDATE: a row may be hit once, so all rows are one INSERT, or it is refused.
  bool at_once = false;
  ShardId where = 0;  // the shard that can say what the source is; 0: any
  friend bool operator==(const Pour&, const Pour&) = default;
};

using Plan = std::variant<Route, FanOut, Gather, CopyIn, CopyOut, Ddl, Hold, WorkOut, Pour, ReadFirst>;

// A row for each expression: its number, its value as text, and the name of its type.
[[nodiscard]] std::string query_of(const WorkOut& plan);
[[nodiscard]] std::string text_with(const WorkOut& plan,
                                    const std::vector<std::vector<std::optional<std::string>>>& rows);

[[nodiscard]] Tier tier_of(const Plan& plan);
// Whether it may change rows or take locks.
[[nodiscard]] bool writes(const Plan& plan);

// As golden files and EXPLAIN (ROUTE) show it, a line a fact; shards by name. `own_text` stands for empty ones.
[[nodiscard]] std::vector<std::string> lines_of(const Plan& plan, const shardmap::ShardMap& map,
                                                std::string_view own_text);

}  // namespace kintsugi::planner
