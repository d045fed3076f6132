// What the shards' schema holds, as the planner needs it: an immutable value, read from a shard by
// executor/catalog_reader.h and made by a CatalogBuilder. Any thread may read one; pointers into it are good as
// long as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "parser/statement.h"

namespace kintsugi::planner {

struct Column {
  std::string name;
  std::uint32_t type = 0;          // pg_type OID; of a domain its own
  std::string type_name;           // as format_type() writes it
  std::string collation;           // "": the type has none; "default", "C", "de_DE" ...
  std::string default_expression;  // as pg_get_expr() writes it; also of a generated column; "": none
  bool not_null = false;
  bool generated = false;
  char identity = 0;  // 'a' ALWAYS, 'd' BY DEFAULT
  friend bool operator==(const Column&, const Column&) = default;
};

enum class RelationKind : std::uint8_t {
  kTable,
  kPartitioned,
  kView,
  kMaterializedView,
  kForeignTable,
  kSequence,
  kIndex,
  kComposite,
};

struct Relation {
  std::uint32_t oid = 0;
  std::string schema;
  std::string name;
  RelationKind kind = RelationKind::kTable;
  std::vector<Column> columns;           // without dropped ones, in order
  std::vector<std::string> primary_key;  // column names; empty: none
  std::vector<std::vector<std::string>>
      unique_keys;                   // without the primary key, without partial and expression ones
  std::string definition;            // of a view, with all names qualified
  std::vector<std::string> parents;  // "schema.name" of what it inherits from or is a partition of
  bool is_partition = false;
  std::string owned_by;  // an index: its table; a sequence: the table whose column owns it; "schema.name"

  // Made by the builder.
  std::shared_ptr<const parser::Statement>
      query;                          // of a view outside the system schemas; null when not readable
  std::vector<std::string> children;  // "schema.name", direct ones

  std::vector<std::string> triggers;  // "schema.name" of the functions that its triggers call
  bool row_security = false;          // its policies say which rows one sees

  [[nodiscard]] std::string display() const { return schema + "." + name; }
  [[nodiscard]] bool is_system() const { return schema == "pg_catalog" || schema == "information_schema"; }
  [[nodiscard]] const Column* column(std::string_view wanted) const;
};

// All functions of one name in one schema, as the strictest of them is.
struct Function {
  std::string schema;
  std::string name;
  std::string kinds;      // of 'f' function, 'p' procedure, 'a' aggregate, 'w' window function
  char volatility = 'v';  // 'i', 's', 'v': the most volatile's
  bool returns_set = false;
  bool reads_tables = true;   // may: written in SQL or a procedural language and not IMMUTABLE
  std::uint32_t returns = 0;  // pg_type OID when they agree, else 0
  // Of those that may read tables: before finish() the text of the body, after it the names of relations that
  // it mentions, itself or through views and other functions.
  std::string body;
  std::vector<std::string> mentions;
  std::vector<std::string>
      writes;  // behind INSERT INTO, UPDATE, DELETE FROM, MERGE INTO, TRUNCATE; "new.column"
  std::vector<std::string> makes;  // what the body calls that answers otherwise on each shard: now, random
  friend bool operator==(const Function&, const Function&) = default;
};

struct Type {
  std::uint32_t oid = 0;
  std::string schema;
  std::string name;
  char kind = 'b';         // pg_type.typtype: base, composite, domain, enum, pseudo, range, multirange
  std::uint32_t base = 0;  // of a domain; of an array its element
  std::string default_expression = {};  // of a domain
  friend bool operator==(const Type&, const Type&) = default;
};

class Catalog;
using CatalogPtr = std::shared_ptr<const Catalog>;

class Catalog {
 public:
  static CatalogPtr empty();

  // Null where there is none.
  [[nodiscard]] const Relation* relation(std::string_view schema, std::string_view name) const;
  // As PostgreSQL finds it: pg_catalog first unless the path names it, then the path's schemas.
  [[nodiscard]] const Relation* find_relation(std::span<const std::string> path, std::string_view name) const;
  [[nodiscard]] const Relation* relation_displayed(std::string_view display) const;  // "schema.name"
  // Facts of a function by its name; several schemas of the path that have it are taken together.
  [[nodiscard]] const Function* function(std::string_view schema, std::string_view name) const;
  [[nodiscard]] std::vector<const Function*> functions_named(std::string_view name) const;  // in any schema
  [[nodiscard]] const Function* find_function(std::span<const std::string> path, std::string_view name) const;
  [[nodiscard]] const Type* type(std::uint32_t oid) const;
  [[nodiscard]] const Type* type(std::string_view schema, std::string_view name) const;
  [[nodiscard]] const Type* find_type(std::span<const std::string> path, std::string_view name) const;
  [[nodiscard]] bool has_schema(std::string_view name) const;
  [[nodiscard]] std::vector<const Relation*> relations() const;  // by schema and name

  // Two catalogues of the same fingerprint hold the same, but for their OIDs of relations: equal on two shards
  // that have the same schema.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  friend class CatalogBuilder;
  Catalog() = default;

  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  template <class Value>
  using ByName = std::unordered_map<std::string, Value, NameHash, std::equal_to<>>;  // key: schema '.' name

  ByName<Relation> relations_;
  ByName<Function> functions_;
  ByName<Type> types_;
  std::unordered_map<std::uint32_t, const Type*> types_by_oid_;
  std::vector<std::string> schemas_;
  std::uint64_t fingerprint_ = 0;
};

// Puts a catalogue together, in any order. One thread, one use.
class CatalogBuilder {
 public:
  CatalogBuilder();
  ~CatalogBuilder();
  CatalogBuilder(const CatalogBuilder&) = delete;
  CatalogBuilder& operator=(const CatalogBuilder&) = delete;

  void add_schema(std::string name);
  void add_relation(Relation relation);
  void add_function(Function function);  // again with the same name: joined with the former
  void add_type(Type type);
  // Parses the views, links children with parents, computes the fingerprint.
  CatalogPtr finish();

 private:
  void find_mentions();

  std::shared_ptr<Catalog> catalog_;
};

// The words of a text in a procedural language or SQL, in lower case, each once, in order.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);
// Those that say what is written: the last one of a name with dots.
[[nodiscard]] std::set<std::string> written_in(std::string_view body);
// Whether it runs statements that it puts together first (EXECUTE): any relation may be in them.
[[nodiscard]] bool puts_together(std::string_view body);
inline constexpr std::string_view kAnyRelation = "*";  // among the mentions of such a function
// Calls of now(), random() and the like, also those without parentheses.
[[nodiscard]] std::set<std::string> made_in(std::string_view body);

}  // namespace kintsugi::planner
