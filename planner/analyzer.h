// Reads one statement's tree against the catalogue and the map: which tables it touches, which of their columns
// are keys and what is known of them, and whether its parts may be evaluated shard by shard.
//
// The idea: everything in FROM, from a table to a whole query, has a Distribution. It is kEverywhere when each
// shard has all of it, kSharded when the shards' answers put together are the whole answer, and each row lies
// where its key says. Joins, subqueries, grouping and set operations keep that property or lose it; what loses
// it is not wrong, it only cannot be answered by asking each shard.
//
// Private to planner/. One thread, one statement; holds pointers into the tree, the catalogue and the map.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/analysis.h"
#include "planner/key_set.h"
#include "planner/scope.h"

namespace kintsugi::planner {

using KeyTerms = std::vector<TermId>;  // one a key column

struct Distribution {
  enum class Kind : std::uint8_t {
    kEverywhere,  // the same on every shard
    kSharded,     // the union of what the shards have
    kHome,        // on the home shard alone
    kSpread,      // none of these: `why`
  };
  Kind kind = Kind::kEverywhere;
  const shardmap::Mapping* mapping = nullptr;
  std::vector<KeyTerms> keys;   // kSharded: each is the key of a row's shard; empty: a row's key is not known
  std::vector<KeyTerms> links;  // outer keys that all its rows have: evaluated beside such a row it is whole
  std::string why;
  const shardmap::Mapping* linked_by = nullptr;  // the map of `links`: only rows of its tables lie by them

  static Distribution spread(std::string reason) { return {Kind::kSpread, nullptr, {}, {}, std::move(reason)}; }
};

// A relation where the statement names it, or a view it names does.
struct RelationUse {
  enum class Kind : std::uint8_t { kSharded, kReplicated, kHome, kSystem, kUnknown };
  Kind kind = Kind::kUnknown;
  const Relation* relation = nullptr;  // null: the catalogue has none
  const shardmap::Table* table = nullptr;
  const shardmap::Mapping* mapping = nullptr;
  const parser::TableRef* ref = nullptr;
  std::string display;
  int unit = 0;
  TermId first_term = kNoTerm;
  bool nullable = false;  // may stand as NULLs because of an outer join
  bool target = false;    // of INSERT, UPDATE, DELETE, MERGE
  const parser::Select* block = nullptr;
  const struct Block* owner = nullptr;  // the block whose FROM it stands in
  std::vector<bool> needed;             // columns that are read
  bool whole_row = false;
  KeyCondition condition;  // sharded: of the rows it needs
};

// The main text is unit 0; each use of a view is another.
struct Unit {
  const parser::Statement* statement = nullptr;
  const parser::TableRef* ref = nullptr;  // where the view is named
  int parent = -1;
  std::string display;
};

// Of one thing in FROM, what tells its rows apart (chance.h).
struct FromPart {
  int first = 0;  // origin of its first column
  // No two rows have the same values at these places; none: there is one row at most.
  struct Key {
    std::vector<int> places;
    bool nulls_alike = false;  // rows with NULLs there as well
    bool by_literals = false;  // of the very text
  };
  std::vector<Key> keys;
  std::vector<bool> filled;  // columns that are never NULL
  bool stored = false;       // it reads tables
  bool literals = false;     // VALUES, whose keys are those of the very text
};

// What a query or FROM item looks like from outside.
struct Shape {
  Distribution distribution;
  std::vector<ScopeColumn> columns;
  bool known = true;
  FromPart part;
  const Relation* relation = nullptr;  // a table or view itself
};

// While one SELECT (or UPDATE, DELETE) is read.
struct Block {
  Scope* scope = nullptr;
  Block* outer = nullptr;
  const parser::Select* select = nullptr;
  Distribution from;
  Equalities equalities;  // that hold for its rows
  bool from_done = false;
  bool aggregates = false;
  bool row_volatile = false;  // random() and its like
  std::vector<const parser::FuncCall*> window_calls, aggregate_calls;
  std::vector<FromPart> parts;  // of FROM
  // What WHERE, ON and USING say of the columns from `low` on, and below `high`.
  struct Said {
    const parser::Expr* conjunct = nullptr;
    int one = -1, other = -1;  // or that these two are equal
    int low = 0, high = 0;
    std::size_t kept_low = 0, kept_high = 0;  // parts whose rows an outer join extends by that
  };
  std::vector<Said> said;
  std::string problem;  // why it cannot be evaluated shard by shard, whatever its FROM is
};

struct FromNode {
  const parser::FromItem* item = nullptr;
  const parser::Join* join = nullptr;
  std::unique_ptr<FromNode> left, right;
  Distribution distribution;  // of a leaf
  std::vector<ScopeColumn> visible;
  bool known = true;
  TermId low = 0, high = 0;
  int use_low = 0, use_high = 0;
  std::size_t part_low = 0, part_high = 0;
  std::vector<std::pair<int, int>> merged;  // origins of columns that USING says are equal
  Equalities using_equalities;
  std::vector<std::pair<TermId, TermId>> using_pairs;
};

class Analyzer {
 public:
  static constexpr std::size_t kUsesMax = 500;

