// A table of a moving shardlet as the source has it: names ready for SQL, what identifies its rows, which of
// them move. Private to splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/key_predicate.h"
#include "shardmap/pg_session.h"

namespace kintsugi::splitmerge {

// A relation that holds rows: the table itself, or a partition of it.
struct Leaf {
  std::string name;             // quoted, with its schema
  std::string number;           // its oid: what it is known by when somebody gives it another name
  bool identified = true;       // its replica identity has all key columns: a row filter on them is allowed
  std::string identity_clause;  // what ALTER TABLE ... REPLICA IDENTITY would need to make it as it is
  bool can_be_full = true;      // every column's type has an equality, or there is a primary key on the target
  // Why its rows cannot be followed, or moved at all, each as the end of a sentence; empty: nothing.
  std::string not_followed, not_moved;
};

// What tells one row from another while changes are followed. Where a table has nothing of the kind it is the
// sharding key, and stands for all rows that have it.
struct LookupKey {
  std::vector<std::string> columns;    // as they are called
  std::vector<std::string> names;      // quoted
  std::vector<std::string> types;      // ready for a cast
  std::vector<std::string> operators;  // the equality that an index on them knows
  bool unique = true;
};

struct MovedTable {
  shardmap::Table table;
  std::string name;                  // quoted, with its schema
  std::string number;                // its oid
  std::vector<std::string> columns;  // quoted; what is copied: all but the generated
  std::string checksum;              // an expression, bigint, over all columns of a row
  std::vector<std::string> key;      // quoted
  LookupKey row_key;
  std::string inside;  // the predicate of the moving range
  std::vector<Leaf> leaves;
  // Partitioned relations: changes are told in the name of the root, by its identity.
  std::vector<Leaf> parents;
  double rows_estimate = 0;
  bool as_text = false;                // a column's binary form has numbers in it that are another server's
  std::vector<std::string> sequences;  // owned by its columns; quoted, with their schema
};

Result<std::vector<MovedTable>> describe(shardmap::PgSession& session, const shardmap::Mapping& mapping,
                                         const std::vector<shardmap::Table>& tables,
                                         const std::vector<shardmap::KeyRange>& ranges, Deadline deadline);

// A table of which all rows are meant; it has no key.
Result<MovedTable> describe_whole(shardmap::PgSession& session, const shardmap::Table& table,
                                  Deadline deadline);

// The predicate with its columns taken from `row` ("NEW", "OLD").
Result<std::string> inside_of(const std::string& row, const MovedTable& table, const shardmap::Mapping& mapping,
                              const std::vector<shardmap::KeyRange>& ranges);

// A relation as lines of text that are equal on two servers if and only if the relation is: columns,
// constraints, indexes, triggers, policies, partitions. None: it is not there.
Result<std::vector<std::string>> shape_of(shardmap::PgSession& session, const std::string& name,
                                          Deadline deadline);

// Changes with whatever makes the tables' rows others than the ones that were copied, and tells of it in no
// other way: TRUNCATE, and definitions that add, drop or rewrite columns.
Result<std::string> version_of(shardmap::PgSession& session, const std::vector<MovedTable>& tables,
                               Deadline deadline);

[[nodiscard]] std::string array_of(const std::vector<std::string>& names);  // as a text[] parameter
[[nodiscard]] std::string list_of(const std::vector<std::string>& parts);   // "a, b"

}  // namespace kintsugi::splitmerge
