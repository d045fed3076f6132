// What analyse() leaves for make_plan(). Private to planner/. Immutable once made; any thread.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/analysis.h"
#include "planner/key_limit.h"
#include "planner/key_set.h"
#include "planner/text_template.h"

namespace kintsugi::planner {

// A sharded table that the statement reads or writes, and which of its keys.
struct TouchedTable {
  std::string display;
  std::string map;
  KeyCondition condition;
  bool stored = false;  // the key of rows that are written: it must be known
  friend bool operator==(const TouchedTable&, const TouchedTable&) = default;
};

// The whole key of every sharded table in the statement is this: the way of most statements.
struct PointKey {
  std::string map;
  std::vector<Source> sources;
};

// LIMIT and OFFSET as the statement gives them.
struct Limits {
  std::optional<Source> limit, offset;
  bool limit_one = false;
};

// COPY (query) TO STDOUT.
struct CopyShape {
  bool header = false, binary = false;
};

// Tier 2.
struct FanOutTemplate {
  std::optional<TextTemplate> text;  // none: the client's own
  Merge merge;
  Limits limits;
  bool writes = false;
  std::optional<CopyShape> copy;
};

// Tiers 3 and 4.
struct GatheredTemplate {
  GatheredRelation relation;  // without tasks
  TextTemplate text;
  // Where its rows are: the sharded tables it is made of, by their place in Analysis::tables; none: a table
  // that is on the finisher already, or on the home shard alone.
  std::vector<std::size_t> tables;
  bool home = false;
};
struct GatherTemplate {
  Tier tier = Tier::kGather;
  std::vector<GatheredTemplate> relations;
  TextTemplate text;
  bool needs_home = false;  // the final statement reads tables of the home shard
  bool writes = false;
  std::string cursor;  // as in Gather
  bool hold = false;
  bool copy_out = false;
};

// What has to be worked out before a write can be planned (plan.h, WorkOut).
struct WorkOutTemplate {
  // INSERT: for each row as analysed, the values that are replaced or put behind the others.
  struct Cell {
    std::optional<std::size_t> position;  // in the row; none: behind its last value
    std::string expression;               // a default; empty: what stands there
    std::string type;                     // to which it is cast; empty: none
  };
  std::vector<std::vector<Cell>> rows;
  TextTemplate head;            // up to the first row
  bool default_values = false;  // the statement says DEFAULT VALUES: `head` ends there
  // UPDATE and DELETE: the text between the expressions, which are ranges of the analysed text.
  std::vector<TextTemplate> parts;
  struct Expression {
    parser::Range range;
    std::string text;  // of a view, which is no part of the analysed text; empty: the range's
  };
  std::vector<Expression> expressions;
};

// INSERT ... SELECT whose rows are read first and inserted then (plan.h, Pour).
struct PourTemplate {
  TextTemplate source, head, tail;
  std::vector<bool> untyped;
  bool at_once = false;
};

// Parts that are read before the statement can be planned (plan.h, ReadFirst).
struct ReadFirstTemplate {
  struct Read {
    parser::Range range;  // in whose place its rows go
    TextTemplate query;
    ReadFirst::Read::Form form = ReadFirst::Read::Form::kRows;
    std::string before, after;
    bool writes = false;
  };
  std::vector<Read> reads;
  std::vector<TextTemplate> parts;
  bool alone = false;
};

// INSERT ... VALUES into a sharded table, or into a replicated one with values to be worked out.
struct InsertTemplate {
  std::string map;
  std::string display;
  std::vector<std::string> key;  // the columns' names
  std::vector<KeyLimit> limits;  // and what they store of a value
  // For each row as analysed and each key column: where its value comes from; none: KG003 or not known, `why`.
  struct Value {
    std::optional<Source> source;
    bool missing = false;  // left out or DEFAULT, without a constant default
  };
  std::vector<std::vector<Value>> rows;
  std::optional<std::uint32_t> group;  // of slots: the first rows, of one form, are those of rows[0]
  std::size_t group_rows = 0;          // as analysed
  parser::Range values_range;          // from the first row to the last, in the analysed text
  bool returning = false;
  std::optional<Error> unsplittable;  // why it cannot be for several shards
  std::optional<WorkOutTemplate> work_out;
  std::optional<ReadFirstTemplate> read_first;  // its subqueries, when they read what is elsewhere
  bool key_read_first = false;                  // and keys are among them
  std::optional<WorkOutTemplate> unsure;        // only when a key is a value that cannot be read here
  std::optional<WorkOutTemplate> timed;         // only when the rows are for several shards: now() and the like
};

// What the tenant guard knows of the statement.
struct GuardProof {
  std::string why = "this kind of statement";  // it can never be proven; empty: it can
  // A sharded table's rows are those of this key.
  struct Key {
    std::string display, map;
    std::vector<Source> sources;
  };
  std::vector<Key> keys;
  bool rows = false;             // the keys of InsertTemplate's rows as well
  std::vector<Source> patterns;  // of LIKE: must not end in a backslash
};

// A plan that does not depend on values, one that cannot be, or one of the above.
struct FixedPlan {
  Plan plan;
};

class Analysis {
 public:
  std::shared_ptr<const parser::Statement> statement;
  std::vector<parser::Range> units;  // of the normal form, counted from the statement's begin
  parser::Range whole;               // what is planned of it: all, or what EXPLAIN (ROUTE) is about
  std::vector<Constant> constants;

  std::optional<FixedPlan> fixed;
  std::optional<InsertTemplate> insert;
  std::optional<WorkOutTemplate> work_out;  // of an UPDATE or DELETE
  std::optional<PourTemplate> pour;         // wherever its rows are
  std::optional<WorkOutTemplate> times;     // now() and the like, before several shards get it
  std::optional<WorkOutTemplate> folds;     // with what keys are compared with: fewer shards may get it then

  std::vector<TouchedTable> tables;  // each once
  std::vector<std::string> maps;     // of the tables, each once
  std::optional<PointKey> point;
  bool home = false;      // it reads or writes the home shard's tables too
  bool anywhere = false;  // without tables of one place: any shard will do
  bool writes = false;
  bool read_write_shardlets = false;  // writes into sharded tables: read only shardlets refuse it
  bool depends_on_parameters = false;
  bool replicated_target = false;
  // UPDATE ... SET key = value: allowed when it is the key that the row has.
  struct KeyUpdate {
    std::size_t table = 0;
    std::uint8_t column = 0;
    std::optional<Source> value;  // none: something else than a value
    std::string name;
    bool inserted = false;  // by MERGE
  };
  std::vector<KeyUpdate> key_updates;
  GuardProof guard;
  TextTemplate own;          // the client's text with hidden rows left out
  std::vector<Owned> owned;  // whose
  std::string unhideable;    // why hidden rows cannot be left out; empty: they can

  // When the values lead to several shards.
  std::variant<std::monostate, Error, FanOutTemplate, GatherTemplate, PourTemplate, ReadFirstTemplate> several;

  std::size_t bytes = 0;
};

// analyse() for each kind of statement.
class Analyzer;
Error refused(std::string what, std::string instead);

}  // namespace kintsugi::planner
