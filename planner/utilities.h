// Statements that are neither queries nor writes of rows: on which shards they run, and what the map learns of
// them. Private to planner/: utility.cc has maintenance, EXPLAIN and cursors, definition.cc what makes, changes
// and drops things, sequence.cc the sequences of sharded tables, copy_statement.cc COPY.
#pragma once

#include <string>
#include <utility>

#include "planner/analyse.h"

namespace kintsugi::planner {

inline bool placed(const RelationUse& use) {
  return use.kind == RelationUse::Kind::kSharded || use.kind == RelationUse::Kind::kReplicated;
}

class Utilities {
 public:
  Utilities(Analyzer& analyzer, Analysis& analysis) : analyzer_(analyzer), analysis_(analysis) {}

  void operator()(const parser::Copy* copy);
  void operator()(const parser::Explain* explain);
  void operator()(const parser::DeclareCursor* declare);
  void operator()(const parser::CreateTable* table);
  void operator()(const parser::CreateTableAs* table);
  void operator()(const parser::AlterTable* alter);
  void operator()(const parser::DropObjects* drop);
  void operator()(const parser::Truncate* truncate);
  void operator()(const parser::LockTable* lock);
  void operator()(const parser::CreateIndex* index);
  void operator()(const parser::CreateView* view);
  void operator()(const parser::CreateSchema*) { everywhere(); }
  void operator()(const parser::CreateType*) { everywhere(); }
  void operator()(const parser::CreateFunction*) { everywhere(); }
  void operator()(const parser::Grant* grant);
  void operator()(const parser::Comment* comment);
  void operator()(const parser::Vacuum* vacuum);
  void operator()(const parser::Utility* utility);
  void operator()(const parser::Call* call);
  template <class Other>
  void operator()(const Other&) {
    at_home();
  }

 private:
  void stage(const parser::Copy& copy, const RelationUse& use, CopyIn& in) const;
  void copy_out(const parser::Copy& copy, const RelationUse& use, CopyShape shape);
  void at_home() {
    analysis_.home = true;
    analysis_.writes = true;
  }
  void refuse(Error error) {
    at_home();
    analysis_.several = std::move(error);
  }
  void everywhere(std::string text = {}, bool in_transaction = true) {
    fix(definition(std::move(text), in_transaction));
  }
  [[nodiscard]] Ddl definition(std::string text, bool in_transaction = true) const;
  void fix(Plan plan) {
    analysis_.writes = true;
    analysis_.fixed = FixedPlan{std::move(plan)};
  }
  // All shards do the same to rows: TRUNCATE, LOCK TABLE.
  void write_everywhere();

  // Where a relation is: on all shards, or at home. An index and a sequence are where their table is, a view
  // where all it reads is.
  RelationUse where(const parser::QualifiedName& name);
  // The one place of all these relations; an error when they differ.
  void on_relations(parser::List<parser::QualifiedName> names, std::string_view what,
                    bool in_transaction = true);
  // Whether every shard has all tables of the query.
  bool everywhere_readable(const parser::Query& query);
  // A definition that only the home shard can have: of nothing that is sharded.
  void of_home_tables(const parser::Query& query, const std::string& what);
  // A temporary table lives on one connection and would hide the table of all shards from there on.
  bool hides_placed(const parser::QualifiedName& name);

  [[nodiscard]] std::optional<Error> do_elsewhere() const;
  void make_partition(const parser::CreateTable& table, const RelationUse& parent);
  std::optional<Error> new_trigger_elsewhere(const RelationUse& table);
  std::optional<Error> worked_out_elsewhere(parser::List<parser::Constraint> constraints);
  std::optional<Error> worked_out_elsewhere(const parser::Expr* expr);
  // What ALTER TABLE fills the rows that are there with (filled_rows.cc): times, which are worked out once, and
  // what else has to be said differently then.
  struct Filling {
    explicit Filling(std::string_view text) : edits(text, true) {}
    std::vector<parser::Range> times;
    TextEdits edits;
  };
  // Notes a command's times; an error when each shard would fill rows with something else.
  std::optional<Error> filled_apart(const parser::AlterCommand& command, const RelationUse& table,
                                    const parser::AlterTable& alter, Filling& filling);
  void fill_at_one_time(Filling filling);
  [[nodiscard]] const Type* type_of_name(const parser::QualifiedName& name) const;
  [[nodiscard]] bool domain_makes(const parser::QualifiedName& name, bool copies) const;
  [[nodiscard]] bool is_time(std::uint32_t oid) const;
  // DEFAULT 'now' is the moment when the definition runs, on each shard its own.
  std::optional<Error> default_of_moment(const parser::AlterCommand& command, const RelationUse& table) const;
  std::optional<Error> moment_of_definition(const parser::Expr* value, std::uint32_t type,
                                            std::string_view column) const;
  std::optional<Error> moment_of_definition(parser::List<parser::Constraint> constraints, std::uint32_t type,
                                            std::string_view column) const;
  static Error inherits(const std::string& placed);
  std::optional<Error> copied_apart(const parser::Copy& copy, const RelationUse& use);
  static std::optional<Error> encodes_otherwise(const parser::Copy& copy, const RelationUse& use);
  // What CREATE TABLE says of its place, or kintsugi.shard_new_tables.
  std::optional<shardmap::Table> placement(const parser::CreateTable& table, const std::string& schema);
  [[nodiscard]] std::string schema_of_new(const parser::QualifiedName& name) const;
  void make_table(const parser::CreateTable& table, const shardmap::Table& made);
  std::optional<Error> key_does_not_fit(const parser::CreateTable& table, const shardmap::Table& made);
  std::optional<Error> check_partition(const parser::AlterCommand& command, const RelationUse& table,
                                       Ddl& plan);
  // A table that is made at home where the map has one of that name, which has been dropped behind its back.
  void at_home_forgetting(const std::string& schema, std::string_view name);
  void drop_of_all(const parser::DropObjects& drop);
  void rename_schema(const parser::Name& from, const parser::Name& to);
  // True: the sequence belongs to a sharded table, and this has been seen to.
  bool change_sequence(const parser::AlterTable& alter, const RelationUse& sequence);
  bool own_sequence(const parser::AlterTable& alter, const RelationUse& sequence);

  Analyzer& analyzer_;
  Analysis& analysis_;
};

}  // namespace kintsugi::planner
