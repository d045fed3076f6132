// What names mean inside one statement while it is analysed: columns of what stands in FROM, where they come
// from, and which of them are keys. Private to planner/; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parser/ast_query.h"
#include "planner/catalog.h"

namespace kintsugi::planner {

// A key column of one table of one FROM, or what a subquery passes on of it.
using TermId = int;
inline constexpr TermId kNoTerm = -1;

struct ScopeColumn {
  std::string_view name;
  std::uint32_t type = 0;      // pg_type OID; 0: not known
  std::string_view collation;  // as in Column
  TermId term = kNoTerm;
  int use = -1;  // the RelationUse and its column that it comes from, when it is one itself
  int column = -1;
  int origin = -1;  // its number among the columns of what stands in FROM, of its own block
};

// One thing in FROM by its alias.
struct ScopeItem {
  std::string_view alias;
  std::string_view schema;  // of a table without an alias: s.t.a names it
  std::vector<ScopeColumn> columns;
  bool known = true;  // false: its columns could not be found out
  // Of a table or view that is named there: what its rows as values have for a type.
  const parser::TableRef* ref = nullptr;
  const Relation* relation = nullptr;
};

struct Scope {
  const Scope* parent = nullptr;
  std::vector<ScopeItem> items;
  // What an unqualified name and * see, in order: columns merged by USING come once.
  std::vector<ScopeColumn> visible;
  bool known = true;
};

struct FoundColumn {
  const ScopeColumn* column = nullptr;  // null: not found, ambiguous, or in something unknown
  int depth = 0;                        // 0: of this scope
};
FoundColumn find_column(const Scope& scope, const parser::ColumnRef& ref);
const ScopeItem* find_item(const Scope& scope, std::string_view alias);

// Which terms are equal in every row that matters.
class Equalities {
 public:
  void join(TermId a, TermId b);
  [[nodiscard]] bool same(TermId a, TermId b) const;

 private:
  [[nodiscard]] TermId root(TermId term) const;
  std::vector<TermId> parents_;
};

}  // namespace kintsugi::planner