  Analyzer(const parser::Statement& statement, const parser::Normaliser& normal, std::uint32_t begin,
           const NameContext& names, const Catalog& catalog, const shardmap::ShardMap& map);

  // ---- reading; each may be called once for the statement
  Shape query(const parser::Query& query, const Scope* parent, Block* outer);
  // The block of the topmost query when it is a single SELECT, and that query, for who merges their rows.
  Block* top_block() { return top_block_; }
  const parser::Query* top_query() { return top_query_; }
  // A replicated table whose rows FOR UPDATE or its like locks: "public.plans"; "": none.
  [[nodiscard]] const std::string& locked_copy() const { return locked_copy_; }
  // The statement is not a query: none of those in it is topmost.
  void no_top() { expects_top_ = false; }

  // A target of INSERT, UPDATE, DELETE or MERGE; the index of its use.
  int target(const parser::TableRef& ref);
  // UPDATE, DELETE, MERGE: the target joined with `items`, filtered by `where`.
  Block* modification(const parser::TableRef& ref, parser::List<const parser::FromItem*> items,
                      const parser::Expr* where);
  // MERGE: ON says which rows of the target are looked at, and nothing of the source's.
  Block* merge(const parser::Merge& merge);
  void expression(const parser::Expr* expr, Block& block);
  void returning(parser::List<parser::Target> targets, Block& block);
  void with(const parser::WithClause* with, const Scope* parent, Block* outer);

  // After reading: what is known of each sharded table's keys.
  void finish();

  parser::Range whole;  // of the text, what is planned: all of it, or what EXPLAIN (ROUTE) is about

  // ---- what was found
  std::vector<RelationUse> uses;
  std::vector<Unit> units;
  std::vector<Constant> constants;
  std::vector<std::uint32_t> pinned;
  bool unknown_names = false;
  bool modifies = false;  // a data-modifying WITH
  bool locks = false;     // FOR UPDATE and its like
  bool into = false;      // SELECT INTO
  bool whole_row = false;
  bool samples = false;
  // ctid, xmin and the like, which are a row's on its own shard; and one in anything but a comparison of two.
  std::string system_column, system_value;
  std::string one_place;             // a function whose effect or answer belongs to one place
  std::string reads_tables;          // a function that may read tables itself
  std::string reads_sharded;         // and one whose body names a sharded table: "f, which names public.orders"
  std::string writes_copies;         // and one that writes to a replicated table, in the same words
  std::vector<RelationUse> written;  // targets, as they are named
  std::string sets_sequence;         // setval() of a sharded table's sequence; in words
  std::string opaque;                // a view that could not be read
  std::string guarded_view;   // one whose tables have row-level security: only its owner sees what it shows
  bool session_time = false;  // now() and its like
  std::vector<parser::Range> time_calls;  // in the main text, those without arguments
  // Columns without a name of their own that PostgreSQL calls after one of them: their ends, and that name.
  std::vector<std::pair<std::uint32_t, std::string>> named_by_time;
  // Those in views, each in the text of its unit.
  struct ViewTime {
    int unit;
    parser::Range range;
  };
  std::vector<ViewTime> view_times;
  // Rows of a table or view as values: `c` in SELECT row_to_json(c) FROM customers c.
  struct WholeRow {
    int unit;
    parser::Range range;
    std::string_view alias;
    const parser::TableRef* ref;
    const Relation* relation;
    std::uint32_t name_at = 0;  // where the column that PostgreSQL calls after it ends; 0: none is
  };
  std::vector<WholeRow> whole_rows;
  // Where the text names a column of a table.
  struct NamedColumn {
    int use;
    int column;
    parser::Range range;
  };
  std::vector<NamedColumn> named_columns;
  bool other_times = false;  // and there are more
  bool once = false;         // the analysis holds for this very text only
  // Subqueries of the outermost block that cannot be evaluated beside its rows.
  struct Apart {
    const parser::Subquery* subquery;
    bool alone;  // it speaks of nothing outside it
  };
  std::vector<Apart> apart;
  // Queries whose answer would be another on each shard by the order of its rows (chance.h).
  std::set<const parser::Query*> by_chance;
  // What keys are compared with: constant, but only PostgreSQL knows what it is.
  std::vector<parser::Range> folds;

