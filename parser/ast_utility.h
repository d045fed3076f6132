// Transactions, cursors, prepared statements, settings, COPY, EXPLAIN and maintenance.
#pragma once

#include <cstdint>
#include <optional>

#include "parser/ast_query.h"

namespace kintsugi::parser {

enum class Isolation : std::uint8_t {
  kDefault,
  kReadUncommitted,
  kReadCommitted,
  kRepeatableRead,
  kSerializable
};

struct TransactionModes {
  Isolation isolation = Isolation::kDefault;
  std::optional<bool> read_only;
  std::optional<bool> deferrable;
};

struct Transaction {
  enum class Kind : std::uint8_t {
    kBegin,
    kCommit,
    kRollback,
    kSavepoint,
    kRelease,
    kRollbackTo,
    kPrepare,
    kCommitPrepared,
    kRollbackPrepared
  };
  Kind kind = Kind::kBegin;
  TransactionModes modes;
  bool start = false;  // START TRANSACTION rather than BEGIN: the command tag differs
  bool chain = false;
  Name savepoint;
  std::string_view gid;  // of the three with PREPARED
};

struct DeclareCursor {
  Name name;
  const Query* query = nullptr;
  bool hold = false;
  bool scroll = false;
  bool binary = false;
  Range query_range;
};

struct Fetch {
  enum class Direction : std::uint8_t { kForward, kBackward, kAbsolute, kRelative };
  bool move = false;
  Name cursor;
  Direction direction = Direction::kForward;
  bool all = false;
  std::int64_t count = 1;
};

struct CloseCursor {
  Name name;
  bool all = false;
};

struct Prepare {
  Name name;
  List<const TypeName*> types;
  Preparable body;
};

struct Execute {
  Name name;
  List<const Expr*> args;
};

struct Deallocate {
  Name name;
  bool all = false;
};

// One value of SET a TO b, c.
struct SettingValue {
  enum class Kind : std::uint8_t { kWord, kString, kNumber };
  Kind kind = Kind::kString;
  std::string_view text;  // decoded; a number with its sign
};

struct Set {
  enum class Form : std::uint8_t {
    kValue,
    kDefault,
    kCurrent,
    kTransaction,      // SET TRANSACTION modes
    kCharacteristics,  // SET SESSION CHARACTERISTICS AS TRANSACTION modes
    kSnapshot,
    kConstraints
  };
  Form form = Form::kValue;
  bool local = false;
  std::string_view
      name;  // folded, parts joined with dots; SET TIME ZONE is timezone, SET ROLE role, SET NAMES
             // client_encoding, SET SCHEMA search_path, SET SESSION AUTHORIZATION session_authorization
  List<SettingValue> values;
  TransactionModes modes;
  Range value_range;  // everything behind TO or =
};

struct Reset {
  std::string_view name;
  bool all = false;
};

struct Show {
  std::string_view name;
  bool all = false;
};

struct Discard {
  enum class Kind : std::uint8_t { kAll, kPlans, kSequences, kTemp };
  Kind kind = Kind::kAll;
};

struct LockTable {
  List<TableRef> tables;
  std::string_view mode;  // as written; empty: ACCESS EXCLUSIVE
  bool no_wait = false;
};

struct Notify {
  enum class Kind : std::uint8_t { kNotify, kListen, kUnlisten };
  Kind kind = Kind::kNotify;
  Name channel;
  bool all = false;
  std::string_view payload;
};

// `name value` in COPY's, EXPLAIN's, VACUUM's and WITH's option lists.
struct Option {
  std::string_view name;   // folded; of WITH also namespace.name
  std::string_view value;  // decoded; empty when there is none
  bool has_value = false;
  List<std::string_view> list;  // FORCE_QUOTE (a, b)
  bool star = false;
  Range range;
};

struct Copy {
  TableRef table;  // or
  const Preparable* query = nullptr;
  List<Name> columns;
  bool from = false;
  bool program = false;
  bool standard_stream = false;  // STDIN or STDOUT
  std::string_view file;
  List<Option> options;  // the old form's as well: format csv, header, delimiter ...
  const Expr* where = nullptr;
};

struct Explain {
  bool analyze = false;
  bool verbose = false;
  bool route = false;  // Kintsugi's EXPLAIN (ROUTE)
  List<Option> options;
  Preparable body;     // not set for the statements below
  bool other = false;  // DECLARE, CREATE TABLE AS, REFRESH, EXECUTE ...
  Range body_range;
};

struct Vacuum {
  bool analyze_only = false;
  List<TableRef> tables;
};

struct Call {
  const FuncCall* call = nullptr;
};

// CLUSTER, REINDEX, CREATE TRIGGER, POLICY, RULE, STATISTICS and others: what is known is their first words and
// the relation that they are about.
struct Utility {
  std::string_view
      head;  // in lower case: "create role", "reindex", "do", "checkpoint", "refresh materialized view"
  QualifiedName relation;
  Name schema, new_schema;  // ALTER SCHEMA ... RENAME TO
};

}  // namespace kintsugi::parser
