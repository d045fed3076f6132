// What of a query's answer depends on how its tables' rows lie, which is chance: another order on each shard,
// and another after each VACUUM. A query of tables that every shard has is the same everywhere only without
// that.
//
// RowsTold says whether rows of a FROM are told apart by some of their columns: by unique keys, what WHERE and
// ON say to be equal, groups. Two values that are equal count as the same (1.0 and 1.00). Private to planner/;
// one thread; good as long as the Analyzer.
#pragma once

#include <set>
#include <string>

#include "planner/analyzer.h"

namespace kintsugi::planner {

class RowsTold {
 public:
  RowsTold(const Analyzer& analyzer, const Block& block) : analyzer_(analyzer), block_(block) {}

  // The value is known; of a whole row of the n-th thing in FROM; of what a sort or group speaks of.
  void tell(const parser::Expr* expr);
  void tell_part(std::size_t part);
  void tell_columns(const std::vector<int>& origins);
  // With what is known there is one row at most.
  bool all();
  // What the expression is, is known.
  [[nodiscard]] bool told(const parser::Expr* expr) const;
  // It rests on literals of the text.
  [[nodiscard]] bool by_literals() const { return by_literals_; }

 private:
  [[nodiscard]] int origin_of(const parser::Expr* expr) const;
  bool tell(int origin, bool filled);
  bool use_equality(const parser::Expr* conjunct, int low, int high);
  bool use_keys();
  bool determine(std::size_t part);

  const Analyzer& analyzer_;
  const Block& block_;
  std::set<int> told_, filled_;  // origins; those that are not NULL where they were told
  std::set<std::size_t> parts_;  // of which there is one row at most
  bool by_literals_ = false;
};

// Why the SELECT's answer is by chance; empty: it is not. `owner` has its ORDER BY and LIMIT; none: another
// has. `copies`: the answer is written into each copy of a table, so that no digit may differ.
std::string chance_of(const parser::Select& select, const parser::Query* owner, const Block& block,
                      Analyzer& analyzer, bool copies);
// The columns of its answer that are unique together, by their places.
std::vector<FromPart::Key> keys_of(const parser::Select& select, const Block& block, Analyzer& analyzer,
                                   const std::vector<ScopeColumn>& columns);
// Of VALUES, by its literals.
std::vector<FromPart::Key> keys_of_values(const parser::SetOperand& values);

}  // namespace kintsugi::planner