  [[nodiscard]] std::optional<Source> source_of(const parser::Expr* expr);
  [[nodiscard]] const shardmap::ShardMap& map() const { return map_; }
  [[nodiscard]] const Catalog& catalog() const { return catalog_; }
  [[nodiscard]] const NameContext& names() const { return names_; }
  [[nodiscard]] const parser::Normaliser& normal() const { return normal_; }
  [[nodiscard]] std::uint32_t begin() const { return begin_; }
  [[nodiscard]] const parser::Statement& statement() const { return statement_; }

  struct ExprType {
    std::uint32_t oid = 0;
    std::string_view collation;
  };
  [[nodiscard]] ExprType type_of(const parser::Expr* expr, const Scope& scope) const;
  [[nodiscard]] std::uint32_t type_named(const parser::TypeName& name) const;
  [[nodiscard]] TermId term_of(const parser::Expr* expr, const Scope& scope) const;
  // Whether `expr`, a function's name, is an aggregate.
  [[nodiscard]] bool is_aggregate(const parser::FuncCall& call) const;
  [[nodiscard]] const Function* function_of(const parser::FuncCall& call) const;
  // The relation a name means, by the session's path; its use is not counted.
  RelationUse resolve(const parser::QualifiedName& name);
  // Each key column of a term vector is among these terms.
  [[nodiscard]] bool covers(const std::vector<TermId>& terms, const KeyTerms& key,
                            const Equalities& equal) const;
  [[nodiscard]] bool covers_any(const std::vector<TermId>& terms, const Distribution& distribution,
                                const Equalities& equal) const;
  [[nodiscard]] bool equal(TermId a, TermId b) const { return equalities_.same(a, b); }
  static void conjuncts(const parser::Expr* expr, std::vector<const parser::Expr*>& out);

 private:
  struct Term {
    int use = -1;  // -1: passes several on
    int column = 0;
  };
  struct Record {  // a condition that holds for every row that matters
    const parser::Expr* expr;
    const Scope* scope;
    TermId low, high;  // of these terms only
    int unit;
  };
  struct CommonEntry {
    const parser::CommonTable* table;
    const Scope* parent;
    int unit;
    bool recursive;
  };

  Scope* new_scope(const Scope* parent);
  Block* new_block(Scope* scope, Block* outer);
  Shape operand(const parser::SetOperand& operand, const Scope* parent, Block* outer, bool top,
                const parser::Query& query);
  Shape select(const parser::Select& select, const Scope* parent, Block* outer, const parser::Query* query);
  Shape set_operation(const parser::SetOperand& operand, const Scope* parent, Block* outer,
                      const parser::Query& owner);
  Shape recursive(const parser::CommonTable& table, const Scope* parent, Block* outer);
  Shape common_table(std::size_t entry, Block* outer);
  void unread_commons(const parser::WithClause* with, Block* outer);
  Shape table(const parser::TableRef& ref, Block* outer, std::string_view& schema);
  Shape view(const Relation& relation, const parser::TableRef& ref, Block* outer);
  Distribution clauses(const parser::Select& select, Block& block, const std::vector<ScopeColumn>& columns);

  std::unique_ptr<FromNode> from_item(const parser::FromItem& item, Block& block);
  std::unique_ptr<FromNode> leaf(const parser::FromItem& item, Block& block);
  std::unique_ptr<FromNode> join_node(const parser::Join& join, Block& block);
  void add_item(Block& block, FromNode& node, std::string_view alias, std::string_view schema,
                parser::List<parser::Name> renamed, Shape shape);
  void from(parser::List<const parser::FromItem*> items, const parser::Expr* where, Block& block,
            std::unique_ptr<FromNode> first);
  void join_conditions(const FromNode& node, Block& block);
  static void note_said(const FromNode& node, const std::vector<const parser::Expr*>& on, Block& block);
  void note_target(const FromNode& node);
  void note_locked(const parser::Query& query, std::string_view alias, int low);
  [[nodiscard]] static bool ordered_by_all(const parser::Query& query, const Shape& shape);
  Distribution distribution_of(const FromNode& node, const Block& block) const;
  Distribution joined(const Distribution& left, const Distribution& right, parser::Join::Type type,
                      const Equalities& equal) const;
  bool keys_match(const Distribution& a, const Distribution& b, const Equalities& equal) const;
  void find_links(Block& block, TermId low, TermId high);
  void mark_nullable(const FromNode& node);

