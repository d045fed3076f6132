// Which rows of a table a query can need, told by its own conditions: those on the table alone, those on tables
// that lie beside it on every shard, and the columns that have to equal another table's. Private to planner/.
//
// All of it is weaker than the query: what is left out, the query would leave out, and it still checks the
// rest. One thread; good as long as the Analyzer.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "planner/analyzer.h"

namespace kintsugi::planner {

// A condition that speaks of one table alone, or what an OR says of it: in every arm something.
struct RowFilter {
  const parser::Expr* whole = nullptr;
  std::vector<std::vector<const parser::Expr*>> arms;  // none: the whole
};

// Its rows are needed only where rows of these tables meet these conditions; all are on the row's shard.
struct SemiJoin {
  std::vector<int> uses;
  std::vector<const parser::Expr*> conditions;
};

// A column that equals another table's column wherever the query uses the row.
struct KeyLink {
  int column = 0;
  int other = 0;  // a use
  int other_column = 0;
  auto operator<=>(const KeyLink&) const = default;
};

class RowFilters {
 public:
  explicit RowFilters(const Analyzer& analyzer) : analyzer_(analyzer) {}

  [[nodiscard]] std::vector<RowFilter> filters_of(int use) const;
  [[nodiscard]] SemiJoin semi_join_of(int use) const;
  [[nodiscard]] std::vector<KeyLink> links_of(int use) const;
  // Those of the conditions that speak of this use alone.
  [[nodiscard]] std::vector<const parser::Expr*> alone(
      int use, const Scope& scope, const std::vector<const parser::Expr*>& conditions) const;
  // How many rows are likely to be left: 0 few, 1 some, 2 all.
  [[nodiscard]] int left_over(int use) const;

 private:
  using Uses = std::set<int>;
  [[nodiscard]] const RelationUse& use_at(int use) const {
    return analyzer_.uses[static_cast<std::size_t>(use)];
  }
  // Conditions that every row of the block's result has met.
  [[nodiscard]] const std::vector<const parser::Expr*>& conditions_of(const RelationUse& use) const;
  // The tables that a condition speaks of, all of them `allowed`; nothing when it could mean something else, or
  // do something else, where those tables are read.
  [[nodiscard]] std::optional<Uses> uses_of(const parser::Expr* expr, const Scope& scope,
                                            const Uses& allowed) const;
  [[nodiscard]] Uses beside(int use) const;
  void add_link(int use, const parser::Expr* left, const parser::Expr* right,
                std::vector<KeyLink>& links) const;
  void add_links(int use, const parser::Expr* condition, std::vector<KeyLink>& links) const;

  const Analyzer& analyzer_;
  mutable std::map<const parser::Select*, std::vector<const parser::Expr*>> conditions_;
};

}  // namespace kintsugi::planner
