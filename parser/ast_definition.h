// DDL, as deep as the planner must understand it.
#pragma once

#include "parser/ast_utility.h"

namespace kintsugi::parser {

// Kintsugi: SHARD BY map (columns) or REPLICATED.
struct Placement {
  bool replicated = false;
  Name map;
  List<Name> columns;
  Range range;
};

struct Constraint {
  enum class Kind : std::uint8_t {
    kNotNull,
    kNull,
    kDefault,
    kCheck,
    kPrimaryKey,
    kUnique,
    kForeignKey,
    kGenerated,
    kIdentity,
    kExclude
  };
  Kind kind = Kind::kCheck;
  Name name;
  const Expr* expr = nullptr;  // of DEFAULT, CHECK, GENERATED ... STORED
  List<Name> columns;          // of a table's PRIMARY KEY, UNIQUE and FOREIGN KEY
  QualifiedName references;
  List<Name> referenced_columns;
  Name using_index;
  bool always = false;  // GENERATED ALWAYS
  Range range;
};

struct ColumnDefinition {
  Name name;
  const TypeName* type = nullptr;  // nullptr in CREATE TABLE ... OF and PARTITION OF
  QualifiedName collation;
  List<Constraint> constraints;
  Range range;
};

struct PartitionElement {
  Name column;  // or
  const Expr* expr = nullptr;
};

struct CreateTable {
  QualifiedName name;
  bool if_not_exists = false;
  bool temporary = false;
  bool unlogged = false;
  List<ColumnDefinition> columns;
  List<Constraint> constraints;
  List<QualifiedName> like;
  List<QualifiedName> inherits;
  QualifiedName partition_of;
  QualifiedName of_type;
  std::string_view partition_by;  // range, list, hash; empty: not partitioned
  List<PartitionElement> partition_key;
  const Placement* placement = nullptr;
  Range without_placement;  // the statement as the shards get it
};

struct CreateTableAs {
  QualifiedName name;
  bool if_not_exists = false;
  bool temporary = false;
  bool unlogged = false;
  List<Name> columns;
  const Query* query = nullptr;  // nullptr: AS EXECUTE
  bool with_data = true;
};

struct AlterCommand {
  enum class Kind : std::uint8_t {
    kAddColumn,
    kDropColumn,
    kAddConstraint,
    kDropConstraint,
    kSetDefault,
    kDropDefault,
    kSetNotNull,
    kDropNotNull,
    kSetType,
    kAttachPartition,
    kDetachPartition,
    kRenameColumn,
    kRenameConstraint,
    kRenameTo,
    kSetSchema,
    kOwnerTo,
    kAddIdentity,
    kAlterIdentity,
    kInherit,
    kNoInherit,
    kOther
  };
  Kind kind = Kind::kOther;
  Name name;      // the column or constraint
  Name new_name;  // of RENAME, SET SCHEMA
  ColumnDefinition column;
  Constraint constraint;
  const Expr* expr = nullptr;  // SET DEFAULT, TYPE ... USING
  const TypeName* type = nullptr;
  QualifiedName partition;  // or the parent of [NO] INHERIT
  bool if_exists = false;
  bool if_not_exists = false;
  bool cascade = false;
  bool concurrently = false;  // DETACH PARTITION
  Range options;       // of ADD GENERATED AS IDENTITY, with their parentheses; empty where they would stand
  bool steps = false;  // of an identity column: RESTART WITH a value, or SET of an option
  Range range;
};

// The options of ALTER SEQUENCE that change what it gives.
struct SequenceChange {
  bool restart = false;
  Range restart_value;  // of RESTART WITH n: the number with its sign; empty: back to the start
  std::int64_t restart_with = 0;
  bool steps = false;      // INCREMENT, START, MINVALUE, MAXVALUE, AS
  QualifiedName owned_by;  // table.column; OWNED BY NONE has one part
};

enum class RelationKind : std::uint8_t { kTable, kIndex, kSequence, kView, kMaterializedView, kForeignTable };

struct AlterTable {
  RelationKind kind = RelationKind::kTable;
  TableRef table;
  bool if_exists = false;
  List<AlterCommand> commands;
  const Placement* placement = nullptr;
  const SequenceChange* sequence = nullptr;
};

struct CreateIndex {
  Name name;
  TableRef table;
  bool unique = false;
  bool concurrently = false;
  bool if_not_exists = false;
  std::string_view method;
  List<IndexElement> elements;
  List<IndexElement> include;
  const Expr* where = nullptr;
};

struct CreateView {
  QualifiedName name;
  bool materialized = false;
  bool replace = false;
  bool temporary = false;
  bool if_not_exists = false;
  List<Name> columns;
  const Query* query = nullptr;
};

struct CreateSequence {
  QualifiedName name;
  bool if_not_exists = false;
  bool temporary = false;
};

struct CreateSchema {
  Name name;  // empty with AUTHORIZATION alone
  bool if_not_exists = false;
};

struct CreateType {
  enum class Kind : std::uint8_t { kComposite, kEnum, kRange, kBase, kShell, kDomain };
  Kind kind = Kind::kShell;
  QualifiedName name;
  List<std::string_view> labels;   // of an enum
  const TypeName* base = nullptr;  // of a domain
};

struct CreateFunction {
  enum class Volatility : std::uint8_t { kVolatile, kStable, kImmutable };
  QualifiedName name;
  bool procedure = false;
  bool replace = false;
  Volatility volatility = Volatility::kVolatile;
  int arguments = 0;
};

struct DropObjects {
  std::string_view kind;  // "table", "materialized view", "function", "trigger" ...
  List<QualifiedName> names;
  QualifiedName on_table;  // of DROP TRIGGER, RULE and POLICY
  bool if_exists = false;
  bool concurrently = false;
  bool cascade = false;
};

struct Truncate {
  List<TableRef> tables;
  bool restart_identity = false;
  bool cascade = false;
};

struct Grant {
  bool revoke = false;
  std::string_view kind;  // "table", "sequence", "schema" ...; empty: roles
  List<QualifiedName> objects;
};

struct Comment {
  std::string_view kind;
  QualifiedName object;
};

}  // namespace kintsugi::parser