  const NameContext::NewTable* new_table(const parser::QualifiedName& name) const;
  bool is_gone(const parser::QualifiedName& name, const Relation* relation) const;
  void walk(const parser::Expr* expr, Block& block);
  void note_time(const parser::FuncCall& call);
  void note_name_of(const parser::Target& target);
  void note_whole_row(const parser::ColumnRef& ref, const ScopeItem& item);
  void walk_call(const parser::FuncCall& call, Block& block);
  void walk_column(const parser::ColumnRef& ref, Block& block);
  void walk_subquery(const parser::Subquery& subquery, Block& block);
  void look_into(const Function& function);
  void speaks_of(const Scope* scope);
  [[nodiscard]] static const Scope* scope_of(const Scope& scope, const parser::ColumnRef& ref);
  void need(const ScopeColumn& column);
  void need_all(const ScopeItem& item);
  bool linked(const Distribution& inner, const Block& block) const;

  std::vector<ScopeColumn> target_columns(parser::List<parser::Target> targets, Block& block);

  TermId new_term(int use, int column);
  void edge(TermId from, TermId to) { edges_.emplace_back(from, to); }
  void equal_terms(const parser::Expr* conjunct, const Scope& scope,
                   const std::function<void(TermId, TermId)>& found) const;
  void record_equalities(const parser::Expr* conjunct, Block& block, TermId low, TermId high, Equalities& all);

  KeyCondition condition(const parser::Expr* expr, const Record& record,
                         const std::vector<std::vector<bool>>& reach, const RelationUse& use);
  KeyCondition compare(std::string_view op, const parser::Expr* left, const parser::Expr* right,
                       const Record& record, const std::vector<std::vector<bool>>& reach,
                       const RelationUse& use);
  // Whether PostgreSQL would fold it: literals, parameters, and what is immutable of them.
  [[nodiscard]] bool is_constant(const parser::Expr* expr) const;
  void fold(const parser::Expr* value);
  KeyCondition leaf_condition(KeyCondition::Op op, const parser::Expr* column, const Source& source,
                              const Record& record, const std::vector<std::vector<bool>>& reach,
                              const RelationUse& use);
  KeyCondition in_list(const parser::InList& list, const Record& record,
                       const std::vector<std::vector<bool>>& reach, const RelationUse& use);
  std::vector<std::vector<bool>> reaching(const RelationUse& use) const;

  const parser::Statement& statement_;
  const parser::Normaliser& normal_;
  std::uint32_t begin_;
  const NameContext& names_;
  const Catalog& catalog_;
  const shardmap::ShardMap& map_;

  std::deque<Scope> scopes_;
  std::deque<Block> blocks_;
  std::deque<std::string> kept_;  // names made on the way
  std::vector<Term> terms_;
  std::vector<std::pair<TermId, TermId>> edges_;
  std::vector<Record> records_;
  std::vector<CommonEntry> commons_;
  std::set<const parser::CommonTable*> commons_read_;
  std::vector<std::pair<const parser::CommonTable*, Shape>> recursive_shapes_;  // being read
  Equalities equalities_;
  Block* top_block_ = nullptr;
  const parser::Query* top_query_ = nullptr;
  bool expects_top_ = true;
  // Subqueries being read: where they stand, and whether they speak of something outside.
  struct Inside {
    const Scope* around;
    bool alone = true;
  };
  std::vector<Inside> inside_;
  int unit_ = 0;
  int depth_ = 0;
  int origins_ = 0;      // given so far
  bool copies_ = false;  // a replicated table is written: what is read must be the same to the last digit
  std::string chance_;   // why the query that is being read is by chance
  bool exists_ = false;  // of the next query, only whether it has a row
  const parser::Query* locking_ = nullptr;  // whose FROM is being read, if it locks rows
  std::string locked_copy_;
};

}  // namespace kintsugi::planner
